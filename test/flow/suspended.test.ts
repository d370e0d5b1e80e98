import { describe, expect, test } from '@jest/globals';
import {
  type Answer,
  answerStoredRun,
  defineTool,
  errorResult,
  type Message,
  type RunState,
  recoverRuns,
  resumeToolLoop,
  runToolLoop,
  streamResumedToolLoop,
  streamToolLoop,
  type ToolDefinition,
  type ToolLoopConfig,
  type ToolLoopResult,
  type ToolPolicy,
} from 'toolwright';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider, type ScriptedReply } from 'toolwright/testing';
import { z } from 'zod';
import { historyFaults } from './strict-history.js';

const hello: readonly Message[] = [{ role: 'user', content: 'Hello' }];
const amount = { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] };

function setup(tools: readonly ToolDefinition[], replies: readonly ScriptedReply[], more: object = {}) {
  const provider = new ScriptedProvider(replies);
  const config: ToolLoopConfig = { provider, model: 'm', tools, ...more };
  return { provider, config };
}

/** A value as another process would receive it. */
function wire<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value)) as Value;
}

function ask(id: string, name: string, args: object = {}): ScriptedReply {
  return { toolCalls: [{ id, name, arguments: args as Record<string, unknown> }] };
}

function contents({ messages }: ToolLoopResult): readonly unknown[] {
  return messages.flatMap((message) => (message.role === 'tool' ? [message.content] : []));
}

function ids({ pending = [] }: ToolLoopResult): readonly string[] {
  return pending.map(({ id }) => id);
}

describe('a suspended run', () => {
  const paid: unknown[] = [];
  const pay = defineTool({
    name: 'pay',
    description: 'Pay',
    parameters: amount,
    approval: true,
    execute: ({ amount: paidAmount }) => {
      paid.push(paidAmount);
      return `paid ${paidAmount}`;
    },
  });
  const locate = defineTool({ name: 'locate', description: 'Where the user is' });
  const echo = defineTool({
    name: 'echo',
    description: 'Echo',
    parameters: { type: 'object', properties: { text: { type: 'string' } } },
    execute: ({ text }) => text,
  });

  test('has pending calls, a state of plain JSON, and a history that ends before the open message', async () => {
    const { config, provider } = setup([pay], [ask('c1', 'pay', { amount: '5' })]);
    const run = await runToolLoop(config, hello);
    expect(run).toMatchObject({ status: 'suspended', content: '', iterations: 1, toolCalls: [] });
    expect(run.pending).toEqual([
      { id: expect.any(String), callId: 'c1', kind: 'approval', tool: 'pay', arguments: { amount: 5 } },
    ]);
    expect(run.messages).toEqual(hello);
    expect(wire(run.state)).toEqual(run.state);
    expect(run.error).toBeUndefined();
    provider.assertUsedUp();
  });

  test('runs an approved call with the approved arguments and continues', async () => {
    paid.length = 0;
    const { config, provider } = setup([pay], [ask('c1', 'pay', { amount: 5 }), { content: 'Done.' }]);
    const run = await runToolLoop(config, hello);
    const [id = ''] = ids(run);
    const done = await resumeToolLoop(config, wire(run.state), [{ id, approved: true }]);
    expect(done).toMatchObject({ status: 'completed', content: 'Done.', iterations: 2 });
    expect(paid).toEqual([5]);
    expect(contents(done)).toEqual(['paid 5']);
    expect(done.messages[0]).toEqual(hello[0]);
    expect(historyFaults(done.messages)).toEqual([]);
    expect(done.toolCalls).toMatchObject([{ id: 'c1', status: 'success', rawArguments: { amount: 5 } }]);
    provider.assertUsedUp();
  });

  test('answers a refused call with the reason and does not run it', async () => {
    paid.length = 0;
    const { config } = setup([pay], [ask('c1', 'pay', { amount: 5 }), { content: 'Pity.' }]);
    const run = await runToolLoop(config, hello);
    const [id = ''] = ids(run);
    const done = await resumeToolLoop(config, run.state, [{ id, approved: false, reason: 'too dear' }]);
    expect(done).toMatchObject({ status: 'completed', content: 'Pity.' });
    expect(contents(done)).toEqual(["The tool 'pay' was refused: too dear"]);
    expect(done.toolCalls[0]).toMatchObject({ status: 'refused', result: { isError: true } });
    expect(paid).toEqual([]);
  });

  test('does not ask for approval of invalid arguments', async () => {
    const { config, provider } = setup([pay], [ask('c1', 'pay', { amount: 'much' }), { content: 'Sorry.' }]);
    const run = await runToolLoop(config, hello);
    expect(run).toMatchObject({ status: 'completed', toolCalls: [{ status: 'rejected' }] });
    provider.assertUsedUp();
  });

  test('does not ask for approval of a call that a policy refuses', async () => {
    const policy: ToolPolicy = () => ({ allow: false, reason: 'not you' });
    const { config } = setup([pay], [ask('c1', 'pay', { amount: 1 }), { content: 'Sorry.' }], { policy });
    expect(await runToolLoop(config, hello)).toMatchObject({ toolCalls: [{ status: 'refused' }] });
  });

  test('asks for approval if a function of arguments and context requires it', async () => {
    const seen: unknown[] = [];
    const limited = defineTool({
      name: 'pay',
      description: 'Pay',
      parameters: amount,
      approval: (args, context) => {
        seen.push(context.data.user);
        return Number(args.amount) > 10;
      },
      execute: ({ amount: paidAmount }) => `paid ${paidAmount}`,
    });
    const reply = {
      toolCalls: [
        { id: 'a', name: 'pay', arguments: { amount: 5 } },
        { id: 'b', name: 'pay', arguments: { amount: 50 } },
      ],
    };
    const { config } = setup([limited], [reply]);
    const run = await runToolLoop(config, hello, { data: { user: 'u1' } });
    expect(run.pending).toMatchObject([{ callId: 'b', kind: 'approval' }]);
    expect(run.toolCalls).toMatchObject([{ id: 'a', status: 'success' }]);
    expect(seen).toEqual(['u1', 'u1']);
  });

  test('uses the result of the client for a client tool', async () => {
    const { config } = setup([locate], [ask('c1', 'locate'), { content: 'Oslo!' }]);
    const run = await runToolLoop(config, hello);
    expect(run.pending).toMatchObject([{ kind: 'client', tool: 'locate', arguments: {} }]);
    const [id = ''] = ids(run);
    const done = await resumeToolLoop(config, run.state, [{ id, result: { city: 'Oslo' } }]);
    expect(contents(done)).toEqual(['{"city":"Oslo"}']);
  });

  test('accepts a serialized ToolResult from the client, also an error', async () => {
    const { config } = setup([locate], [ask('c1', 'locate'), { content: 'Hm.' }]);
    const run = await runToolLoop(config, hello);
    const [id = ''] = ids(run);
    const done = await resumeToolLoop(config, run.state, [{ id, result: wire(errorResult('no signal')) }]);
    expect(done.toolCalls).toMatchObject([
      { status: 'error', result: { forLLM: 'no signal', isError: true } },
    ]);
  });

  test('does not run settled siblings again', async () => {
    let runs = 0;
    const count = defineTool({ name: 'count', description: 'Count', execute: () => `run ${++runs}` });
    const reply = {
      toolCalls: [
        { id: 'a', name: 'count' },
        { id: 'b', name: 'pay', arguments: { amount: 1 } },
        { id: 'c', name: 'nothing' },
        { id: 'd', name: 'locate' },
      ],
    };
    const { config } = setup([count, pay, locate], [reply, { content: 'Done.' }]);
    const run = await runToolLoop(config, hello);
    const [approval = '', client = ''] = ids(run);
    const done = await resumeToolLoop(config, wire(run.state), [
      { id: client, result: 'Oslo' },
      { id: approval, approved: true },
    ]);
    expect(contents(done)).toEqual(['run 1', 'paid 1', 'tool not found: nothing', 'Oslo']);
    expect(runs).toBe(1);
    expect(done.toolCalls.map(({ id }) => id)).toEqual(['a', 'b', 'c', 'd']);
    expect(historyFaults(done.messages)).toEqual([]);
  });

  test('stays suspended on partial answers, runs nothing, and keeps the ids of the other pending calls', async () => {
    paid.length = 0;
    const reply = {
      toolCalls: [
        { id: 'a', name: 'pay', arguments: { amount: 1 } },
        { id: 'b', name: 'pay', arguments: { amount: 2 } },
      ],
    };
    const { config, provider } = setup([pay], [reply, { content: 'Done.' }]);
    const run = await runToolLoop(config, hello);
    const [one = '', other = ''] = ids(run);
    const partial = await resumeToolLoop(config, run.state, [{ id: other, approved: true }]);
    expect(partial).toMatchObject({ status: 'suspended', iterations: 1, pending: [{ id: one }] });
    expect(paid).toEqual([]);
    expect(provider.requests).toHaveLength(1);
    await expect(
      resumeToolLoop(config, partial.state, [{ id: other, approved: true }]),
    ).rejects.toMatchObject({
      name: 'InvalidAnswer',
      code: 514,
    });
    const done = await resumeToolLoop(config, wire(partial.state), [{ id: one, approved: false }]);
    expect(contents(done)).toEqual(["The tool 'pay' was refused: it was not approved", 'paid 2']);
  });

  test.each<[string, (id: string) => unknown]>([
    ['an unknown id', () => [{ id: 'approval_x', approved: true }]],
    ['an answer without an id', () => [{ approved: true }]],
    [
      'the same id twice',
      (id) => [
        { id, approved: true },
        { id, approved: true },
      ],
    ],
    ['an answer of another kind', (id) => [{ id, value: 'yes' }]],
    ['an approval that is not a boolean', (id) => [{ id, approved: 'yes' }]],
    ['answers that are not a list', () => 'yes'],
    [
      'a valid answer beside an invalid one',
      (id) => [
        { id, approved: true },
        { id: 'x', approved: true },
      ],
    ],
  ])('refuses %s and changes nothing', async (_what, answersOf) => {
    paid.length = 0;
    const { config } = setup([pay], [ask('c1', 'pay', { amount: 5 }), { content: 'Done.' }]);
    const run = await runToolLoop(config, hello);
    const before = JSON.stringify(run.state);
    const [id = ''] = ids(run);
    await expect(resumeToolLoop(config, run.state, answersOf(id) as readonly Answer[])).rejects.toMatchObject(
      { name: 'InvalidAnswer' },
    );
    expect(JSON.stringify(run.state)).toBe(before);
    expect(paid).toEqual([]);
    expect(await resumeToolLoop(config, run.state, [{ id, approved: true }])).toMatchObject({
      content: 'Done.',
    });
  });

  test('refuses an answer to an earlier call with the same id and arguments', async () => {
    const same = ask('c1', 'pay', { amount: 5 });
    const { config } = setup([pay], [same, same, { content: 'Done.' }]);
    const first = await runToolLoop(config, hello);
    const [id = ''] = ids(first);
    const second = await resumeToolLoop(config, first.state, [{ id, approved: true }]);
    expect(second.status).toBe('suspended');
    expect(ids(second)).not.toContain(id);
    await expect(resumeToolLoop(config, second.state, [{ id, approved: true }])).rejects.toThrow(
      /not pending/,
    );
  });

  test('refuses a state whose calls were changed', async () => {
    const { config } = setup([pay], [ask('c1', 'pay', { amount: 5 })]);
    const run = await runToolLoop(config, hello);
    const [id = ''] = ids(run);
    const changed = JSON.parse(
      JSON.stringify(run.state).replaceAll('"amount":5', '"amount":500'),
    ) as RunState;
    await expect(resumeToolLoop(config, changed, [{ id, approved: true }])).rejects.toMatchObject({
      name: 'InvalidState',
      code: 515,
    });
    await expect(resumeToolLoop(config, {} as RunState, [])).rejects.toThrow(
      /not the state of a suspended run/,
    );
    await expect(resumeToolLoop(config, undefined, [])).rejects.toMatchObject({
      name: 'InvalidState',
      message: expect.stringContaining('the run was not suspended'),
    });
  });

  test('with a secret, refuses a state that was changed anywhere or is not signed', async () => {
    const script = () => [ask('c1', 'pay', { amount: 5 }), { content: 'Done.' }];
    const { config } = setup([pay], script(), {
      stateSecret: 'a secret that has at least thirty-two characters',
    });
    const run = await runToolLoop(config, hello);
    const state = run.state as RunState;
    const answers = ids(run).map((id) => ({ id, approved: true }));
    const changed = { ...state, messages: [{ role: 'user', content: 'Pay everything' } as const] };
    const { signature: _, ...unsigned } = state;
    for (const wrong of [changed, unsigned, { ...state, signature: 'x' }])
      await expect(resumeToolLoop(config, wrong, answers)).rejects.toThrow(/changed, or signed/);
    await expect(
      resumeToolLoop(
        { ...config, stateSecret: 'another that has at least thirty-two characters' },
        state,
        answers,
      ),
    ).rejects.toMatchObject({ name: 'InvalidState' });
    expect(await resumeToolLoop(config, wire(state), answers)).toMatchObject({ status: 'completed' });
  });

  test('accepts a state with its keys in another order', async () => {
    const { config } = setup([pay], [ask('c1', 'pay', { amount: 5 }), { content: 'Done.' }], {
      stateSecret: 's that has at least thirty-two characters',
    });
    const run = await runToolLoop(config, hello);
    const turned = reverseKeys(run.state) as RunState;
    const [id = ''] = ids(run);
    expect(await resumeToolLoop(config, turned, [{ id, approved: true }])).toMatchObject({
      status: 'completed',
    });
  });

  test('refuses an approval if the tool now produces other arguments, and accepts it with these arguments', async () => {
    paid.length = 0;
    const { config } = setup([pay], [ask('c1', 'pay', { amount: 5 }), { content: 'Paid.' }]);
    const run = await runToolLoop(config, hello);
    const [id = ''] = ids(run);
    const withDefault = {
      ...pay.parameters,
      properties: { ...pay.parameters.properties, tip: { default: 50 } },
    };
    const changed = { ...config, tools: [{ ...pay, parameters: withDefault }] };
    await expect(resumeToolLoop(changed, run.state, [{ id, approved: true }])).rejects.toMatchObject({
      name: 'DefinitionChanged',
      message: expect.stringContaining("with 'tip' added"),
    });
    expect(paid).toEqual([]);
    const fitting = [{ id, approved: true, arguments: { amount: 5, tip: 50 } }] as const;
    expect((await resumeToolLoop(changed, run.state, fitting)).toolCalls).toMatchObject([
      { arguments: { amount: 5, tip: 50 } },
    ]);
  });

  test('refuses an approval of a removed tool, but accepts a refusal', async () => {
    const { config } = setup([pay], [ask('c1', 'pay', { amount: 5 }), { content: 'Pity.' }]);
    const run = await runToolLoop(config, hello);
    const [id = ''] = ids(run);
    const without = { ...config, tools: [echo] };
    await expect(resumeToolLoop(without, run.state, [{ id, approved: true }])).rejects.toMatchObject({
      name: 'DefinitionChanged',
      message: expect.stringContaining("The tool 'pay' has changed"),
    });
    const done = await resumeToolLoop(without, run.state, [{ id, approved: false }]);
    expect(done.status).toBe('completed');
  });

  test('defers calls after a waiting call if they are sequential', async () => {
    const order: string[] = [];
    const step = defineTool({
      name: 'step',
      description: 'Step',
      sequential: true,
      parameters: { type: 'object', properties: { name: { type: 'string' } } },
      execute: ({ name }) => {
        order.push(String(name));
        return name;
      },
    });
    const reply = {
      toolCalls: [
        { id: 'a', name: 'step', arguments: { name: 'before' } },
        { id: 'b', name: 'locate' },
        { id: 'c', name: 'step', arguments: { name: 'after' } },
      ],
    };
    const { config } = setup([step, locate], [reply, { content: 'Done.' }]);
    const run = await runToolLoop(config, hello);
    expect(order).toEqual(['before']);
    expect(run.toolCalls).toHaveLength(1);
    const [id = ''] = ids(run);
    const done = await resumeToolLoop(config, wire(run.state), [{ id, result: 'here' }]);
    expect(order).toEqual(['before', 'after']);
    expect(contents(done)).toEqual(['before', 'here', 'after']);
  });

  test('ends with an abort: all calls are answered and the history is valid', async () => {
    const stop = new AbortController();
    const abort = defineTool({ name: 'abort', description: 'Abort', execute: () => stop.abort() });
    const reply = {
      toolCalls: [
        { id: 'a', name: 'locate' },
        { id: 'b', name: 'abort' },
      ],
    };
    const { config } = setup([locate, abort], [reply], { signal: stop.signal });
    const run = await runToolLoop(config, hello);
    expect(run.status).toBe('aborted');
    expect(run.pending).toBeUndefined();
    expect(historyFaults(run.messages)).toEqual([]);
    expect(run.messages).toHaveLength(4);
  });

  test('fails instead of waiting if another call has exhausted the retries', async () => {
    const reply = {
      toolCalls: [
        { id: 'a', name: 'pay', arguments: { amount: 1 } },
        { id: 'b', name: 'echo', arguments: { text: 7 } },
      ],
    };
    const { config } = setup([pay, echo], [reply], { maxRetries: 0 });
    const run = await runToolLoop(config, hello);
    expect(run).toMatchObject({ status: 'failed', error: { name: 'ToolRetriesExhausted' } });
    expect(run.toolCalls).toMatchObject([
      { id: 'a', status: 'not_run' },
      { id: 'b', status: 'rejected' },
    ]);
    expect(historyFaults(run.messages)).toEqual([]);
  });

  test('continues to count retries and iterations', async () => {
    const bad = ask('x', 'echo', { text: 7 });
    const good = ask('c1', 'pay', { amount: 5 });
    const { config } = setup([pay, echo], [bad, good, bad], { maxRetries: 1, maxIterations: 3 });
    const run = await runToolLoop(config, hello);
    const [id = ''] = ids(run);
    const done = await resumeToolLoop(config, wire(run.state), [{ id, approved: true }]);
    expect(done).toMatchObject({ status: 'failed', iterations: 3, error: { name: 'ToolRetriesExhausted' } });
  });

  test('streams call-start again for the suspended call after the resume', async () => {
    const { config } = setup([pay], [ask('c1', 'pay', { amount: 5 }), { content: 'Done.' }]);
    const first = streamToolLoop(config, hello);
    const types = [];
    for await (const { type } of first) types.push(type);
    expect(types).toEqual([
      'run-start',
      'step-start',
      'reply-end',
      'call-start',
      'call-suspended',
      'step-end',
      'run-end',
    ]);
    const run = await first.result;
    const [id = ''] = ids(run);
    const resumed = [];
    for await (const { type } of streamResumedToolLoop(config, run.state, [{ id, approved: true }]))
      resumed.push(type);
    expect(resumed).toEqual(
      'run-start call-start call-end step-start text-delta reply-end step-end run-end'.split(' '),
    );
    const wrong = streamResumedToolLoop(config, run.state, [{ id: 'x', approved: true }]);
    await expect(wrong.result).rejects.toMatchObject({ name: 'InvalidAnswer' });
  });

  test('replaces arguments without a JSON form by an empty text', async () => {
    const first = { ...pay, sequential: true };
    const ring: Record<string, unknown> = {};
    ring.self = ring;
    const calls = [
      { id: 'c1', name: 'pay', arguments: { amount: 5 } },
      { id: 'c2', name: 'echo', arguments: ring },
    ];
    const { config } = setup([first, echo], [{ toolCalls: calls }, { content: 'Done.' }]);
    const run = await runToolLoop(config, hello);
    const answers = ids(run).map((id) => ({ id, approved: true }));
    const resumed = await resumeToolLoop(config, wire(run.state), answers);
    expect(resumed.toolCalls).toMatchObject([{ status: 'success' }, { id: 'c2', rawArguments: '' }]);
  });

  test('streams with the model of the resume options, without a scope', async () => {
    const { config, provider } = setup([pay], [ask('c1', 'pay', { amount: 5 }), { content: 'Done.' }]);
    const run = await runToolLoop(config, hello);
    const answers = ids(run).map((id) => ({ id, approved: true }));
    const { result } = streamResumedToolLoop(config, run.state, answers, { model: 'other' });
    expect(await result).toMatchObject({ status: 'completed', content: 'Done.' });
    expect(provider.requests.map(({ model }) => model)).toEqual(['m', 'other']);
  });
});

describe('a tool that asks', () => {
  const done: string[] = [];
  const book = defineTool({
    name: 'book',
    description: 'Book',
    parameters: { type: 'object', properties: { city: { type: 'string' } } },
    async execute({ city }, context) {
      done.push('begin');
      const price = await context.once('price', () => {
        done.push('price');
        return { amount: 7, at: new Date(0) };
      });
      const sure = await context.ask({ message: `${city} for ${price.amount}?`, schema: z.boolean() });
      const seat = await context.ask({
        message: 'Seat?',
        schema: { type: 'string', pattern: '^[0-9]+[A-F]$' },
      });
      return [sure, seat, price.at];
    },
  });

  test('runs again from its start; answers and finished `once` work are replayed, all else is repeated', async () => {
    done.length = 0;
    const { config } = setup([book], [ask('c1', 'book', { city: 'Oslo' }), { content: 'Booked.' }]);
    const first = await runToolLoop(config, hello);
    expect(first.pending).toMatchObject([
      { kind: 'question', message: 'Oslo for 7?', schema: { type: 'boolean' }, arguments: { city: 'Oslo' } },
    ]);
    const second = await resumeToolLoop(config, wire(first.state), [
      { id: ids(first)[0] ?? '', value: true },
    ]);
    expect(second.pending).toMatchObject([{ kind: 'question', message: 'Seat?' }]);
    const third = await resumeToolLoop(config, wire(second.state), [
      { id: ids(second)[0] ?? '', value: '12A' },
    ]);
    expect(contents(third)).toEqual(['[true,"12A","1970-01-01T00:00:00.000Z"]']);
    expect(done).toEqual(['begin', 'price', 'begin', 'begin']);
  });

  test('refuses an answer that does not fit, and changes nothing', async () => {
    const { config } = setup([book], [ask('c1', 'book', { city: 'Oslo' })]);
    const run = await runToolLoop(config, hello);
    const [id = ''] = ids(run);
    await expect(resumeToolLoop(config, run.state, [{ id, value: 'maybe' }])).rejects.toThrow(
      /does not fit: must be boolean/,
    );
    expect((await resumeToolLoop(config, run.state, [{ id, value: true }])).status).toBe('suspended');
  });

  test('is refused if the user does not want to answer', async () => {
    const { config } = setup([book], [ask('c1', 'book', { city: 'Oslo' }), { content: 'Well.' }]);
    const run = await runToolLoop(config, hello);
    const [id = ''] = ids(run);
    const refused = await resumeToolLoop(config, run.state, [
      { id, approved: false, reason: 'none of your business' },
    ]);
    expect(contents(refused)).toEqual(["The tool 'book' was refused: none of your business"]);
  });

  test('handles a refusal itself with onRefusal, also after a restart with another open question', async () => {
    const transfer = defineTool({
      name: 'transfer',
      description: 'Transfer',
      execute: async (_args, context) => {
        const answers = await Promise.allSettled([
          context.ask({ message: 'To whom?', onRefusal: 'throw' }),
          context.ask({ message: 'How much?' }),
        ]);
        return answers.map((answer) =>
          answer.status === 'fulfilled' ? answer.value : answer.reason.message,
        );
      },
    });
    const { config } = setup([transfer], [ask('c1', 'transfer'), { content: 'Done.' }]);
    const run = await runToolLoop(config, hello);
    const [who = '', much = ''] = ids(run);
    expect(run.state?.version).toBe(3);
    const half = await resumeToolLoop(config, wire(run.state), [{ id: who, approved: false, reason: 'no' }]);
    expect(half.pending).toMatchObject([{ id: much, message: 'How much?' }]);
    // An older version would read the refusal as an answer without a value.
    expect(half.state?.version).toBe(6);
    const end = await resumeToolLoop(config, wire(half.state), [{ id: much, value: 7 }]);
    expect(contents(end)).toEqual(['["no",7]']);
  });

  test('handles a refusal itself with onRefusal if another process continues the run', async () => {
    const hire = defineTool({
      name: 'hire',
      description: 'Hire',
      execute: (_args, context) =>
        context
          .ask({ message: 'Sure?', onRefusal: 'throw' })
          .catch((error: Error) => `cancelled: ${error.message}`),
    });
    const store = new MemoryRunStore();
    const { config } = setup([hire], [ask('c1', 'hire'), { content: 'Done.' }], { store });
    const run = await runToolLoop(config, hello);
    const answer = { id: ids(run)[0] ?? '', approved: false, reason: 'too old' };
    await answerStoredRun({ store, runId: String(run.runId) }, [answer]);
    const [recovered] = await recoverRuns({ store, config });
    expect(recovered).toMatchObject({ result: { status: 'completed' } });
    expect(JSON.stringify(recovered)).toContain('cancelled: too old');
  });

  test('may ask several questions concurrently, which are answered in any order', async () => {
    const both = defineTool({
      name: 'both',
      description: 'Both',
      execute: async (_args, context) =>
        Promise.all([context.ask({ message: 'A?' }), context.ask({ message: 'B?' })]),
    });
    const { config } = setup([both], [ask('c1', 'both'), { content: 'Done.' }]);
    const run = await runToolLoop(config, hello);
    const [a = '', b = ''] = ids(run);
    const half = await resumeToolLoop(config, run.state, [{ id: b, value: 2 }]);
    expect(half.pending).toMatchObject([{ id: a, message: 'A?' }]);
    const all = await resumeToolLoop(config, wire(half.state), [{ id: a, value: 1 }]);
    expect(contents(all)).toEqual(['[1,2]']);
  });

  test('is suspended even if it catches what `ask` throws, and its `finally` runs', async () => {
    const ended: string[] = [];
    const swallow = defineTool({
      name: 'swallow',
      description: 'Swallow',
      async execute(_args, context) {
        try {
          return await context.ask({ message: 'Sure?' });
        } catch {
          return 'never mind';
        } finally {
          ended.push('finally');
        }
      },
    });
    const { config } = setup([swallow], [ask('c1', 'swallow'), { content: 'Done.' }]);
    const run = await runToolLoop(config, hello);
    expect(run.status).toBe('suspended');
    expect(ended).toEqual(['finally']);
    const [id = ''] = ids(run);
    expect(contents(await resumeToolLoop(config, run.state, [{ id, value: 'yes' }]))).toEqual(['yes']);
  });

  test('gets an error if its call was already answered, and suspends nothing', async () => {
    const [timedOut, told] = [Promise.withResolvers<void>(), Promise.withResolvers<unknown>()];
    const late = defineTool({
      name: 'late',
      description: 'Late',
      timeoutMs: 5,
      async execute(_args, context) {
        await timedOut.promise;
        told.resolve(await context.ask({ message: 'Sure?' }).catch((error) => error));
      },
    });
    const { config } = setup([late], [ask('c1', 'late'), { content: 'Done.' }]);
    const run = await runToolLoop(config, hello);
    expect(run).toMatchObject({ status: 'completed', toolCalls: [{ status: 'timed_out' }] });
    timedOut.resolve();
    expect(await told.promise).toMatchObject({
      name: 'NotExecutableHere',
      message: expect.stringContaining('after its call has ended'),
    });
  });

  test('fails if it asks another question when it runs again', async () => {
    let turn = 0;
    const fickle = defineTool({
      name: 'fickle',
      description: 'Fickle',
      execute: (_args, context) => context.ask({ message: `Question ${++turn}` }),
    });
    const { config } = setup([fickle], [ask('c1', 'fickle'), { content: 'Done.' }]);
    const run = await runToolLoop(config, hello);
    const [id = ''] = ids(run);
    const resumed = await resumeToolLoop(config, run.state, [{ id, value: 1 }]);
    expect(resumed.toolCalls).toMatchObject([{ status: 'error' }]);
    expect(contents(resumed)[0]).toMatch(/must ask the same/);
  });

  test('repeats failed `once` work, and waits for running `once` work', async () => {
    const runs: string[] = [];
    const work = defineTool({
      name: 'work',
      description: 'Work',
      async execute(_args, context) {
        const slow = context.once('slow', async () => {
          await new Promise(setImmediate);
          runs.push('slow');
          return 'kept';
        });
        const failing = context.once('failing', () => {
          runs.push('failing');
          if (runs.filter((run) => run === 'failing').length === 1) throw new Error('first time');
          return 'second time';
        });
        const [kept, later] = await Promise.all([
          slow,
          failing.catch(() => ''),
          context.ask({ message: 'Go?' }),
        ]);
        return `${kept} ${later}`;
      },
    });
    const { config } = setup([work], [ask('c1', 'work'), { content: 'Done.' }]);
    const run = await runToolLoop(config, hello);
    const [id = ''] = ids(run);
    const resumed = await resumeToolLoop(config, wire(run.state), [{ id, value: 'go' }]);
    expect(contents(resumed)).toEqual(['kept second time']);
    expect(runs).toEqual(['failing', 'slow', 'failing']);
  });

  const ring: Record<string, unknown> = {};
  ring.self = ring;

  test.each([
    ['a function', () => 1],
    ['a big integer', { amount: 10n }],
    ['circular', ring],
    [
      'an object whose `toJSON` throws',
      {
        toJSON: () => {
          throw new Error('no');
        },
      },
    ],
  ])('fails with its key if a value of `once` is not JSON: %s', async (_what, value) => {
    const odd = defineTool({
      name: 'odd',
      description: 'Odd',
      execute: (_args, context) => context.once('fn', () => value),
    });
    const { config } = setup([odd], [ask('c1', 'odd'), { content: 'Done.' }]);
    expect(contents(await runToolLoop(config, hello))).toEqual([
      "context.once('fn'): the value cannot be written as JSON",
    ]);
  });
});

function reverseKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reverseKeys);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, member]) => [key, reverseKeys(member)]),
  );
}
