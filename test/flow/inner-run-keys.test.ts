import { describe, expect, test } from '@jest/globals';
import {
  agentAsTool,
  defineTool,
  type LLMProvider,
  MemoryJobEngine,
  recoverRuns,
  resumeToolLoop,
  runJobs,
  runToolLoop,
  type ToolContext,
  type ToolDefinition,
  type ToolLoopConfig,
  ToolRegistry,
} from 'toolwright';
import { MemoryRunStore } from 'toolwright/stores';
import { Agents, agentTools } from 'toolwright/toolbox/agents';

const LEASE = 60_000;
const NEVER = new Promise<never>(() => {});
const hello = [{ role: 'user', content: 'Pay what is due' }] as const;

/** A model that makes one call, and replies `Done` to its result. */
function calling(name: string, args: object = {}): LLMProvider {
  return {
    chat: async ({ messages }) => {
      const isAnswered = messages.some(({ role }) => role === 'tool');
      const toolCalls = isAnswered ? [] : [{ id: 'c1', name, arguments: args as never }];
      return { content: isAnswered ? 'Done' : '', toolCalls, finishReason: 'stop' };
    },
  };
}

/** Records the key of every payment; payments hang while `isDying` is set. */
class Payments {
  readonly keys: string[] = [];
  readonly runs: (string | undefined)[] = [];
  isDying = false;
  #begin = (): void => {};
  readonly hasBegun = new Promise<void>((resolve) => {
    this.#begin = resolve;
  });
  readonly pay = this.tool({});

  tool(more: Partial<ToolDefinition>): ToolDefinition {
    return defineTool({
      name: 'pay',
      description: 'Pays',
      annotations: { idempotent: true },
      ...more,
      execute: async (_args: unknown, context: ToolContext) => {
        this.keys.push(context.idempotencyKey);
        this.runs.push(context.runId);
        this.#begin();
        return this.isDying ? NEVER : 'paid';
      },
    }) as ToolDefinition;
  }

  /** The config of a run that pays. */
  get config(): Pick<ToolLoopConfig, 'provider' | 'model' | 'tools'> {
    return { provider: calling('pay'), model: 'm', tools: [this.pay] };
  }

  agent(name: string, more: Partial<Parameters<typeof agentAsTool>[0]> = {}): ToolDefinition {
    return agentAsTool({ ...this.config, name, description: 'Pays', ...more });
  }

  agents(...names: readonly string[]): Agents {
    const { config } = this;
    return new Agents({
      agents: Object.fromEntries(
        names.map((name) => [name, { description: name, ...config, tools: [this.pay] }]),
      ),
    });
  }

  /** The keys of a payment during which the process dies, and of its repetition by recoverRuns. */
  async payAgain(tools: readonly ToolDefinition[], call: LLMProvider, onUnknown: 'ask' | 'rerun' = 'rerun') {
    let now = 1_700_000_000_000;
    const store = new MemoryRunStore({ now: () => now });
    const config = { provider: call, model: 'm', tools, store, checkpoint: 'call', leaseMs: LEASE } as const;
    this.isDying = true;
    // Ends later with an error, because another process has claimed the run.
    runToolLoop({ ...config, runId: 'r' }, hello).catch(() => {});
    await this.hasBegun;
    const first = this.keys.splice(0);
    now += LEASE;
    this.isDying = false;
    const [recovered] = await recoverRuns({ store, config, leaseMs: LEASE, onUnknown });
    expect(recovered).toMatchObject({ result: { status: 'completed', content: 'Done' } });
    return { first, again: this.keys.splice(0) };
  }
}

/** A tool with this function. */
function doing(
  execute: (context: ToolContext, args: Readonly<Record<string, unknown>>) => unknown,
  more: object = {},
): ToolDefinition {
  const behaviour = { execute: async (args: never, context: ToolContext) => execute(context, args) };
  return defineTool({ name: 'work', description: 'Works', ...behaviour, ...more }) as ToolDefinition;
}

/** Makes the same call twice, with the same id if one is given. */
async function twice(payments: Payments, tool: ToolDefinition, callId?: string) {
  const tools = new ToolRegistry().register(tool);
  const scope = callId === undefined ? {} : { callId };
  await tools.executeWithContext(tool.name, { task: 'Pay' }, scope);
  const first = payments.keys.splice(0);
  await tools.executeWithContext(tool.name, { task: 'Pay' }, scope);
  return { first, again: payments.keys.splice(0) };
}

describe('the effects of a nested run have the same keys', () => {
  test.each([
    ['ask', 'ask', { annotations: { idempotent: true } }],
    ['rerun', 'rerun', {}],
  ] as const)('when its process dies and the next one has onUnknown %s', async (_what, onUnknown, more) => {
    const payments = new Payments();
    const agent = payments.agent('accountant', more);
    const call = calling('accountant', { task: 'Pay' });
    const { first, again } = await payments.payAgain([agent], call, onUnknown);
    expect(first).toHaveLength(1);
    expect(again).toEqual(first);
  });

  test('when a model delegates', async () => {
    const payments = new Payments();
    const tools = agentTools(payments.agents('accountant'));
    const call = calling('delegate', { agent: 'accountant', task: 'Pay' });
    const { first, again } = await payments.payAgain(tools, call);
    expect(again).toEqual(first);
  });

  test('when a model starts an agent and there is no listener', async () => {
    const payments = new Payments();
    const tools = agentTools(payments.agents('accountant'));
    const call = calling('spawn_agent', { agent: 'accountant', task: 'Pay' });
    const { first, again } = await payments.payAgain(tools, call);
    expect(again).toEqual(first);
  });

  test('when agents are nested', async () => {
    const payments = new Payments();
    const inner = payments.agent('clerk', { annotations: { idempotent: true } });
    const provider = calling('clerk', { task: 'Pay' });
    const agent = payments.agent('accountant', { provider, tools: [inner] });
    const { first, again } = await payments.payAgain([agent], calling('accountant', { task: 'Pay' }));
    expect(again).toEqual(first);
  });

  test('when the tool calls runToolLoop', async () => {
    const payments = new Payments();
    let made = 0;
    const work = doing(() => {
      made += 1;
      return runToolLoop(payments.config, [
        { role: 'system', content: `It is the time ${made}` },
        { role: 'user', content: 'Pay' },
      ]).then(({ content }) => content);
    });
    const { first, again } = await payments.payAgain([work], calling('work'));
    expect(made).toBe(2);
    expect(again).toEqual(first);
  });

  const store = new MemoryRunStore();
  test.each<[string, (payments: Payments, context: ToolContext) => Promise<unknown>]>([
    [
      'asks an agent',
      (payments, context) => payments.agents('clerk').delegate({ agent: 'clerk', task: 'Pay' }, context),
    ],
    ['calls runToolLoop', ({ config }) => runToolLoop(config, hello)],
    ['calls runToolLoop with a store', ({ config }) => runToolLoop({ ...config, store }, hello)],
  ])('in the next attempt of a job that %s', async (_what, begin) => {
    const payments = new Payments();
    let attempts = 0;
    const work = doing(
      async (context) => {
        const answer = await begin(payments, context);
        attempts += 1;
        if (attempts === 1) throw new Error('lost');
        return String(answer);
      },
      { background: { attempts: 2 } },
    );
    const engine = new MemoryJobEngine();
    const tools = new ToolRegistry().register(work);
    const ended = Promise.withResolvers<unknown>();
    const worker = await runJobs({ engine, store, tools, onAsyncResult: ended.resolve });
    await runToolLoop({ provider: calling('work'), model: 'm', tools, engine, store }, hello);
    await ended.promise;
    await worker.close();
    expect(attempts).toBe(2);
    expect(payments.keys).toHaveLength(2);
    expect(new Set(payments.keys).size).toBe(1);
  });

  test('outside of any run, if the caller passes the same call id', async () => {
    const payments = new Payments();
    const { first, again } = await twice(payments, payments.agent('accountant'), 'call 7');
    expect(again).toEqual(first);
    expect((await twice(payments, payments.agent('accountant'), 'call 8')).first).not.toEqual(first);
  });
});

describe('several runs in one call have different keys', () => {
  const asked: readonly (readonly [agent: string, task: string])[] = [
    ['accountant', 'Pay'],
    ['accountant', 'Pay'],
    ['accountant', 'Pay more'],
    ['clerk', 'Pay'],
  ];

  test('that depend on agent and task, in any order of their start', async () => {
    const payments = new Payments();
    const agents = payments.agents('accountant', 'clerk');
    let order = [...asked];
    const work = doing(async (context) => {
      const [first, ...others] = order;
      order = order.toReversed();
      const [agent, task] = first as (typeof asked)[number];
      await agents.delegate({ agent, task }, context);
      await Promise.all(
        others.map(([other, what]) => agents.delegate({ agent: other, task: what }, context)),
      );
    });
    const { first, again } = await twice(payments, work, 'call 7');
    expect(new Set(first).size).toBe(asked.length);
    expect(again.toSorted()).toEqual(first.toSorted());
    expect(again[0]).toBe(first.at(-1));
  });

  test('when the tool calls runToolLoop several times', async () => {
    const payments = new Payments();
    const run = (content: string) => runToolLoop(payments.config, [{ role: 'user', content }]);
    const work = doing(async () => void (await Promise.all(['Pay', 'Pay', 'Pay more'].map(run))));
    await runToolLoop({ provider: calling('work'), model: 'm', tools: [work], runId: 'r' }, hello);
    const first = payments.keys.splice(0);
    expect(new Set(first).size).toBe(3);
    await runToolLoop({ provider: calling('work'), model: 'm', tools: [work], runId: 'r' }, hello);
    expect(payments.keys).toEqual(first);
    await runToolLoop({ provider: calling('work'), model: 'm', tools: [work], runId: 'other' }, hello);
    expect(new Set([...first, ...payments.keys]).size).toBe(6);
  });

  test('in each call without an id', async () => {
    const payments = new Payments();
    const { first, again } = await twice(payments, payments.agent('accountant'));
    expect(again).not.toEqual(first);
  });

  test('in each run with its own store', async () => {
    const payments = new Payments();
    const store = new MemoryRunStore();
    const statuses: string[] = [];
    const work = doing(async () => {
      const run = await runToolLoop({ ...payments.config, store, checkpoint: 'step' }, hello);
      statuses.push(run.status);
    });
    for (const _ of [1, 2])
      await runToolLoop({ provider: calling('work'), model: 'm', tools: [work], runId: 'r' }, hello);
    expect(statuses).toEqual(['completed', 'completed']);
    expect(new Set(payments.keys).size).toBe(2);
    expect(new Set(payments.runs).size).toBe(2);
  });
});

test('a suspended nested run resumes with the same run id', async () => {
  const payments = new Payments();
  const confirm = defineTool({
    name: 'confirm',
    description: 'Asks',
    execute: async (_args: unknown, context: ToolContext) => {
      payments.runs.push(context.runId);
      return context.ask({ message: 'Sure?', schema: { type: 'boolean' } });
    },
  });
  const agent = payments.agent('accountant', { provider: calling('confirm'), tools: [confirm] });
  const config = { provider: calling('accountant', { task: 'Pay' }), model: 'm', tools: [agent] };
  const run = await runToolLoop({ ...config, runId: 'r' }, hello);
  const answers = (run.pending ?? []).map(({ id }) => ({ id, value: true }));
  expect(answers).toHaveLength(1);
  const done = await resumeToolLoop(config, run.state, answers);
  expect(done.status).toBe('completed');
  expect(payments.runs).toHaveLength(2);
  expect(new Set(payments.runs).size).toBe(1);
});
