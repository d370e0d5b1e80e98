import { afterEach, describe, expect, test } from '@jest/globals';
import { IsInt, Max } from 'class-validator';
import {
  type Answer,
  Args,
  answerStoredRun,
  answerWait,
  Conversation,
  Conversations,
  defineTool,
  discoverTools,
  type LLMRequest,
  type Message,
  recoverRuns,
  resumeStoredRun,
  resumeToolLoop,
  runToolLoop,
  streamResumedToolLoop,
  Tool,
  type ToolDefinition,
  type ToolLoopConfig,
  type ToolLoopResult,
  ToolRegistry,
  Toolset,
} from 'toolwright';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';

const hello: readonly Message[] = [{ role: 'user', content: 'Pay A-1' }];
const MODELS = { invoice: 'A-1', amount: 100 };
const PARAMETERS = {
  type: 'object',
  properties: {
    invoice: { type: 'string' },
    amount: { type: 'integer', minimum: 1 },
    currency: { type: 'string', default: 'EUR' },
  },
  required: ['invoice', 'amount'],
} as const;

function setup(more: Partial<ToolDefinition> = {}, args: unknown = MODELS) {
  const ran: unknown[] = [];
  const pay = defineTool({
    name: 'pay',
    description: 'Pay an invoice',
    parameters: PARAMETERS,
    approval: true,
    execute: (given: Record<string, unknown>) => {
      ran.push(structuredClone(given));
      // A tool may change its own copy of the arguments.
      given.amount = 'changed';
      return `paid ${ran.length}`;
    },
    ...(more as object),
  }) as ToolDefinition;
  const asked: LLMRequest[] = [];
  const scripted = new ScriptedProvider([
    { toolCalls: [{ id: 'c1', name: 'pay', arguments: args as typeof MODELS }] },
    { content: 'Done.' },
  ]);
  const provider = {
    chat: (request: LLMRequest) => {
      asked.push(request);
      return scripted.chat(request);
    },
  };
  const config = { provider, model: 'm', tools: [pay] };
  return { ran, asked, config, pay };
}

function edit(run: Pick<ToolLoopResult, 'pending'>, args: unknown): readonly Answer[] {
  return (run.pending ?? []).map(({ id }) => ({ id, approved: true, arguments: args })) as readonly Answer[];
}

const CHANGED = { invoice: 'A-1', amount: 40 };
const RAN = { ...CHANGED, currency: 'EUR' };
const ORIGINAL = { ...MODELS, currency: 'EUR' };

/** A state after a round trip through JSON. */
function sent<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value));
}

const opened: Conversations[] = [];
afterEach(async () => {
  for (const conversations of opened.splice(0)) await conversations.close();
});

describe('resumeToolLoop with edited arguments', () => {
  test('runs the call with them, informs the model, and records who changed what', async () => {
    const { config, ran, asked } = setup();
    const run = await runToolLoop(config, hello);
    const done = await resumeToolLoop(config, sent(run.state), edit(run, CHANGED), {
      answeredBy: { clerk: 7 },
    });
    expect(ran).toEqual([RAN]);
    const [record] = done.toolCalls;
    expect(record).toMatchObject({
      status: 'success',
      rawArguments: MODELS,
      arguments: RAN,
      edited: { original: ORIGINAL, editedBy: { clerk: 7 } },
      answeredBy: { clerk: 7 },
    });
    const [, assistant, answer] = asked[1]?.messages ?? [];
    // The call in the model's message does not change.
    expect(assistant).toMatchObject({ tool_calls: [{ function: { arguments: JSON.stringify(MODELS) } }] });
    expect(answer?.content).toBe(
      'paid 1\n\nThe user who approved this call changed its arguments. They are now {"amount":40}.',
    );
  });

  test('informs the model of a removed argument', async () => {
    const { config, asked } = setup({}, { ...MODELS, currency: 'USD', amount: 40 });
    const run = await runToolLoop(config, hello);
    await resumeToolLoop(config, run.state, edit(run, CHANGED));
    expect(asked[1]?.messages.at(-1)?.content).toContain('They are now {"currency":"EUR"}.');
    const free = setup({ parameters: { type: 'object', additionalProperties: true } });
    const other = await runToolLoop(free.config, hello);
    await resumeToolLoop(free.config, other.state, edit(other, { amount: 100 }));
    expect(free.asked[1]?.messages.at(-1)?.content).toContain('Left out: invoice.');
  });

  test.each<[string, unknown, string]>([
    ['of a wrong type', { invoice: 'A-1', amount: 'much' }, 'amount: must be integer'],
    ['beyond a bound', { invoice: 'A-1', amount: 0 }, 'amount: must be >= 1'],
    ['without a required argument', { amount: 4 }, 'invoice: is required'],
    ['with an unknown argument', { ...CHANGED, tip: 3 }, 'the tool has no parameter tip'],
    ['with several faults', { invoice: 4, amount: null }, 'invoice: must be string; amount: must be'],
    ['that are not an object', [1], '`arguments` is not a JSON object'],
    ['that are text', '{"invoice":"A-1"}', '`arguments` is not a JSON object'],
    ['that are a function', () => 1, '`arguments` is not a JSON object'],
  ])('rejects arguments %s; nothing runs, and the run can still be resumed', async (_what, args, told) => {
    const { config, ran, asked } = setup();
    const run = await runToolLoop(config, hello);
    await expect(resumeToolLoop(config, run.state, edit(run, args))).rejects.toMatchObject({
      name: 'InvalidAnswer',
      message: expect.stringContaining(told),
    });
    expect(ran).toEqual([]);
    expect(asked).toHaveLength(1);
    expect((await resumeToolLoop(config, run.state, edit(run, CHANGED))).status).toBe('completed');
    expect(ran).toEqual([RAN]);
  });

  test('rejects arguments that a class-validator rule forbids, before anything runs', async () => {
    const ran: unknown[] = [];
    class Transfer {
      @IsInt()
      @Max(50)
      amount!: number;
    }
    @Toolset()
    class Bank {
      @Tool({ description: 'Transfer', approval: true })
      transfer(@Args() order: Transfer) {
        ran.push(order);
        return order instanceof Transfer;
      }
    }
    const provider = new ScriptedProvider([
      { toolCalls: [{ name: 'transfer', arguments: { amount: 30 } }] },
      { content: 'Done.' },
    ]);
    const config = { provider, model: 'm', tools: discoverTools({ toolsets: [Bank] }) };
    const run = await runToolLoop(config, hello);
    await expect(resumeToolLoop(config, run.state, edit(run, { amount: 60 }))).rejects.toMatchObject({
      name: 'InvalidAnswer',
      message: expect.stringContaining('amount'),
    });
    const done = await resumeToolLoop(config, run.state, edit(run, { amount: 50 }));
    expect(ran).toEqual([{ amount: 50 }]);
    expect(done.toolCalls[0]?.result.forLLM).toBe('true');
  });

  test('unchanged arguments are not an edit', async () => {
    const { config, ran, asked } = setup();
    const run = await runToolLoop(config, hello);
    const answers = run.pending!.map((wait) => ({ ...wait, approved: true }));
    const done = await resumeToolLoop(config, run.state, answers);
    expect(ran).toEqual([ORIGINAL]);
    expect(done.toolCalls[0]).not.toHaveProperty('edited');
    expect(asked[1]?.messages.at(-1)?.content).toBe('paid 1');
  });

  test('a policy that forbids the edited arguments refuses the call, and the model receives both', async () => {
    const policies: unknown[] = [];
    const { config, ran, asked } = setup();
    const strict: ToolLoopConfig = {
      ...config,
      policy: ({ arguments: args }) => {
        policies.push(args.amount);
        return Number(args.amount) <= 100 ? true : { allow: false, reason: 'too much' };
      },
    };
    const run = await runToolLoop(strict, hello);
    const done = await resumeToolLoop(strict, run.state, edit(run, { ...CHANGED, amount: 5000 }));
    expect(policies).toEqual([100, 5000]);
    expect(ran).toEqual([]);
    expect(done.toolCalls[0]).toMatchObject({ status: 'refused', edited: { original: ORIGINAL } });
    const told = String(asked[1]?.messages.at(-1)?.content);
    expect(told).toContain('too much');
    expect(told).toContain('They are now {"amount":5000}.');
  });

  test('accepts them only when an approval is approved', async () => {
    const { config } = setup();
    const run = await runToolLoop(config, hello);
    const [id = ''] = run.pending!.map((wait) => wait.id);
    const refusal = [{ id, approved: false, arguments: CHANGED }];
    await expect(resumeToolLoop(config, run.state, refusal)).rejects.toMatchObject({
      name: 'InvalidAnswer',
      message: expect.stringContaining('only an approval can change the arguments'),
    });
    const client = setup({ approval: false, execution: 'client' });
    const waiting = await runToolLoop(client.config, hello);
    const results = waiting.pending!.map((wait) => ({ id: wait.id, result: 1, arguments: CHANGED }));
    await expect(resumeToolLoop(client.config, waiting.state, results)).rejects.toMatchObject({
      name: 'InvalidAnswer',
    });
    const same = waiting.pending!.map((wait) => ({ ...wait, result: 1 }));
    expect((await resumeToolLoop(client.config, waiting.state, same)).status).toBe('completed');
  });

  test('a client receives the edited arguments', async () => {
    const { config } = setup({ execution: 'client' });
    const run = await runToolLoop(config, hello);
    const next = await resumeToolLoop(config, sent(run.state), edit(run, CHANGED));
    expect(next.pending).toMatchObject([{ kind: 'client', arguments: RAN }]);
    const results = next.pending!.map(({ id }) => ({ id, result: 'paid there' }));
    const done = await resumeToolLoop(config, sent(next.state), results);
    expect(done.toolCalls[0]).toMatchObject({ arguments: RAN, edited: { original: ORIGINAL } });
    expect(done.messages.at(-2)?.content).toContain('paid there\n\nThe user who approved this call');
  });

  test('a method that asks afterwards runs with them each time, and does its work once', async () => {
    const ran: unknown[] = [];
    const works: string[] = [];
    const { config } = setup({
      execute: async (args, context) => {
        ran.push(structuredClone(args));
        await context.once('work', () => works.push(context.idempotencyKey));
        args.amount = 'changed';
        return context.ask({ message: 'Sure?' });
      },
    });
    const run = await runToolLoop(config, hello);
    const asking = await resumeToolLoop(config, sent(run.state), edit(run, CHANGED), { answeredBy: 'first' });
    expect(asking.pending).toMatchObject([{ kind: 'question', arguments: RAN }]);
    const values = asking.pending!.map(({ id }) => ({ id, value: 'yes' }));
    const done = await resumeToolLoop(config, sent(asking.state), values, { answeredBy: 'second' });
    expect(ran).toEqual([RAN, RAN]);
    expect(works).toHaveLength(1);
    expect(done.toolCalls[0]).toMatchObject({
      arguments: RAN,
      edited: { original: ORIGINAL, editedBy: 'first' },
      answeredBy: 'second',
    });
  });

  test('each parallel call gets its own edit, in any order and through JSON', async () => {
    const ran: unknown[] = [];
    const { pay } = setup({ execute: (args: unknown) => void ran.push(args) });
    const toolCalls = [1, 2, 3].map((amount) => ({ name: 'pay', arguments: { invoice: 'A', amount } }));
    const provider = new ScriptedProvider([{ toolCalls }, { content: 'Done.' }]);
    const config = { provider, model: 'm', tools: [pay] };
    let run = await runToolLoop(config, hello);
    for (const { id, arguments: args } of run.pending!.toReversed()) {
      const changed = { ...args, amount: Number(args.amount) * 10 };
      run = await resumeToolLoop(config, sent(run.state), [{ id, approved: true, arguments: changed }]);
    }
    expect(run.status).toBe('completed');
    expect(ran).toMatchObject([{ amount: 10 }, { amount: 20 }, { amount: 30 }]);
    expect(run.toolCalls.map((call) => call.edited?.original.amount)).toEqual([1, 2, 3]);
  });

  test('asks again with the original arguments if the tool no longer accepts the edit', async () => {
    const { pay, ran } = setup();
    const toolCalls = [1, 2].map((amount) => ({ name: 'pay', arguments: { invoice: 'A', amount } }));
    const provider = new ScriptedProvider([{ toolCalls }, { content: 'Done.' }]);
    const run = await runToolLoop({ provider, model: 'm', tools: [pay] }, hello);
    const [first, second] = run.pending!.map(({ id }) => id) as [string, string];
    const edited = [{ id: first, approved: true, arguments: { invoice: 'A', amount: 500 } }];
    const half = await resumeToolLoop({ provider, tools: [pay] }, run.state, edited);
    const { amount } = PARAMETERS.properties;
    const properties = { ...PARAMETERS.properties, amount: { ...amount, maximum: 100 } };
    const stricter = { ...pay, parameters: { ...PARAMETERS, properties } };
    const config = { provider, tools: [stricter] };
    const rest = await resumeToolLoop(config, half.state, [{ id: second, approved: true }]);
    expect(ran).toMatchObject([{ amount: 2 }]);
    expect(rest.pending).toMatchObject([{ kind: 'approval', id: first, arguments: { amount: 1 } }]);
    expect((await resumeToolLoop(config, rest.state, [{ id: first, approved: true }])).status).toBe(
      'completed',
    );
    expect(ran).toMatchObject([{ amount: 2 }, { amount: 1 }]);
  });

  test('rejects an edit if the tool is not in the config', async () => {
    const { config } = setup();
    const run = await runToolLoop(config, hello);
    const without = { ...config, tools: [] };
    await expect(resumeToolLoop(without, run.state, edit(run, CHANGED))).rejects.toMatchObject({
      name: 'DefinitionChanged',
      message: expect.stringContaining("The tool 'pay' has changed"),
    });
  });

  test('streamResumedToolLoop accepts valid edits, and rejects its result for invalid ones', async () => {
    const { config, ran } = setup();
    const run = await runToolLoop(config, hello);
    await expect(
      streamResumedToolLoop(config, run.state, edit(run, { amount: 1 })).result,
    ).rejects.toMatchObject({ name: 'InvalidAnswer' });
    const types: string[] = [];
    for await (const event of streamResumedToolLoop(config, run.state, edit(run, CHANGED)))
      types.push(event.type);
    expect(types).toContain('call-end');
    expect(ran).toEqual([RAN]);
  });
});

describe('stored runs with edited arguments', () => {
  test('resumeStoredRun rejects invalid edits, releases the run, and stores the idempotency key that was used', async () => {
    const store = new MemoryRunStore();
    const keys: string[] = [];
    const { config } = setup({ execute: (_args, { idempotencyKey }) => keys.push(idempotencyKey) });
    const kept: ToolLoopConfig = { ...config, store, checkpoint: 'step', runId: 'r1' };
    const run = await runToolLoop(kept, hello);
    const stored = { store, runId: 'r1' };
    await expect(resumeStoredRun(kept, stored, edit(run, { ...CHANGED, amount: 'x' }))).rejects.toMatchObject(
      {
        name: 'InvalidAnswer',
      },
    );
    const done = await resumeStoredRun(kept, stored, edit(run, CHANGED));
    expect(done.toolCalls).toMatchObject([{ arguments: RAN, idempotencyKey: keys[0] }]);

    const plain = setup({ execute: (_args, { idempotencyKey }) => keys.push(idempotencyKey) });
    const again: ToolLoopConfig = { ...plain.config, store: new MemoryRunStore(), runId: 'r1' };
    const other = await runToolLoop(again, hello);
    await resumeToolLoop(again, other.state, [{ id: other.pending?.[0]?.id ?? '', approved: true }]);
    // The same call with the original arguments has another key.
    expect(keys[1]).not.toBe(keys[0]);
  });

  test('answerStoredRun validates edits with the tools, and recoverRuns runs the call with them', async () => {
    const store = new MemoryRunStore();
    const { config, ran, pay } = setup();
    const kept: ToolLoopConfig = { ...config, store, checkpoint: 'step', runId: 'r1' };
    const run = await runToolLoop(kept, hello);
    const answered = { store, runId: 'r1' };
    await expect(answerStoredRun(answered, edit(run, CHANGED))).rejects.toMatchObject({
      name: 'InvalidAnswer',
      message: expect.stringContaining('cannot be checked without `tools`'),
    });
    const tools = new ToolRegistry().register(pay);
    await expect(answerStoredRun(answered, edit(run, { amount: 4 }), { tools })).rejects.toMatchObject({
      name: 'InvalidAnswer',
      message: expect.stringContaining('invoice: is required'),
    });
    await answerStoredRun(answered, edit(run, CHANGED), { tools, answeredBy: 'clerk' });
    const [recovered] = await recoverRuns({ store, config: kept });
    expect(recovered).toMatchObject({
      result: { status: 'completed', toolCalls: [{ edited: { original: ORIGINAL, editedBy: 'clerk' } }] },
    });
    expect(ran).toEqual([RAN]);
  });
});

describe('conversations with edited arguments', () => {
  test('Conversation.answer rejects invalid edits without a change, and accepts valid ones', async () => {
    const { config, ran } = setup();
    const conversation = new Conversation(config);
    await conversation.prompt('Pay A-1');
    await expect(conversation.answer(edit(conversation, { amount: 3 }))).rejects.toMatchObject({
      name: 'InvalidAnswer',
    });
    expect(conversation.pending).toHaveLength(1);
    const done = await conversation.answer(edit(conversation, CHANGED), { answeredBy: 'clerk' });
    expect(done.toolCalls).toMatchObject([{ edited: { editedBy: 'clerk' } }]);
    expect(ran).toEqual([RAN]);
  });

  test('Conversation.answer accepts only one of two concurrent edits', async () => {
    const { config, ran } = setup();
    const conversation = new Conversation(config);
    await conversation.prompt('Pay A-1');
    const { pending } = conversation;
    const both = await Promise.allSettled([
      conversation.answer(edit({ pending }, CHANGED)),
      conversation.answer(edit({ pending }, { ...CHANGED, amount: 41 })),
    ]);
    expect(both.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    expect(both.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: { name: 'InvalidAnswer' },
    });
    expect(ran).toHaveLength(1);
  });

  test('Conversations.answer rejects invalid edits at once, and stores valid ones', async () => {
    const { config, ran } = setup();
    const store = new MemoryRunStore();
    const conversations = new Conversations({ store, config, pollMs: 20 });
    opened.push(conversations);
    await conversations.prompt('c1', 'Pay A-1');
    const view = await conversations.idle('c1');
    const pending = view?.pending ?? [];
    await expect(conversations.answer('c1', edit({ pending }, { amount: 3 }))).rejects.toMatchObject({
      name: 'InvalidAnswer',
      message: expect.stringContaining('invoice: is required'),
    });
    expect((await conversations.snapshot('c1'))?.status).toBe('suspended');
    await conversations.answer('c1', edit({ pending }, CHANGED));
    expect((await conversations.idle('c1'))?.status).toBe('idle');
    expect(ran).toEqual([RAN]);
    const events = conversations.events('c1', { upTo: (await conversations.snapshot('c1'))?.lastEvent ?? 0 });
    const ends: unknown[] = [];
    for await (const { event } of events) if (event.type === 'call-end') ends.push(event);
    expect(ends).toMatchObject([{ arguments: RAN, edited: { original: ORIGINAL } }]);
  });
});

describe('ToolRegistry', () => {
  test('check parses and validates arguments, and runs nothing', async () => {
    const { pay, ran } = setup();
    const tools = new ToolRegistry().register(pay);
    expect(await tools.check('pay', '{"invoice":"A","amount":"7","more":1}')).toEqual({
      ok: true,
      arguments: { invoice: 'A', amount: 7, currency: 'EUR' },
      removed: ['more'],
    });
    expect(await tools.check('pay', { amount: 0 })).toEqual({
      ok: false,
      problem: 'invoice: is required; amount: must be >= 1',
    });
    expect(await tools.check('constructor', {})).toEqual({
      ok: false,
      problem: "there is no tool 'constructor'",
    });
    expect(ran).toEqual([]);
  });

  test('invoke takes edits from answerWait, and rejects invalid ones', async () => {
    const { pay, ran } = setup();
    const tools = new ToolRegistry().register(pay);
    const call = { id: 'c1', name: 'pay', arguments: MODELS };
    const first = await tools.invoke(call);
    if (first.status !== 'suspended') throw new Error('it was to wait');
    const { waits, journal } = first.suspension;
    const answer = (args: object) =>
      answerWait({ wait: waits[0]!, journal }, { approved: true, arguments: args as typeof MODELS });
    const wrong = answer({ amount: 4 });
    if (!wrong.ok) throw new Error(wrong.problem);
    expect(await tools.invoke({ ...call, journal: wrong.journal })).toMatchObject({
      record: { status: 'rejected' },
    });
    const right = answer(CHANGED);
    if (!right.ok) throw new Error(right.problem);
    expect(await tools.invoke({ ...call, journal: right.journal })).toMatchObject({
      record: { status: 'success', arguments: RAN, rawArguments: MODELS, edited: { original: ORIGINAL } },
    });
    expect(ran).toEqual([RAN]);
  });
});
