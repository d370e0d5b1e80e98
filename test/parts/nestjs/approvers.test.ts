import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import {
  Body,
  ConflictException,
  Controller,
  ForbiddenException,
  type INestApplication,
  Inject,
  Injectable,
  Post,
  Req,
} from '@nestjs/common';
import { type Answer, type PendingCall, Tool, ToolwrightError } from 'toolwright';
import { ToolwrightModule, type ToolwrightModuleOptions, ToolwrightService } from 'toolwright/nestjs';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { readMessage, said } from '../chat/chat-reader.js';
import { boot } from './boot.js';

interface Asking {
  readonly headers?: Readonly<Record<string, string>>;
  readonly user?: string;
}

const userOf = ({ headers, user }: Asking) => user ?? headers?.['x-user'] ?? 'nobody';
const ran: number[] = [];

@Injectable()
class Desk {
  @Tool({ description: 'Refund', approval: { approver: 'not-the-owner' } })
  refund(amount: number) {
    return `refunded ${ran.push(amount)}`;
  }
}

@Controller('runs')
class RunsController {
  constructor(@Inject(ToolwrightService) private readonly toolwright: ToolwrightService) {}

  @Post()
  async begin() {
    const { state, pending } = await this.toolwright.run([{ role: 'user', content: 'Refund it' }]);
    return { runId: state?.runId, pending };
  }

  @Post('answers')
  async answer(@Req() _request: object, @Body() body: { runId: string; answers: readonly Answer[] }) {
    const run = await this.toolwright.resumeStored(body.runId, body.answers).catch((error) => {
      if (!ToolwrightError.is(error)) throw error;
      if (error.name === 'RunNotAllowed') throw new ForbiddenException(error.message);
      throw error.name === 'DefinitionChanged' ? new ConflictException(error.message) : error;
    });
    return { status: run.status };
  }
}

const applications: INestApplication[] = [];
afterEach(async () => {
  ran.length = 0;
  for (const application of applications.splice(0)) await application.close();
});

async function open(
  options: Partial<ToolwrightModuleOptions> = {},
  chat: Parameters<typeof ToolwrightModule.forChat>[0] = {},
) {
  const call = { toolCalls: [{ name: 'refund', arguments: { amount: 5 } }] };
  const { module, tools } = await boot({
    options: {
      provider: new ScriptedProvider([call, { content: 'Done.' }]),
      model: 'm',
      store: new MemoryRunStore(),
      owner: (request: Asking) => ({ user: userOf(request) }),
      scopeOf: ({ user }: { readonly user: string }) => ({ request: { user } }),
      mayAnswer: (request: Asking) => userOf(request) === 'clerk',
      ...options,
    },
    providers: [Desk],
    controllers: [RunsController],
    imports: [ToolwrightModule.forChat({ path: 'api/chat', ...chat })],
  });
  const application = module.createNestApplication({ logger: false });
  applications.push(application);
  await application.listen(0, '127.0.0.1');
  const url = `http://127.0.0.1:${(application.getHttpServer().address() as AddressInfo).port}`;
  const ask = (path: string, user: string, body?: object, method = body === undefined ? 'GET' : 'POST') =>
    fetch(`${url}/${path}`, {
      method,
      ...(body === undefined
        ? { headers: { 'x-user': user } }
        : { headers: { 'content-type': 'application/json', 'x-user': user }, body: JSON.stringify(body) }),
    });
  return { ask, tools };
}

type Ask = Awaited<ReturnType<typeof open>>['ask'];

async function begin(ask: Ask) {
  const { runId, pending } = (await (await ask('runs', 'u1', {})).json()) as {
    readonly runId: string;
    readonly pending: readonly PendingCall[];
  };
  const answers = (more: object = {}) => ({
    runId,
    answers: pending.map(({ id }) => ({ id, approved: true, ...more })),
  });
  return { answers };
}

describe('approval.approver in NestJS', () => {
  test('an approval of a tool that is missing is a conflict, and the run remains suspended', async () => {
    const { ask } = await open();
    const { answers } = await begin(ask);
    const refused = await ask('runs/answers', 'u1', answers());
    expect(refused.status).toBe(403);
    expect(await refused.json()).toMatchObject({
      message: expect.stringMatching(/'refund'.*only by a user who is not the owner/),
    });
    expect((await ask('runs/answers', 'u1', answers({ arguments: { amount: 1 } }))).status).toBe(403);
    expect((await ask('runs/answers', 'eve', answers())).status).toBe(403);
    expect(ran).toEqual([]);
    const taken = await ask('runs/answers', 'clerk', answers());
    expect([taken.status, await taken.json()]).toEqual([201, { status: 'completed' }]);
    expect(ran).toEqual([5]);
  });

  test('a clerk answers in a chat and reads the pending call, but nothing else', async () => {
    const { ask, tools } = await open();
    const { answers } = await begin(ask);
    const tool = tools.get('refund');
    if (tool === undefined) throw new Error('it was to be there');
    tools.unregister('refund');
    const refused = await ask('runs/answers', 'clerk', answers());
    expect(refused.status).toBe(409);
    expect(await refused.json()).toMatchObject({ message: expect.stringContaining("'refund' has changed") });
    tools.register(tool);
    expect((await ask('runs/answers', 'clerk', answers())).status).toBe(201);
    expect(ran).toEqual([5]);
  });

  test('a clerk answers in a chat, reads what is asked, and nothing else', async () => {
    const { ask } = await open();
    const prompt = { id: 'c1', messages: [said('Refund it', 'm1')] };
    const { message } = await readMessage(await ask('api/chat', 'u1', prompt));
    const parts = message?.parts.map((part) =>
      'approval' in part && part.approval
        ? { ...part, state: 'approval-responded', approval: { id: part.approval.id, approved: true } }
        : part,
    );
    const answer = { id: 'c1', messages: [{ ...message, parts }] };
    expect((await ask('api/chat', 'u1', answer)).status).toBe(403);
    expect((await ask('api/chat', 'eve', answer)).status).toBe(403);
    const shown = await readMessage(await ask('api/chat/c1/stream', 'clerk'));
    expect(shown.message?.parts).toMatchObject([
      { type: 'step-start' },
      { type: 'tool-refund', state: 'approval-requested' },
    ]);
    expect((await ask('api/chat/c1/messages', 'clerk')).status).toBe(403);
    expect((await ask('api/chat/c1/stream', 'clerk', undefined, 'DELETE')).status).toBe(403);
    expect((await ask('api/chat', 'clerk', { ...prompt, messages: [said('Again', 'm2')] })).status).toBe(403);
    expect(ran).toEqual([]);
    const taken = await ask('api/chat', 'clerk', answer);
    expect(taken.status).toBe(200);
    await taken.text();
    for (let said = ''; !said.includes('Done.'); )
      said = await (await ask('api/chat/c1/messages', 'u1')).text();
    expect(ran).toEqual([5]);
  });

  test('`mayAnswer` of `forChat` replaces that of the module', async () => {
    const { ask } = await open({}, { mayAnswer: (request: Asking) => userOf(request) === 'boss' });
    await (await ask('api/chat', 'u1', { id: 'c1', messages: [said('Refund it', 'm1')] })).text();
    expect((await ask('api/chat/c1/stream', 'clerk')).status).toBe(403);
    expect((await ask('api/chat/c1/stream', 'boss')).status).toBe(200);
  });
});
