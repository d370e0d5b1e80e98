import { AsyncLocalStorage } from 'node:async_hooks';
import { isDeepStrictEqual } from 'node:util';
import { expect, test } from '@jest/globals';
import {
  type CanActivate,
  createParamDecorator,
  type ExecutionContext,
  Inject,
  Injectable,
  Scope,
  UseGuards,
} from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import fc from 'fast-check';
import {
  Conversation,
  type JsonObject,
  type Logger,
  type Message,
  type RunState,
  Tool,
  ToolContext,
  ToolRegistry,
  type ToolwrightError,
} from 'toolwright';
import { createMcpServer } from 'toolwright/mcp';
import { type OwnedRun, ToolwrightModule, type ToolwrightModuleOptions } from 'toolwright/nestjs';
import { MemoryRunStore, SqliteRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { boot } from './boot.js';

interface Asking {
  readonly user: string;
  readonly role: 'customer' | 'clerk';
}

const ADA: Asking = { user: 'ada', role: 'customer' };
const BOB: Asking = { user: 'bob', role: 'customer' };
const CLERK: Asking = { user: 'cleo', role: 'clerk' };

/** What another package stores beside Nest, such as a request logger. */
const ambient = new AsyncLocalStorage<string>();

const CurrentUser = createParamDecorator(
  (_data: unknown, context: ExecutionContext) => context.switchToHttp().getRequest()?.user,
);

@Injectable()
class ClerksOnly implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    return context.switchToHttp().getRequest<Asking | undefined>()?.role === 'clerk';
  }
}

@Injectable({ scope: Scope.REQUEST })
class Trail {
  constructor(@Inject(REQUEST) readonly request: Asking | undefined) {}
}

@Injectable()
class Bank {
  constructor(
    private readonly trail: Trail,
    private readonly registry: ToolRegistry,
  ) {}

  @Tool({ description: 'Pay', approval: true })
  pay(@CurrentUser() user: string | undefined, amount: number, context: ToolContext) {
    const { userId } = context.data as { readonly userId?: string };
    return [user, userId, this.trail.request?.user, ambient.getStore(), amount];
  }

  @Tool('Who am I?')
  who(@CurrentUser() user: string | undefined) {
    return [user, ambient.getStore()];
  }

  @Tool('Refund, for clerks')
  @UseGuards(ClerksOnly)
  refund() {
    return 'refunded';
  }

  @Tool('Close the books')
  close() {
    return 'closed';
  }

  @Tool('Calls another tool')
  async indirectly() {
    return (await this.registry.execute('close')).forLLM;
  }
}

const OPTIONS: ToolwrightModuleOptions = {
  model: 'm',
  owner: ({ user }: Asking) => ({ user }),
  data: ({ user }: Asking) => ({ userId: user }),
  visible: (request: Asking, { name }) => name !== 'close' || request.role === 'clerk',
  mayAnswer: ({ role }: Asking) => role === 'clerk',
  scopeOf: ({ user }: { readonly user: string }) => ({ request: { user, role: 'customer' } }),
};

const HELLO: readonly Message[] = [{ role: 'user', content: 'Hello' }];

function calling(...calls: readonly (readonly [name: string, args?: JsonObject])[]) {
  return {
    content: '',
    toolCalls: calls.map(([name, args = {}], index) => ({ id: `c${index}`, name, arguments: args })),
  };
}

const PAY = calling(['pay', { amount: 5 }]);
const AFTERWARDS = calling(['who'], ['refund'], ['close'], ['indirectly']);

async function bank(options: Partial<ToolwrightModuleOptions> = {}) {
  const store = new MemoryRunStore();
  const provider = new ScriptedProvider([PAY, AFTERWARDS, { content: 'Paid.' }]);
  const given = Object.entries({ ...OPTIONS, provider, store, ...options });
  const module = Object.fromEntries(given.filter(([, value]) => value !== undefined));
  const booted = await boot({ options: module, providers: [Bank, Trail, ClerksOnly] });
  return { ...booted, provider, store };
}

type Booted = Awaited<ReturnType<typeof bank>>;

async function suspended({ toolwright }: Booted, request: Asking = ADA): Promise<RunState> {
  const { state } = await toolwright.run(HELLO, { request });
  if (state === undefined) throw new Error('it was to be suspended');
  return state;
}

function yes({ pending }: Pick<RunState, 'pending'>) {
  return pending.map(({ id }) => ({ id, approved: true }));
}

/** Without the prototype, which a generated object may lack. */
function plain(owner: unknown): unknown {
  return owner === undefined ? undefined : JSON.parse(JSON.stringify(owner));
}

/** Every way to resume a run. */
const WAYS = {
  resume: ({ toolwright }: Booted, state: RunState, request?: object) =>
    toolwright.resume(state, yes(state), { request }),
  streamResumed: ({ toolwright }: Booted, state: RunState, request?: object) =>
    toolwright.streamResumed(state, yes(state), { request }).result,
  resumeStored: ({ toolwright }: Booted, state: RunState, request?: object) =>
    toolwright.resumeStored(state.runId, yes(state), { request }),
};

for (const [way, goOn] of Object.entries(WAYS)) {
  test(`ToolwrightService.${way} accepts a clerk’s answer, and the run continues as its owner’s`, async () => {
    const booted = await bank();
    const state = await suspended(booted);
    expect(state.owner).toEqual({ user: 'ada' });
    const result = await ambient.run('the clerk’s', () => goOn(booted, state, CLERK));
    expect(result.toolCalls.map(({ name, status, result: { forLLM } }) => [name, status, forLLM])).toEqual([
      ['pay', 'success', '["ada","ada","ada",null,5]'],
      ['who', 'success', '["ada",null]'],
      ['refund', 'refused', expect.stringContaining('Forbidden resource')],
      ['close', 'rejected', expect.stringContaining('tool not found: close')],
      ['indirectly', 'success', expect.stringContaining("The tool 'close' was refused: it is not available")],
    ]);
    expect(result.toolCalls[0]?.answeredBy).toEqual({ user: 'cleo' });
    expect(result).toMatchObject({ status: 'completed', content: 'Paid.' });
  });

  test(`ToolwrightService.${way} refuses other users and requests without an owner; the run remains suspended`, async () => {
    const booted = await bank();
    const state = await suspended(booted);
    for (const stranger of [BOB, undefined])
      await expect(goOn(booted, state, stranger)).rejects.toMatchObject({ name: 'RunNotAllowed', code: 523 });
    const own = await goOn(booted, state, ADA);
    expect(own.toolCalls[0]).toMatchObject({ status: 'success', answeredBy: { user: 'ada' } });
  });

  test(`ToolwrightService.${way} accepts an answer of another user only if mayAnswer returns exactly true`, async () => {
    const doubtful: readonly ToolwrightModuleOptions['mayAnswer'][] = [
      () => 'yes' as never,
      () => 1 as never,
      async () => ({}) as never,
      () => {
        throw new Error('the directory is down');
      },
      () => Promise.reject(new Error('the directory is down')),
      undefined,
    ];
    for (const mayAnswer of doubtful) {
      const booted = await bank(mayAnswer ? { mayAnswer } : { mayAnswer, scopeOf: undefined });
      const state = await suspended(booted);
      await expect(goOn(booted, state, CLERK)).rejects.toMatchObject({ name: 'RunNotAllowed' });
    }
  });
}

test('ToolwrightService passes the owner and the pending calls of the run to mayAnswer', async () => {
  const asked: OwnedRun[] = [];
  const booted = await bank({
    mayAnswer: async (_request: Asking, run: OwnedRun) => asked.push(run) > 0,
  });
  const state = await suspended(booted);
  await booted.toolwright.resumeStored(state.runId, yes(state), { request: CLERK });
  expect(asked).toMatchObject([
    { owner: { user: 'ada' }, pending: [{ tool: 'pay', arguments: { amount: 5 } }] },
  ]);
});

test('ToolwrightService continues a run without a request if scopeOf returns none, with the same tools', async () => {
  const booted = await bank({ scopeOf: ({ user }: Asking) => ({ data: { userId: user } }) });
  const state = await suspended(booted);
  const { toolCalls } = await booted.toolwright.resumeStored(state.runId, yes(state), { request: CLERK });
  expect(toolCalls.map(({ name, status }) => [name, status])).toEqual([
    ['pay', 'success'],
    ['who', 'success'],
    ['refund', 'refused'],
    ['close', 'rejected'],
    ['indirectly', 'success'],
  ]);
  expect(toolCalls[0]?.result.forLLM).toBe('[null,"ada",null,null,5]');
});

test.each([undefined, null, 'ada'])(
  'ToolwrightService refuses %j as the result of scopeOf',
  async (scope) => {
    const booted = await bank({ scopeOf: async () => scope as never });
    const state = await suspended(booted);
    await expect(
      booted.toolwright.resumeStored(state.runId, yes(state), { request: CLERK }),
    ).rejects.toMatchObject({
      message: expect.stringContaining('scopeOf of ToolwrightModule returned'),
    });
    expect(booted.store.load(state.runId)).toEqual(state);
  },
);

test('ToolwrightService.conversations calls scopeOf again for a turn after it has failed', async () => {
  let calls = 0;
  const scopeOf = async ({ user }: Asking) => {
    calls += 1;
    if (calls === 1) throw new Error('the directory is down');
    return { request: { user, role: 'customer' } };
  };
  const provider = new ScriptedProvider([{ content: 'Hello.' }]);
  const { toolwright, module } = await bank({ scopeOf, provider });
  await toolwright.conversations.prompt('c', 'Hello', { owner: { user: 'ada' } });
  await toolwright.conversations.idle('c');
  const { messages = [] } = (await toolwright.conversations.snapshot('c')) ?? {};
  expect([messages.at(-1)?.content, calls]).toEqual(['Hello.', 2]);
  await module.close();
});

test('ToolwrightService.resume trusts the owner in a state only if the state is signed', async () => {
  const booted = await bank();
  const state = await suspended(booted);
  const forged = { ...state, owner: { user: 'bob' } };
  for (const request of [BOB, CLERK, ADA])
    await expect(WAYS.resume(booted, forged, request)).rejects.toMatchObject({ name: 'RunNotAllowed' });
  const ownerless: RunState = { ...state };
  Reflect.deleteProperty(ownerless, 'owner');
  await expect(WAYS.resume(booted, ownerless, BOB)).rejects.toMatchObject({ name: 'RunNotAllowed' });
  const signed = await bank({ stateSecret: 'a secret of more than thirty-two letters' });
  const signedState = await suspended(signed);
  await expect(WAYS.resume(signed, { ...signedState, owner: { user: 'bob' } }, BOB)).rejects.toMatchObject({
    name: 'InvalidState',
  });
  expect((await WAYS.resume(signed, signedState, CLERK)).status).toBe('completed');
});

test('ToolwrightModule compares owners as JSON in any key order; a missing owner equals no owner', async () => {
  const named = fc.dictionary(fc.constantFrom('user', 'tenant', 'a', 'b'), fc.integer({ min: 0 }), {
    minKeys: 1,
  });
  const owners = fc.option(fc.oneof(fc.string({ minLength: 1 }), fc.integer({ min: 0 }), named), {
    nil: undefined,
  });
  const booted = await bank({
    owner: ({ is }: { readonly is: unknown }) => is,
    mayAnswer: undefined,
    scopeOf: undefined,
    visible: undefined,
  });
  await fc.assert(
    fc.asyncProperty(owners, owners, fc.boolean(), async (one, other, isSame) => {
      const run = { owner: one, pending: [] };
      const reversed =
        typeof one === 'object' && one !== null ? Object.fromEntries(Object.entries(one).reverse()) : one;
      const is = isSame ? reversed : other;
      const answer = booted.toolwright.answering(run, { request: { is } });
      const said = await answer.then(
        () => true,
        (error: ToolwrightError) => error.name !== 'RunNotAllowed',
      );
      expect(said).toBe(isDeepStrictEqual(plain(one), plain(is)));
    }),
    { numRuns: 60 },
  );
});

test('ToolwrightModule refuses an owner that is a promise, because all promises are equal as JSON', async () => {
  const booted = await bank({ owner: async ({ user }: Asking) => user });
  await expect(booted.toolwright.run(HELLO, { request: ADA })).rejects.toMatchObject({
    name: 'InvalidOptions',
    message: expect.stringContaining('owner returns a promise'),
  });
});

test('ToolwrightModule hides tools from a request, and refuses their calls in every way', async () => {
  const { toolwright, tools, provider } = await bank();
  await toolwright.run(HELLO, { request: ADA });
  const offered = provider.requests[0]?.tools?.map(({ function: { name } }) => name);
  expect(offered).toEqual(['pay', 'who', 'refund', 'indirectly']);
  expect(await toolwright.visibleTo(ADA)).toEqual({ allow: ['pay', 'who', 'refund', 'indirectly'] });
  const close = (request: Asking) => tools.executeWithContext('close', {}, toolwright.scopeOf(request));
  expect((await close(CLERK)).forLLM).toBe('closed');
  const refused = await close(ADA);
  expect(refused).toMatchObject({ isError: true, error: { name: 'ToolRefused' } });
  expect((await tools.execute('close')).error).toMatchObject({ name: 'ToolRefused' });
  const direct = await tools.get('close')?.execute({}, { ...toolwright.scopeOf(ADA) } as never);
  expect(String((direct as { readonly forLLM: string }).forLLM)).toContain('it is not available');
});

test('ToolwrightModule shows a tool only if visible returns true, and hides it if visible throws', async () => {
  const warned: string[] = [];
  const keep = (message: string) => warned.push(message);
  const logger: Logger = { debug: () => {}, info: () => {}, warn: keep, error: keep };
  for (const visible of [
    () => 'yes' as never,
    async () => 1 as never,
    () => {
      throw new Error('no directory');
    },
  ] as ToolwrightModuleOptions['visible'][]) {
    const { toolwright, tools } = await bank({ visible, logger });
    expect(await toolwright.visibleTo(CLERK)).toEqual({ allow: [] });
    const called = await tools.executeWithContext('who', {}, toolwright.scopeOf(CLERK));
    expect(called.error).toMatchObject({ name: 'ToolRefused' });
  }
});

test('ToolwrightService.answering returns the scope in which a conversation continues, and who answered', async () => {
  const { toolwright, tools, provider } = await bank();
  const view = tools.view(await toolwright.visibleTo(ADA));
  const scope = toolwright.scopeOf(ADA);
  const conversation = new Conversation({ provider, model: 'm', tools: view, scope });
  await conversation.prompt('Pay');
  const run = { owner: scope.owner, pending: conversation.pending };
  await expect(toolwright.answering(run, { request: BOB })).rejects.toMatchObject({ name: 'RunNotAllowed' });
  const answering = await toolwright.answering(run, { request: CLERK });
  const { toolCalls } = await ambient.run('the clerk’s', () =>
    conversation.answer(yes({ pending: conversation.pending }), answering),
  );
  expect(toolCalls[0]).toMatchObject({
    answeredBy: { user: 'cleo' },
    result: { forLLM: '["ada","ada","ada",null,5]' },
  });
});

test('createMcpServer with scopeOf and visibleTo lists and calls the tools that a request may see', async () => {
  const { toolwright, tools } = await bank();
  const request = (authInfo: { readonly extra?: Readonly<Record<string, unknown>> } | undefined) =>
    authInfo?.extra?.request as Asking;
  const server = createMcpServer(tools, {
    sessions: false,
    scope: ({ authInfo }) => toolwright.scopeOf(request(authInfo)),
    visible: ({ authInfo }) => toolwright.visibleTo(request(authInfo)),
  });
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const ask = async (by: Asking, method: string, params: object) => {
    const authInfo = { token: 't', clientId: by.user, scopes: [], extra: { request: by } };
    const parsedBody = { jsonrpc: '2.0', id: 1, method, params };
    const http = new Request('http://localhost/mcp', { method: 'POST', headers });
    return (await server.fetch(http, { authInfo, parsedBody })).text();
  };
  expect(await ask(ADA, 'tools/list', {})).not.toContain('"close"');
  expect(await ask(CLERK, 'tools/list', {})).toContain('"close"');
  expect(await ask(ADA, 'tools/call', { name: 'close' })).not.toContain('closed');
  expect(await ask(CLERK, 'tools/call', { name: 'close' })).toContain('closed');
  await server.close();
});

test('ToolwrightModule requires owner and scopeOf for mayAnswer', async () => {
  const { owner: _, ...withoutOwner } = OPTIONS;
  const { scopeOf: __, ...withoutScope } = OPTIONS;
  for (const options of [withoutOwner, withoutScope])
    await expect(boot({ options })).rejects.toMatchObject({ name: 'InvalidOptions' });
  expect(() => ToolwrightModule.forRoot({ ...OPTIONS })).not.toThrow();
});

test.each([undefined, null, '', {}, [], { '?1': 'x' }])(
  'ToolwrightService.resumeStored refuses the run id %j before it reads the store',
  async (runId) => {
    const store = new SqliteRunStore({ path: ':memory:' });
    const { toolwright } = await bank({ store });
    const error = await toolwright.resumeStored(runId as never, []).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'InvalidOptions', code: 521, faults: [{ option: 'runId' }] });
    store.close();
  },
);
