import { afterEach, expect, test } from '@jest/globals';
import { Body, Controller, type INestApplication, Injectable, Param, Post, Req } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { type Answer, type PendingCall, type RunStore, Tool, type ToolLoopResult } from 'toolwright';
import { ToolwrightModule, ToolwrightService } from 'toolwright/nestjs';
import { PostgresRunStore } from 'toolwright/postgres';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { describePostgres } from '../../services/services.js';
import { TestSchemas } from '../postgres/test-schema.js';

type UserRequest = { readonly headers: { readonly user?: string } };

@Injectable()
class Refunds {
  static made: string[] = [];

  @Tool({ description: 'Refund an order', approval: true })
  refundOrder(order: string) {
    Refunds.made.push(order);
    return `${order} is refunded`;
  }
}

interface Shown {
  readonly runId: string;
  readonly pending: readonly [PendingCall];
}

const shown = ({ runId, status, pending = [] }: ToolLoopResult) => ({ runId, status, pending });

@Controller('runs')
class RunsController {
  constructor(private readonly toolwright: ToolwrightService) {}

  @Post()
  async start(@Req() _request: UserRequest) {
    return shown(await this.toolwright.run([{ role: 'user', content: 'Refund ord_1' }]));
  }

  @Post(':id/answers')
  async answer(@Param('id') runId: string, @Body() answers: readonly Answer[]) {
    return shown(await this.toolwright.resumeStored(runId, answers));
  }
}

let app: INestApplication | undefined;
afterEach(async () => {
  await app?.close();
  Refunds.made = [];
});

interface Sent {
  readonly body?: unknown;
  readonly user?: string;
}

async function serve(store: RunStore) {
  const provider = new ScriptedProvider([
    { content: '', toolCalls: [{ id: 'c1', name: 'refund_order', arguments: { order: 'ord_1' } }] },
    { content: 'Done.' },
  ]);
  const options = { provider, model: 'm', store, owner: ({ headers }: UserRequest) => headers.user };
  const module = await Test.createTestingModule({
    imports: [ToolwrightModule.forRoot(options)],
    controllers: [RunsController],
    providers: [Refunds],
  }).compile();
  module.useLogger(false);
  app = module.createNestApplication();
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  return async (path: string, { body, user = 'ada' }: Sent) => {
    const headers = { 'content-type': 'application/json', user };
    const response = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    return { status: response.status, body: (await response.json()) as Shown };
  };
}

test('a route without a filter answers a refused approval with its status, and the run remains suspended', async () => {
  const store = new MemoryRunStore();
  const post = await serve(store);
  const { body: run } = await post('/runs', { body: {} });
  const path = `/runs/${run.runId}/answers`;
  const body = [{ id: run.pending[0].id, approved: true }];

  const stranger = await post(path, { body, user: 'eve' });
  expect(stranger).toMatchObject({ status: 403, body: { message: expect.stringContaining('owner') } });
  const unknown = await post(path, { body: [{ id: 'approval_x', approved: true }] });
  expect(unknown).toMatchObject({ status: 400, body: { message: expect.stringContaining('approval_x') } });
  expect(await post(path, { body: { approved: true } })).toMatchObject({ status: 400 });
  expect(await post('/runs/another/answers', { body })).toMatchObject({ status: 404 });
  expect(await post('/runs/a%00b/answers', { body })).toMatchObject({ status: 404 });
  expect(store.claim({ runId: run.runId, claim: 'elsewhere', leaseMs: 60_000 })).toMatchObject({
    status: 'claimed',
  });
  const claimed = await post(path, { body });
  expect(claimed).toMatchObject({ status: 409, body: { message: expect.stringContaining('lease') } });
  store.release({ runId: run.runId, claim: 'elsewhere' });
  expect(Refunds.made).toEqual([]);

  expect(await post(path, { body: [] })).toMatchObject({ status: 201, body: { pending: run.pending } });
  expect(await post(path, { body })).toMatchObject({ status: 201, body: { status: 'completed' } });
  expect(Refunds.made).toEqual(['ord_1']);
});

describePostgres('answers over PostgresRunStore', (service) => {
  const schemas = new TestSchemas(service);

  test('an id that PostgreSQL refuses as text is answered like an unknown id', async () => {
    const store = new PostgresRunStore({ connectionString: service.url, schema: schemas.newSchema() });
    const post = await serve(store);
    expect(await post('/runs/a%00b/answers', { body: [] })).toMatchObject({ status: 404 });
    await store.close();
  });
});
