import { runInNewContext } from 'node:vm';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type Answer,
  answerStoredRun,
  type CallScope,
  Conversation,
  type ConversationEvent,
  Conversations,
  compensateRun,
  defineTool,
  type Message,
  type RunState,
  recoverRuns,
  resumeStoredRun,
  resumeToolLoop,
  runToolLoop,
  streamResumedToolLoop,
  Tool,
  ToolContext,
  type ToolLoopResult,
  ToolRegistry,
} from 'toolwright';
import { type AiSdkToolOutput, toAiSdkTools } from 'toolwright/ai-sdk';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider, type ScriptedReply, toolHarness } from 'toolwright/testing';
import { Schedules } from 'toolwright/toolbox/schedule';

const hello: readonly Message[] = [{ role: 'user', content: 'Hello' }];
const alice = { owner: { user: 'alice', tenant: 't1' } };
const bob = { owner: { user: 'bob', tenant: 't1' } };
const notAllowed = { name: 'RunNotAllowed', code: 523 };

/** A value as another process would receive it. */
function wire<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value)) as Value;
}

function setup(...replies: readonly ScriptedReply[]) {
  const seen: unknown[] = [];
  const pay = defineTool({
    name: 'pay',
    description: 'Pay',
    approval: true,
    execute: (_args, { data }) => {
      seen.push(data.role ?? 'nobody');
      return 'paid';
    },
  });
  const whoami = defineTool({
    name: 'whoami',
    description: 'Who am I?',
    execute: (_args, { data }) => {
      seen.push(data.role ?? 'nobody');
      return String(data.role);
    },
  });
  const secret = defineTool({ name: 'billing_refund', description: 'Refund', execute: () => 'refunded' });
  const registry = new ToolRegistry().register(pay, whoami, secret);
  const provider = new ScriptedProvider([call('pay'), ...replies]);
  return { seen, registry, provider, config: { provider, model: 'small', tools: registry } };
}

function call(name: string): ScriptedReply {
  return { toolCalls: [{ name, arguments: {} }] };
}

function yes({ pending }: Pick<ToolLoopResult, 'pending'>): readonly Answer[] {
  return (pending ?? []).map(({ id }) => ({ id, approved: true }));
}

function offered(provider: ScriptedProvider, index = -1): readonly string[] {
  return (provider.requests.at(index)?.tools ?? []).map((tool) => tool.function.name);
}

/** The functions that resume a run. */
const resumeFunctions: readonly [string, Resume][] = [
  ['resumeToolLoop', ({ config, state, answers, scope }) => resumeToolLoop(config, state, answers, scope)],
  [
    'streamResumedToolLoop',
    ({ config, state, answers, scope }) => streamResumedToolLoop(config, state, answers, scope).result,
  ],
  [
    'resumeStoredRun',
    async ({ config, state, answers, scope }) => {
      const store = new MemoryRunStore();
      store.save(state);
      return resumeStoredRun(config, { store, runId: state.runId }, answers, scope);
    },
  ],
];

/** Owners that an application may build from a request without a user. */
const NOBODY = [
  null,
  '',
  {},
  { user: null },
  { user: '' },
  { user: { id: null }, roles: [] },
  [null],
  [],
  [[]],
  { roles: [] },
  false,
];

function saysSomething(owner: unknown): boolean {
  if (typeof owner === 'object' && owner !== null) return Object.values(owner).some(saysSomething);
  return owner !== null && owner !== '' && owner !== false;
}

type Resume = (request: {
  readonly config: ReturnType<typeof setup>['config'];
  readonly state: RunState;
  readonly answers: readonly Answer[];
  readonly scope: CallScope;
}) => Promise<ToolLoopResult>;

describe.each(resumeFunctions)('%s', (_name, resume) => {
  test.each<[string, CallScope, CallScope]>([
    ['another owner', alice, bob],
    ['an owner of a run that has none', {}, alice],
    ['no owner of a run that has one', alice, {}],
    ['an owner with an additional key', alice, { owner: { ...alice.owner, admin: true } }],
    ['a text that looks like the owner', { owner: ['1'] }, { owner: '1' }],
  ])(
    'refuses to resume with %s as the owner, runs nothing, and still accepts the owner',
    async (_what, first, second) => {
      const { config, seen, provider } = setup({ content: 'Done.' });
      const run = await runToolLoop(config, hello, first);
      const request = { config, state: run.state!, answers: yes(run) };
      await expect(resume({ ...request, scope: second })).rejects.toMatchObject(notAllowed);
      expect(seen).toEqual([]);
      expect(provider.requests).toHaveLength(1);
      expect(await resume({ ...request, scope: first })).toMatchObject({ status: 'completed' });
    },
  );

  test.each(NOBODY)('refuses the owner %j, which all requests without a user would share', async (owner) => {
    const { config } = setup({ content: 'Done.' });
    const problem = `owner is ${JSON.stringify(owner)}, which identifies no owner`;
    const invalid = { name: 'InvalidOptions', faults: [{ option: 'owner', problem }] };
    await expect(runToolLoop(config, hello, { owner })).rejects.toMatchObject(invalid);
    const run = await runToolLoop(config, hello);
    const request = { config, state: run.state!, answers: yes(run) };
    await expect(resume({ ...request, scope: { owner } })).rejects.toMatchObject(invalid);
  });

  test('accepts an owner with some empty parts', async () => {
    const { config } = setup({ content: 'Done.' });
    const scope = { owner: { user: 'u1', tenant: null, id: 0 } };
    const run = await runToolLoop(config, hello, scope);
    const request = { config, state: run.state!, answers: yes(run), scope };
    expect(await resume(request)).toMatchObject({ status: 'completed' });
  });

  test('compares owners as canonical JSON, for any JSON value', async () => {
    const owners = fc.jsonValue().filter(saysSomething);
    await fc.assert(
      fc.asyncProperty(owners, owners, async (one, other) => {
        const { config } = setup({ content: 'Done.' });
        const run = await runToolLoop(config, hello, { owner: one });
        const request = { config, state: wire(run.state!), answers: yes(run) };
        const isSame = sorted(one) === sorted(other);
        if (!isSame) {
          await expect(resume({ ...request, scope: { owner: other } })).rejects.toMatchObject(notAllowed);
        }
        const again = JSON.parse(sorted(one)) as unknown;
        expect(await resume({ ...request, scope: { owner: again } })).toMatchObject({ status: 'completed' });
      }),
      { numRuns: 50 },
    );
  });

  test('continues in the scope of the owner, and records separately who answered', async () => {
    const { config, seen } = setup(call('whoami'), { content: 'Done.' });
    const run = await runToolLoop(config, hello, { ...alice, data: { role: 'customer' } });
    const done = await resume({
      config,
      state: wire(run.state!),
      answers: yes(run),
      scope: { scope: { ...alice, data: { role: 'customer' } }, answeredBy: { user: 'clerk' } } as CallScope,
    });
    expect(seen).toEqual(['customer', 'customer']);
    expect(done.toolCalls).toMatchObject([
      {
        name: 'pay',
        answeredBy: { user: 'clerk' },
        answers: [{ kind: 'approval', answeredBy: { user: 'clerk' } }],
      },
      { name: 'whoami' },
    ]);
    expect(done.toolCalls[1]).not.toHaveProperty('answeredBy');
  });

  test('records no answers without answeredBy', async () => {
    const { config } = setup({ content: 'Done.' });
    const run = await runToolLoop(config, hello, alice);
    const done = await resume({ config, state: wire(run.state!), answers: yes(run), scope: alice });
    expect(done.toolCalls).toMatchObject([{ name: 'pay', status: 'success' }]);
    expect(done.toolCalls[0]).not.toHaveProperty('answers');
  });

  test('uses the model of the run unless the resume options set another', async () => {
    const { config, provider } = setup({ content: 'One.' }, { content: 'Two.' });
    const run = await runToolLoop(config, hello);
    const request = { config: { ...config, model: 'big' }, state: run.state!, answers: yes(run) };
    await resume({ ...request, scope: {} });
    await resume({ ...request, scope: { scope: {}, model: 'huge' } as CallScope });
    expect(provider.requests.map(({ model }) => model)).toEqual(['small', 'small', 'huge']);
  });

  test('offers the tools of the run that still exist, and tools registered later during the run', async () => {
    const { config, provider, registry } = setup(call('learn'), call('billing_refund'), { content: 'Done.' });
    const learn = defineTool({
      name: 'learn',
      description: 'Learn',
      execute: () => {
        registry.register(defineTool({ name: 'learned', description: 'Learned', execute: () => 'x' }));
        return 'now you can';
      },
    });
    registry.register(learn);
    const tools = registry.view({ deny: ['billing_*'] });
    const run = await runToolLoop({ ...config, tools }, hello);
    expect(run.state?.tools).toEqual(['pay', 'whoami', 'learn']);
    registry
      .unregister('whoami')
      .register(defineTool({ name: 'later', description: 'Later', execute: () => 'x' }));
    const done = await resume({ config, state: wire(run.state!), answers: yes(run), scope: {} });
    expect(provider.requests.map((_, index) => offered(provider, index))).toEqual([
      ['pay', 'whoami', 'learn'],
      ['pay', 'learn'],
      ['pay', 'learn', 'learned'],
      ['pay', 'learn', 'learned'],
    ]);
    expect(done.toolCalls.at(-1)).toMatchObject({ status: 'rejected', name: 'billing_refund' });
  });
});

test('resumeToolLoop refuses a changed or unsigned owned state, and mentions `stateSecret`', async () => {
  const { config, seen } = setup({ content: 'Done.' });
  const run = await runToolLoop(config, hello, alice);
  const { signature: _, ...unsigned } = run.state!;
  const forged: readonly [RunState, CallScope][] = [
    [{ ...run.state!, owner: bob.owner }, bob],
    [unsigned, alice],
    [{ ...unsigned, owner: bob.owner }, bob],
    [{ ...unsigned, owner: undefined }, alice],
    [{ ...run.state!, owner: undefined }, {}],
    [unsigned, {}],
  ];
  for (const [state, scope] of forged) {
    const resumed = resumeToolLoop(config, wire(state), yes(run), scope);
    await expect(resumed).rejects.toMatchObject({
      ...notAllowed,
      message: expect.stringContaining('stateSecret'),
    });
  }
  expect(seen).toEqual([]);
});

test('resumeToolLoop refuses a signed state with another owner, other tools or another model', async () => {
  const { config, registry } = setup({ content: 'Done.' });
  const signing = { ...config, stateSecret: 'a long secret that has at least thirty-two characters' };
  const run = await runToolLoop({ ...signing, tools: registry.view({ deny: ['billing_*'] }) }, hello, alice);
  for (const change of [{ owner: bob.owner }, { tools: registry.list() }, { model: 'big' }]) {
    const state = wire({ ...run.state!, ...change });
    await expect(resumeToolLoop(signing, state, yes(run), bob)).rejects.toMatchObject({
      name: 'InvalidState',
    });
  }
  expect(await resumeToolLoop(signing, wire(run.state), yes(run), alice)).toMatchObject({
    status: 'completed',
  });
});

test('resumeToolLoop accepts states of version 1, which have no owner, tools or model', async () => {
  const { config, provider } = setup({ content: 'Done.' });
  const run = await runToolLoop(config, hello);
  const { tools: _1, model: _2, ...rest } = run.state!;
  const old = wire({ ...rest, version: 1 as const });
  await expect(resumeToolLoop(config, old, yes(run), alice)).rejects.toMatchObject(notAllowed);
  const { model: _3, ...without } = config;
  await expect(resumeToolLoop(without, old, yes(run))).rejects.toThrow('model is missing');
  await expect(resumeToolLoop(config, { ...old, version: 2 }, yes(run))).rejects.toMatchObject({
    name: 'InvalidState',
  });
  expect(await resumeToolLoop(config, old, yes(run))).toMatchObject({ status: 'completed' });
  expect(provider.requests.at(-1)?.model).toBe('small');
});

test('resumeToolLoop needs no model in its config, because the run has one', async () => {
  const { config, provider } = setup({ content: 'Done.' });
  const run = await runToolLoop(config, hello);
  await resumeToolLoop({ provider, tools: config.tools }, run.state, yes(run));
  expect(provider.requests.at(-1)?.model).toBe('small');
});

test('resumeToolLoop refuses an argument that mixes scope and options', async () => {
  const { config } = setup();
  const run = await runToolLoop(config, hello);
  const mixed = { ...alice, answeredBy: 'clerk' } as CallScope;
  await expect(resumeToolLoop(config, run.state, yes(run), mixed)).rejects.toThrow('owner is not an option');
  const odd = { scope: {}, answeredBy: () => 'clerk' };
  await expect(resumeToolLoop(config, run.state, yes(run), odd)).rejects.toThrow('answeredBy');
});

test.each<[unknown, RegExp]>([
  [{ of: new Map() }, /owner\.of is an instance of Map, which JSON would change/],
  [{ of: [Number.NaN] }, /owner\.of\.0 is NaN/],
  [() => 'u1', /owner is a function/],
])('runToolLoop reports the part of an owner that JSON would change', async (owner, problem) => {
  const { config } = setup();
  await expect(runToolLoop(config, hello, { owner })).rejects.toThrow(problem);
});

test('runToolLoop refuses an owner that has no faithful JSON form', async () => {
  const { config, provider } = setup();
  const ring: Record<string, unknown> = {};
  ring.self = ring;
  const unnamed = [null, '', {}, { id: undefined }, Number.NaN, [Number.POSITIVE_INFINITY], () => 'u1', 5n];
  const hidden = [Promise.resolve('u1'), new Map([['id', 1]]), { user: Promise.resolve('u1') }, /u1/];
  const empty = [
    new Error('u1'),
    [new Set([1])],
    { [Symbol('id')]: 1 },
    new (class User {
      #id = this;
      same = () => this.#id === this;
    })(),
    ring,
  ];
  for (const owner of [...unnamed, ...hidden, ...empty])
    await expect(runToolLoop(config, hello, { owner })).rejects.toMatchObject({
      name: 'InvalidOptions',
      message: expect.stringContaining('owner'),
    });
  expect(provider.requests).toHaveLength(0);
});

class User {
  constructor(readonly id: string) {}
}

test.each<[string, unknown]>([
  ['a Date', new Date(0)],
  ['a URL', new URL('https://example.com/u1')],
  ['a Buffer', Buffer.from('u1')],
  ['a Map', new Map([['user', 'u1']])],
  ['an instance of a class', new User('u1')],
  ['an object whose toJSON returns another owner', { user: 'u1', toJSON: () => 'u2' }],
  ['an object with a Date', { user: 'u1', since: new Date(0) }],
])('every function that takes an owner refuses %s, because JSON changes it', async (_what, owner) => {
  const { config, registry, seen } = setup();
  const store = new MemoryRunStore();
  const conversations = new Conversations({ store, config });
  const schedules = new Schedules({ store });
  const run = await runToolLoop(config, hello);
  const answers = yes(run);
  const scope = { owner };
  const refused = { name: 'InvalidOptions', code: 521, message: expect.stringContaining('owner') };
  for (const enter of [
    async () => runToolLoop(config, hello, scope),
    async () => resumeToolLoop(config, run.state, answers, scope),
    async () => resumeToolLoop(config, run.state, answers, { scope }),
    async () => new Conversation({ ...config, scope }),
    async () => new Conversation(config).prompt('Pay', { scope }),
    async () => conversations.prompt('c1', 'Pay', { owner }),
    async () => conversations.answer('c1', answers, { owner }),
    async () => conversations.delete('c1', { owner, onlyOwner: true }),
    async () => answerStoredRun({ store, runId: 'r1' }, answers, { owner }),
    async () => schedules.add({ conversationId: 'c1', text: 'Pay', owner, inMinutes: 5 }),
    async () => schedules.list({ conversationId: 'c1', owner }),
  ])
    await expect(enter()).rejects.toMatchObject(refused);
  const { error } = await registry.executeWithContext('whoami', {}, scope);
  expect(error).toMatchObject(refused);
  expect(seen).toEqual([]);
  await conversations.close();
});

test('runToolLoop accepts an owner from another realm', async () => {
  const { config } = setup();
  const owner = runInNewContext("({ user: 'u1', teams: ['a'] })");
  expect(await runToolLoop(config, hello, { owner })).toMatchObject({ status: 'suspended' });
});

test('resumeToolLoop stores in the state who gave which answer until the call has run', async () => {
  const ask = defineTool({
    name: 'ask',
    description: 'Ask',
    approval: true,
    execute: async (_args, context) => `to ${await context.ask({ message: 'Where to?' })}`,
  });
  const provider = new ScriptedProvider([call('ask'), { content: 'Done.' }]);
  const config = { provider, model: 'small', tools: [ask] };
  const run = await runToolLoop(config, hello, alice);
  const asked = await resumeToolLoop(config, run.state, yes(run), { scope: alice, answeredBy: 'the chief' });
  expect(JSON.stringify(asked.state)).toContain('the chief');
  const answers = [{ id: asked.pending![0]!.id, value: 'Lisbon' }];
  const done = await resumeToolLoop(config, wire(asked.state), answers, {
    scope: alice,
    answeredBy: 'Alice',
  });
  expect(done.toolCalls).toMatchObject([
    {
      answeredBy: 'Alice',
      answers: [
        { kind: 'approval', index: 0, answeredBy: 'the chief' },
        { kind: 'question', index: 0, answeredBy: 'Alice' },
      ],
    },
  ]);
});

describe('Conversation', () => {
  test('refuses answers in the scope of another owner, and accepts answeredBy', async () => {
    const { config, seen } = setup({ content: 'Done.' });
    const scope = { ...alice, data: { role: 'customer' } };
    const conversation = new Conversation({ ...config, scope });
    await conversation.prompt('Pay');
    const answers = yes(conversation);
    for (const other of [bob, { data: { role: 'clerk' } }])
      await expect(conversation.answer(answers, { scope: other })).rejects.toMatchObject(notAllowed);
    expect(seen).toEqual([]);
    const done = await conversation.answer(answers, { answeredBy: 'a clerk' });
    expect(seen).toEqual(['customer']);
    expect(done.toolCalls).toMatchObject([{ answeredBy: 'a clerk' }]);
  });

  test('refuses answers to a restored run in the scope of another owner', async () => {
    const { config, seen } = setup({ content: 'Done.' });
    const conversation = new Conversation({ ...config, scope: alice });
    await conversation.prompt('Pay');
    const snapshot = wire(conversation.toJSON());
    const ofBob = Conversation.restore({ ...config, scope: bob }, snapshot);
    await expect(ofBob.answer(yes(ofBob))).rejects.toMatchObject(notAllowed);
    const { signature: _, ...unsigned } = snapshot;
    const unsure = Conversation.restore({ ...config, scope: alice }, unsigned);
    await expect(unsure.answer(yes(unsure))).resolves.toMatchObject({ status: 'completed' });
    expect(seen).toEqual(['nobody']);
    const state = { ...unsigned.turn!.standing, state: { ...stateOf(unsigned), owner: bob.owner } };
    const forged = { ...unsigned, turn: { ...unsigned.turn!, standing: state as never } };
    const ofForger = Conversation.restore({ ...config, scope: bob }, forged);
    await expect(ofForger.answer(yes(ofForger))).rejects.toMatchObject(notAllowed);
  });

  test('restored for one owner, does not run a waiting prompt of another', async () => {
    const { config, provider } = setup({ content: 'Done.' });
    const conversation = new Conversation({ ...config, scope: alice });
    await conversation.prompt('Pay');
    void conversation.prompt('And mine', { scope: bob });
    const before = provider.requests.length;
    const restored = Conversation.restore({ ...config, scope: alice }, wire(conversation.toJSON()));
    const events: ConversationEvent[] = [];
    restored.subscribe((event) => events.push(event));
    await new Promise((resolve) => setImmediate(resolve));
    expect(events).toMatchObject([
      { type: 'turn-end', turn: { origin: { content: 'And mine' } }, error: notAllowed },
    ]);
    expect(await restored.answer(yes(restored))).toMatchObject({ status: 'completed' });
    await restored.idle();
    expect(provider.requests).toHaveLength(before + 1);
    expect(JSON.stringify(restored.messages)).not.toContain('And mine');
  });

  test('continues an interrupted turn only for its owner', async () => {
    for (const scope of [bob, alice, {}]) {
      const { config, provider } = setup({ content: 'Done.' });
      const conversation = new Conversation({
        ...config,
        scope: alice,
        tools: [defineTool({ name: 'pay', description: 'Pay', execute: () => 'paid' })],
      });
      let snapshot = conversation.toJSON();
      conversation.subscribe(({ type }) => {
        if (type === 'step-end' && provider.requests.length === 1) snapshot = wire(conversation.toJSON());
      });
      await conversation.prompt('Pay');
      const again = new ScriptedProvider([{ content: 'Paid.' }]);
      const restored = Conversation.restore({ ...config, provider: again, scope, model: 'big' }, snapshot);
      const ends: ConversationEvent[] = [];
      restored.subscribe((event) => event.type === 'turn-end' && ends.push(event));
      await restored.idle();
      if (scope === alice) {
        expect(ends).toMatchObject([{ result: { status: 'completed' } }]);
        expect(again.requests.map(({ model }) => model)).toEqual(['small']);
        expect(offered(again)).toEqual(['pay']);
      } else {
        expect(ends).toMatchObject([{ error: notAllowed }]);
        expect(again.requests).toEqual([]);
      }
    }
  });
});

function stateOf({ turn }: ReturnType<Conversation['toJSON']>): RunState {
  if (turn?.standing.status !== 'suspended') throw new Error('it is not suspended');
  return turn.standing.state;
}

/** JSON with sorted keys. */
function sorted(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([one], [other]) => (one < other ? -1 : 1)))
      : member,
  );
}

class Whose {
  @Tool('Returns the scope')
  whose({ owner, channel, data }: ToolContext) {
    return { owner, channel, data };
  }
}

describe('a ToolContext that is passed on as a scope', () => {
  const whose = defineTool({
    name: 'whose',
    description: 'Returns the scope',
    execute: (_args, { owner, channel, data }) => ({ owner, channel, data }),
  });
  const registry = new ToolRegistry().register(whose);

  test.each([[{}], [{ ...alice, channel: 'web', data: { role: 'customer' } }]])(
    'gives calls and runs inside the call its scope %j',
    async (scope: CallScope) => {
      const seen: unknown[] = [];
      const outer = defineTool({
        name: 'outer',
        description: 'Calls a tool, and starts a run',
        execute: async (_args, context) => {
          seen.push((await registry.executeWithContext('whose', {}, context)).forLLM);
          const provider = new ScriptedProvider([call('whose'), { content: 'Done.' }]);
          const run = await runToolLoop({ provider, model: 'm', tools: registry }, hello, context);
          seen.push(run.messages.find(({ role }) => role === 'tool')?.content);
          for (const [own, given] of [[{ scope: context }], [{}, { scope: context }]]) {
            const replies = new ScriptedProvider([call('whose'), { content: 'Done.' }]);
            const talk = new Conversation({ provider: replies, model: 'm', tools: registry, ...own });
            const { messages } = await talk.prompt('Hello', given);
            seen.push(messages.find(({ role }) => role === 'tool')?.content);
            await talk.close();
          }
          const ofAiSdk = toAiSdkTools(registry, context).whose?.execute;
          const outputs = ofAiSdk?.({}, { toolCallId: 'c', messages: [] }) as AsyncIterable<AiSdkToolOutput>;
          for await (const { text } of outputs) seen.push(text.replace('"channel":"ai-sdk",', ''));
          const harness = toolHarness(Whose);
          seen.push((await harness.execute('whose', {}, context)).forLLM);
        },
      });
      const tools = new ToolRegistry().register(outer);
      const result = await tools.executeWithContext('outer', {}, scope);
      expect(result).toMatchObject({ isError: false });
      const expected = JSON.parse(JSON.stringify({ data: {}, ...scope }));
      expect(seen.map((text) => JSON.parse(String(text)))).toEqual(Array(6).fill(expected));
    },
  );

  test('compensates a run only for its owner', async () => {
    const store = new MemoryRunStore();
    const undone: unknown[] = [];
    const pay = defineTool({
      name: 'pay',
      description: 'Pay',
      execute: () => 'paid',
      compensate: (_effect, { data }) => undone.push(data.role),
    });
    const provider = new ScriptedProvider([call('pay'), { content: 'Done.' }]);
    const config = { provider, model: 'm', tools: [pay], store, checkpoint: 'step' as const, runId: 'r1' };
    await runToolLoop(config, hello, alice);
    const undo = defineTool({
      name: 'undo',
      description: 'Undo the run',
      execute: async (_args, scope) => void (await compensateRun(store, 'r1', { tools: [pay], scope })),
    });
    const tools = new ToolRegistry().register(undo);
    const undoAs = (owner: object) =>
      tools.executeWithContext('undo', {}, { ...owner, data: { role: 'clerk' } });
    expect((await undoAs(bob)).error).toMatchObject({ cause: notAllowed });
    expect((await undoAs(alice)).isError).toBe(false);
    expect(undone).toEqual(['clerk']);
  });
});

describe('a scope whose fields are getters', () => {
  /** The scope of a user, as an application may define it. */
  class UserScope {
    get owner() {
      return alice.owner;
    }
    get data() {
      return { role: 'customer' };
    }
  }

  test('applies to the turns of Conversations and to recovered runs', async () => {
    const { seen, config } = setup({ content: 'Done.' });
    const provider = new ScriptedProvider([call('whoami'), { content: 'Done.' }]);
    const store = new MemoryRunStore();
    const conversations = new Conversations({
      store,
      config: { ...config, provider },
      scope: () => new UserScope(),
    });
    await conversations.prompt('c1', 'Hello', alice);
    await conversations.idle('c1');
    await conversations.close();
    expect(seen).toEqual(['customer']);
    const stored = { ...config, store, checkpoint: 'step' as const, runId: 'r1' };
    const { pending = [] } = await runToolLoop(stored, hello, alice);
    await answerStoredRun({ store, runId: 'r1' }, [{ id: pending[0]?.id ?? '', approved: true }], alice);
    await recoverRuns({ store, config, scope: () => new UserScope() });
    expect(seen).toEqual(['customer', 'customer']);
  });
});
