import { afterEach, describe, expect, test } from '@jest/globals';
import {
  type Answer,
  agentAsTool,
  Conversation,
  Conversations,
  defineTool,
  type Hooks,
  type LLMRequest,
  type LoopEvent,
  type Message,
  recoverRuns,
  resumeStoredRun,
  resumeToolLoop,
  runToolLoop,
  streamToolLoop,
  type ToolDefinition,
  type ToolLoopConfig,
  ToolRegistry,
} from 'toolwright';
import { MemoryRunStore, SqliteRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';

const hello: readonly Message[] = [{ role: 'user', content: 'Pay what is due' }];
const usage = { inputTokens: 10, outputTokens: 5, totalTokens: 15 };

type Steps = ConstructorParameters<typeof ScriptedProvider>[0];

/** A provider that records its requests and reports the same usage for every reply. */
function scripted(steps: Steps) {
  const provider = new ScriptedProvider(steps.map((step) => ({ usage, ...step })) as Steps);
  const asked: LLMRequest[] = [];
  return {
    asked,
    chat: (request: LLMRequest) => {
      asked.push(request);
      return provider.chat(request);
    },
  };
}

const PAY = { type: 'object', properties: { amount: { type: 'integer' } }, required: ['amount'] } as const;

function setup(more: Partial<ToolDefinition> = {}) {
  const ran: unknown[] = [];
  const pay = defineTool({
    name: 'pay',
    description: 'Pay',
    parameters: PAY,
    approval: true,
    execute: (args: unknown) => `paid ${ran.push(args)}`,
    ...(more as object),
  }) as ToolDefinition;
  const look = defineTool({ name: 'look', description: 'Look', execute: () => `seen ${ran.push('look')}` });
  const agents = scripted([
    { toolCalls: [{ id: 'i1', name: 'look' }] },
    { toolCalls: [{ id: 'i2', name: 'pay', arguments: { amount: 7 } }] },
    { content: 'Paid 7.' },
  ]);
  const agent = agentAsTool({
    name: 'accountant',
    description: 'Pays',
    provider: agents,
    model: 'small',
    tools: [pay, look],
    systemPrompt: 'Be exact.',
  });
  const provider = scripted([{ toolCalls: [agentCall('o1')] }, { content: 'All done.' }]);
  const config = { provider, model: 'large', tools: [agent] };
  return { ran, agents, provider, config, agent, pay };
}

function agentCall(id: string) {
  return { id, name: 'accountant', arguments: { task: 'Pay' } };
}

function answers(pending: readonly { readonly id: string }[] | undefined, answer: object): readonly Answer[] {
  return (pending ?? []).map(({ id }) => ({ id, ...answer }) as Answer);
}

function sent<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value));
}

interface Deep {
  [key: string]: Deep;
}

function at(value: Deep, path: string): Deep {
  return path.split('.').reduce((part, key) => part[key] as Deep, value);
}

const opened: Conversations[] = [];
afterEach(async () => {
  for (const conversations of opened.splice(0)) await conversations.close();
});

describe('agentAsTool', () => {
  test('runs the agent with its own prompt, task and tools, and adds its usage to that of the caller', async () => {
    const { config, agents, ran } = setup({ approval: false });
    const run = await runToolLoop(config, hello);
    expect(run).toMatchObject({ status: 'completed', content: 'All done.' });
    expect(run.toolCalls).toMatchObject([{ name: 'accountant', result: { forLLM: 'Paid 7.' } }]);
    expect(ran).toEqual(['look', { amount: 7 }]);
    expect(agents.asked[0]?.messages).toEqual([
      { role: 'system', content: 'Be exact.' },
      { role: 'user', content: 'Pay' },
    ]);
    expect(run.usage).toMatchObject({ inputTokens: 50, outputTokens: 25, totalTokens: 75 });
  });

  test('suspends the calling run, and resumes inside the agent in any process', async () => {
    const { config, agents, ran } = setup();
    const run = await runToolLoop(config, hello);
    expect(run.status).toBe('suspended');
    expect(run.pending).toMatchObject([
      {
        kind: 'approval',
        tool: 'pay',
        callId: 'i2',
        arguments: { amount: 7 },
        path: [{ callId: 'o1', tool: 'accountant' }],
      },
    ]);
    expect(run.state?.version).toBe(4);
    expect(ran).toEqual(['look']);
    const done = await resumeToolLoop(config, sent(run.state), answers(run.pending, { approved: true }));
    expect(done).toMatchObject({ status: 'completed', content: 'All done.' });
    expect(ran).toEqual(['look', { amount: 7 }]);
    expect(agents.asked).toHaveLength(3);
    expect(done.usage).toMatchObject({ totalTokens: 75 });
  });

  test('a refusal is reported to the agent, and not to the calling run', async () => {
    const { config, agents, ran } = setup();
    const run = await runToolLoop(config, hello);
    const no = answers(run.pending, { approved: false, reason: 'too dear' });
    const done = await resumeToolLoop(config, sent(run.state), no);
    expect(agents.asked[2]?.messages.at(-1)?.content).toContain('too dear');
    expect(done.toolCalls).toMatchObject([{ status: 'success', result: { forLLM: 'Paid 7.' } }]);
    expect(ran).toEqual(['look']);
  });

  test('edited arguments are checked by the tools of the agent', async () => {
    const { config, agents, ran } = setup();
    const run = await runToolLoop(config, hello);
    const wrong = answers(run.pending, { approved: true, arguments: { amount: 'x' } });
    await expect(resumeToolLoop(config, sent(run.state), wrong)).rejects.toMatchObject({
      name: 'InvalidAnswer',
      message: expect.stringContaining('amount: must be integer'),
    });
    const right = answers(run.pending, { approved: true, arguments: { amount: 3 } });
    await resumeToolLoop(config, sent(run.state), right);
    expect(ran).toEqual(['look', { amount: 3 }]);
    expect(agents.asked[2]?.messages.at(-1)?.content).toContain('They are now {"amount":3}');
  });

  test('a nested agent suspends all agents above it, and the pending call has the whole path', async () => {
    const { agent, ran } = setup();
    const middle = agentAsTool({
      name: 'manager',
      description: 'Manages',
      provider: scripted([
        { toolCalls: [{ id: 'm1', name: 'accountant', arguments: { task: 'x' } }] },
        { content: 'Managed.' },
      ]),
      model: 'm',
      tools: [agent],
    });
    const provider = scripted([
      { toolCalls: [{ id: 'o1', name: 'manager', arguments: { task: 'x' } }] },
      { content: 'Done.' },
    ]);
    const config = { provider, model: 'm', tools: [middle] };
    const run = await runToolLoop(config, hello);
    expect(run.pending).toMatchObject([
      {
        tool: 'pay',
        path: [
          { callId: 'o1', tool: 'manager' },
          { callId: 'm1', tool: 'accountant' },
        ],
      },
    ]);
    const done = await resumeToolLoop(config, sent(run.state), answers(run.pending, { approved: true }), {
      answeredBy: 'boss',
    });
    expect(done).toMatchObject({ status: 'completed', content: 'Done.' });
    expect(ran).toEqual(['look', { amount: 7 }]);
    expect(done.usage.totalTokens).toBe(7 * 15);
  });

  test('refuses a call when agents are nested deeper than maxDepth', async () => {
    const steps = (name: string) => [
      { toolCalls: [{ name, arguments: { task: 'x' } }] },
      { content: `${name} gave up` },
    ];
    const registry = new ToolRegistry();
    const self = agentAsTool({
      name: 'self',
      description: 'Calls itself',
      provider: {
        chat: (request) =>
          scripted(request.messages.length > 1 ? [{ content: 'up' }] : steps('self')).chat(request),
      },
      model: 'm',
      tools: registry,
      maxDepth: 2,
    });
    registry.register(self);
    const provider = scripted(steps('self'));
    const results: unknown[] = [];
    const watched: ToolLoopConfig = { provider, model: 'm', tools: [self] };
    const stream = streamToolLoop(watched, hello);
    const note = (event: LoopEvent): void => {
      if (event.type === 'call-event') note(event.event);
      if (event.type === 'call-end') results.push(event.result.error ?? event.result.forLLM);
    };
    for await (const event of stream) note(event);
    expect(results).toMatchObject([{ name: 'AgentsTooDeep', code: 541 }, 'up', 'up']);
  });

  test('sends its events as call events of the calling run', async () => {
    const { config } = setup({ approval: false });
    const types: string[] = [];
    const inner: (readonly string[])[] = [];
    for await (const event of streamToolLoop(config, hello)) {
      types.push(event.type);
      if (event.type === 'call-event') inner.push([event.callId, event.tool, event.event.type]);
    }
    expect(types.filter((type) => type === 'run-end')).toHaveLength(1);
    expect(inner).toContainEqual(['o1', 'accountant', 'run-start']);
    expect(inner.filter((told) => told[2] === 'call-end')).toHaveLength(2);
    expect(inner.at(-1)).toEqual(['o1', 'accountant', 'run-end']);
  });

  test('applies its own policy even if the policy of the run allows or asks', async () => {
    for (const word of [{ allow: true }, { ask: true }] as const) {
      const ran: unknown[] = [];
      const look = defineTool({ ...{ name: 'look', description: 'Look' }, execute: () => `${ran.push(1)}` });
      const agent = agentAsTool({
        ...{ name: 'helper', description: 'Helps', model: 'small', tools: [look] },
        provider: new ScriptedProvider([{ toolCalls: [{ name: 'look', arguments: {} }] }, { content: 'no' }]),
        policy: ({ tool }) => tool.name !== 'look',
      });
      const provider = new ScriptedProvider([
        { toolCalls: [{ name: 'helper', arguments: { task: 'Look' } }] },
        { content: 'Done.' },
      ]);
      const policy: ToolLoopConfig['policy'] = ({ tool }) => (tool.name === 'look' ? word : true);
      const config = { provider, model: 'large', tools: [agent], policy };
      let run = await runToolLoop(config, hello);
      if (run.state !== undefined)
        run = await resumeToolLoop(config, run.state, answers(run.pending, { approved: true }));
      expect([run.content, ran]).toEqual(['Done.', []]);
    }
  });

  test('gets the owner and the data of the run, and obeys the policy of the run', async () => {
    const seen: unknown[] = [];
    const { config } = setup({
      approval: false,
      execute: (_args, context) => {
        seen.push(context.data);
        return 'paid';
      },
    });
    const policy: ToolLoopConfig['policy'] = ({ tool }) => tool.name !== 'look';
    const scope = { owner: { user: 'u1' }, data: { userId: 'u1' } };
    await runToolLoop({ ...config, policy }, hello, scope);
    expect(seen).toEqual([{ userId: 'u1' }]);
    const again = setup();
    const run = await runToolLoop(again.config, hello, scope);
    const yes = answers(run.pending, { approved: true });
    await expect(resumeToolLoop(again.config, run.state, yes, { data: {} })).rejects.toMatchObject({
      name: 'RunNotAllowed',
    });
    expect((await resumeToolLoop(again.config, run.state, yes, scope)).status).toBe('completed');
  });

  test.each([
    ['after', [{ toolCalls: [{ name: 'accountant' }] }, { toolCalls: [agentCall('o2')] }]],
    ['beside', [{ toolCalls: [{ name: 'accountant' }, agentCall('o2')] }]],
  ])('obeys the policy of the run and suspends it also %s a call with wrong arguments', async (_, calls) => {
    const { config, ran } = setup();
    const asks = { ...config, provider: scripted(calls) };
    const suspended = await runToolLoop(asks, hello, { owner: { user: 'u1' } });
    expect(suspended).toMatchObject({
      status: 'suspended',
      pending: [{ tool: 'pay' }],
      usage: { totalTokens: 15 * (calls.length + 2) },
    });
    const refused = setup({ approval: false });
    const policy: ToolLoopConfig['policy'] = ({ tool }) => tool.name !== 'pay';
    const provider = scripted([...calls, { content: 'End.' }]);
    await runToolLoop({ ...refused.config, provider, policy }, hello);
    expect([ran, refused.ran]).toEqual([['look'], ['look']]);
  });

  test('returns data if it has an output, and reports a failed run', async () => {
    const agent = (steps: Steps) =>
      agentAsTool({
        name: 'data',
        description: 'Gives data',
        provider: scripted(steps),
        model: 'm',
        output: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] },
      });
    const registry = new ToolRegistry().register(agent([{ content: '{"n":4}' }]));
    expect((await registry.execute('data', { task: 'x' })).forLLM).toBe('{"n":4}');
    const failing = new ToolRegistry().register(agent([]));
    expect(await failing.execute('data', { task: 'x' })).toMatchObject({
      isError: true,
      forLLM: expect.stringContaining("The agent 'data' did not finish"),
    });
  });

  test('returns an error that names the pending call if the caller cannot suspend', async () => {
    const { agent, ran } = setup();
    const result = await new ToolRegistry().register(agent).execute('accountant', { task: 'x' });
    expect(result).toMatchObject({ isError: true, forLLM: expect.stringContaining("about 'pay'") });
    expect(ran).toEqual(['look']);
  });

  test('refuses unknown or invalid options', () => {
    const given = { name: 'a', description: 'b', provider: scripted([]), model: 'm', storr: 1 };
    expect(() => agentAsTool(given as never)).toThrow('storr');
    expect(() => agentAsTool({ ...given, storr: undefined, name: '' } as never)).toThrow('name');
  });
});

describe('runs inside calls', () => {
  test('a tool that starts several runs resumes each of them, and repeats no finished work', async () => {
    const { pay, ran } = setup();
    const first = scripted([{ content: 'first' }]);
    const second = scripted([
      { toolCalls: [{ id: 'i', name: 'pay', arguments: { amount: 1 } }] },
      { content: 'second' },
    ]);
    const third = scripted([
      { toolCalls: [{ id: 'i', name: 'pay', arguments: { amount: 2 } }] },
      { content: 'third' },
    ]);
    const effects: string[] = [];
    const both = defineTool({
      name: 'both',
      description: 'Both',
      execute: async (_args, context) => {
        await context.once('effect', () => effects.push('once'));
        const one = await runToolLoop({ provider: first, model: 'm' }, hello);
        const others = await Promise.all(
          [second, third].map((provider) => runToolLoop({ provider, model: 'm', tools: [pay] }, hello)),
        );
        return [one, ...others].map(({ content }) => content).join(' ');
      },
    });
    const provider = scripted([{ toolCalls: [{ id: 'o', name: 'both' }] }, { content: 'Done.' }]);
    const config = { provider, model: 'm', tools: [both] };
    let run = await runToolLoop(config, hello);
    expect(run.pending).toHaveLength(2);
    expect(new Set(run.pending?.map(({ id }) => id)).size).toBe(2);
    const [one, other] = run.pending ?? [];
    run = await resumeToolLoop(config, sent(run.state), answers([other!], { approved: true }));
    expect(run.pending).toMatchObject([{ id: one?.id }]);
    run = await resumeToolLoop(config, sent(run.state), answers([one!], { approved: true }));
    expect(run).toMatchObject({ status: 'completed', content: 'Done.' });
    expect(run.toolCalls).toMatchObject([{ result: { forLLM: 'first second third' } }]);
    expect(first.asked).toHaveLength(1);
    expect(effects).toEqual(['once']);
    expect(ran.toSorted()).toMatchObject([{ amount: 1 }, { amount: 2 }]);
  });

  test.each([
    ['MemoryRunStore', () => new MemoryRunStore()],
    ['SqliteRunStore', () => new SqliteRunStore({ path: ':memory:' })],
  ])('resumeStoredRun resumes a nested run in a %s that stores every step', async (_name, open) => {
    const store = open();
    const { config, ran } = setup();
    const kept: ToolLoopConfig = { ...config, store, checkpoint: 'step', runId: 'r1' };
    const run = await runToolLoop(kept, hello);
    const done = await resumeStoredRun(
      kept,
      { store, runId: 'r1' },
      answers(run.pending, { approved: true }),
    );
    expect(done).toMatchObject({ status: 'completed', content: 'All done.' });
    expect(ran).toEqual(['look', { amount: 7 }]);
  });

  test('recoverRuns resumes a nested run whose answers are in the store', async () => {
    const store = new MemoryRunStore();
    const { config, ran } = setup();
    const kept: ToolLoopConfig = { ...config, store, checkpoint: 'step', runId: 'r1' };
    const run = await runToolLoop(kept, hello);
    const { answerStoredRun } = await import('toolwright');
    expect(await answerStoredRun({ store, runId: 'r1' }, answers(run.pending, { approved: true }))).toEqual(
      [],
    );
    const [recovered] = await recoverRuns({ store, config: kept });
    expect(recovered).toMatchObject({ result: { status: 'completed', content: 'All done.' } });
    expect(ran).toEqual(['look', { amount: 7 }]);
  });

  test('Conversation and Conversations list and answer pending calls of nested runs', async () => {
    const one = setup();
    const conversation = new Conversation(one.config);
    await conversation.prompt('Pay');
    expect(conversation.pending).toMatchObject([{ tool: 'pay', path: [{ tool: 'accountant' }] }]);
    const restored = Conversation.restore(one.config, sent(conversation.toJSON()));
    expect((await restored.answer(answers(restored.pending, { approved: true }))).status).toBe('completed');
    expect(one.ran).toEqual(['look', { amount: 7 }]);

    const other = setup();
    const conversations = new Conversations({
      store: new MemoryRunStore(),
      config: other.config,
      pollMs: 20,
    });
    opened.push(conversations);
    await conversations.prompt('c1', 'Pay');
    const view = await conversations.idle('c1');
    await conversations.answer('c1', answers(view?.pending, { approved: true }));
    expect((await conversations.idle('c1'))?.messages.at(-1)?.content).toBe('All done.');
    expect(other.ran).toEqual(['look', { amount: 7 }]);
  });

  test('a forged nested state is refused', async () => {
    const { config, ran } = setup();
    const run = await runToolLoop(config, hello);
    const forged = sent(run.state) as unknown as Deep;
    at(forged, 'open.calls.0.inner.0.state.open.calls.0.journal.arguments').amount = 999 as never;
    await expect(
      resumeToolLoop(config, forged as never, answers(run.pending, { approved: true })),
    ).rejects.toMatchObject({ name: expect.stringMatching(/^Invalid(State|Answer)$/) });
    const secret = { ...config, stateSecret: 'a secret of thirty-two characters' };
    const again = setup();
    const signed = await runToolLoop({ ...again.config, stateSecret: secret.stateSecret }, hello);
    const changed = sent(signed.state) as unknown as Deep;
    at(changed, 'open.calls.0.inner.0.state.messages.1').content = 'Pay everything' as never;
    await expect(
      resumeToolLoop(
        { ...again.config, stateSecret: secret.stateSecret },
        changed as never,
        answers(signed.pending, { approved: true }),
      ),
    ).rejects.toMatchObject({ name: 'InvalidState' });
    expect([ran, again.ran]).toEqual([['look'], ['look']]);
  });

  test('an abort also ends the nested run', async () => {
    const { config, ran } = setup();
    const run = await runToolLoop(config, hello);
    const ended = await resumeToolLoop({ ...config, signal: AbortSignal.abort() }, run.state, []);
    expect(ended.status).toBe('aborted');
    expect(ran).toEqual(['look']);
  });
});

const NAMED = {
  type: 'object',
  properties: { amount: { type: 'integer' }, customerNo: { type: 'string' } },
} as const;

describe('the environment of a run', () => {
  const inner = () =>
    new ScriptedProvider([
      { toolCalls: [{ id: 'i1', name: 'pay', arguments: { amount: 7, customerNo: 'k-1' } }] },
      { content: 'Paid.' },
    ]);
  const outer = (name = 'accountant') =>
    new ScriptedProvider([
      { toolCalls: [{ id: 'o1', name, arguments: { task: 'Pay' } }] },
      { content: 'All is paid.' },
    ]);
  const watching = (name: string, seen: string[]): Hooks => ({
    name,
    beforeRequest: ({ model }) => {
      seen.push(`${name} asks ${model}`);
    },
    afterCall: ({ name: tool }) => {
      seen.push(`${name} calls ${tool}`);
    },
  });
  const payer = (execute: () => unknown = () => 'paid') =>
    defineTool({ name: 'pay', description: 'Pay', parameters: NAMED, execute }) as ToolDefinition;
  const accountant = (more: Partial<Parameters<typeof agentAsTool>[0]> = {}) =>
    agentAsTool({
      ...{ name: 'accountant', description: 'Pays', provider: inner(), model: 'inner', tools: [payer()] },
      ...more,
    });

  test('hooks of the registry, of the run and of the agent each run once within nested agents', async () => {
    const seen: string[] = [];
    const [ofRegistry, ofRun, own] = ['registry', 'run', 'own'].map((name) => watching(name, seen));
    const hooks = { run: [ofRun as Hooks], own: [own as Hooks, ofRun as Hooks] };
    const manager = agentAsTool({
      ...{ name: 'manager', description: 'Manages', provider: outer(), model: 'middle' },
      tools: [accountant({ hooks: hooks.own })],
    });
    const tools = new ToolRegistry({ hooks: [ofRegistry as Hooks] }).register(manager);
    const run = await runToolLoop(
      { provider: outer('manager'), model: 'outer', tools, hooks: hooks.run },
      hello,
    );
    expect(run.content).toBe('All is paid.');
    const of = (what: string) => seen.filter((one) => one.endsWith(what));
    expect(of('asks inner')).toEqual(
      ['registry', 'run', 'own', 'registry', 'run', 'own'].map((one) => `${one} asks inner`),
    );
    expect(of('asks middle')).toHaveLength(4);
    expect(of('calls pay')).toEqual(['registry calls pay', 'run calls pay', 'own calls pay']);
    expect(of('calls accountant')).toEqual(['registry calls accountant', 'run calls accountant']);
  });

  test('the policy of the registry also applies within agents', async () => {
    const ran: unknown[] = [];
    const policy = ({ tool }: { readonly tool: ToolDefinition }) =>
      tool.name === 'pay' ? { allow: false as const, reason: 'not today' } : true;
    const provider = inner();
    const tools = new ToolRegistry({ policy }).register(
      accountant({ provider, tools: [payer(() => ran.push('paid'))] }),
    );
    await runToolLoop({ provider: outer(), model: 'outer', tools }, hello);
    expect([ran, provider.requests[1]?.messages.at(-1)?.content]).toEqual([
      [],
      expect.stringContaining('not today'),
    ]);
  });

  test.each([
    ['hides the arguments that the registry of the run hides', { redact: ['customerNo'] }, ['[redacted]']],
    ['logs no arguments if the registry of the run logs none', { logArguments: false }, []],
  ] as const)('%s, also within agents', async (_, options, shown) => {
    const logged: (Readonly<Record<string, unknown>> | undefined)[] = [];
    const note = (text: string, fields?: Readonly<Record<string, unknown>>): void => {
      if (fields?.tool === 'pay' && text === 'Tool arguments') logged.push(fields);
    };
    const logger = { debug: note, info: () => {}, warn: () => {}, error: () => {} };
    const tools = new ToolRegistry(options).register(accountant());
    await runToolLoop({ provider: outer(), model: 'outer', tools, logger }, hello);
    const args = logged.map((fields) => (fields?.arguments as Readonly<Record<string, unknown>>)?.customerNo);
    expect(args).toEqual(shown);
  });
});
