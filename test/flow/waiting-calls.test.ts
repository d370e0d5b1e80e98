import { describe, expect, test } from '@jest/globals';
import {
  type Answer,
  defineTool,
  resumeToolLoop,
  runToolLoop,
  streamToolLoop,
  type ToolDefinition,
  type ToolLoopConfig,
  type ToolLoopResult,
  ToolResult,
} from 'toolwright';
import { ScriptedProvider, type ScriptedStep } from 'toolwright/testing';
import { z } from 'zod';
import { historyFaults } from './strict-history.js';

const hello = [{ role: 'user', content: 'Hello' }] as const;

function configOf(
  tools: readonly ToolDefinition[],
  steps: readonly ScriptedStep[],
  more: Partial<ToolLoopConfig> = {},
): ToolLoopConfig {
  return { provider: new ScriptedProvider(steps), model: 'm', tools, ...more };
}

function callsOf(...names: readonly string[]): ScriptedStep {
  return { toolCalls: names.map((name, index) => ({ id: `c${index}`, name })) };
}

function contents({ messages }: ToolLoopResult): readonly unknown[] {
  return messages.flatMap((message) => (message.role === 'tool' ? [message.content] : []));
}

function ids({ pending = [] }: ToolLoopResult): readonly string[] {
  return pending.map(({ id }) => id);
}

test('resumeToolLoop reports answers that are not objects with an id', async () => {
  const pay = defineTool({ name: 'pay', description: 'Pay', approval: true, execute: () => 'paid' });
  const config = configOf([pay], [callsOf('pay')]);
  const run = await runToolLoop(config, hello);
  for (const wrong of ['yes', 7, null, undefined, true, {}, { id: 7 }, []]) {
    const resumed = resumeToolLoop(config, run.state, [wrong] as unknown as Answer[]);
    await expect(resumed).rejects.toMatchObject({
      name: 'InvalidAnswer',
      message: expect.stringContaining('an answer without an id'),
    });
  }
});

test('streamToolLoop reports start and end of each call, even of calls that a failing run did not run', async () => {
  const pay = defineTool({
    name: 'pay',
    description: 'Pay',
    approval: true,
    sequential: true,
    execute: () => 'paid',
  });
  const echo = defineTool({ name: 'echo', description: 'Echo', execute: () => 'echo' });
  const config = configOf([pay, echo], [callsOf('nothing', 'pay', 'echo')], { maxRetries: 0 });
  const told: string[] = [];
  const stream = streamToolLoop(config, hello);
  for await (const event of stream)
    if (event.type === 'call-start' || event.type === 'call-end') told.push(`${event.type} ${event.tool}`);
  expect(await stream.result).toMatchObject({ status: 'failed', error: { name: 'ToolRetriesExhausted' } });
  for (const tool of ['nothing', 'pay', 'echo'])
    expect(told.filter((line) => line.endsWith(` ${tool}`))).toEqual([
      `call-start ${tool}`,
      `call-end ${tool}`,
    ]);
});

describe('a refusal', () => {
  const ran: unknown[] = [];
  const book = defineTool({
    name: 'book',
    description: 'Book',
    execute: async (_args, context) => {
      ran.push(
        await Promise.all([context.ask({ message: 'From where?' }), context.ask({ message: 'To where?' })]),
      );
      return 'booked';
    },
  });

  test('closes the other waits of its call, and the run continues', async () => {
    const config = configOf([book], [callsOf('book'), { content: 'Pity.' }]);
    const run = await runToolLoop(config, hello);
    const [from = '', to = ''] = ids(run);
    expect(run.pending).toHaveLength(2);
    const done = await resumeToolLoop(config, run.state, [{ id: to, approved: false, reason: 'no time' }]);
    expect(done).toMatchObject({ status: 'completed', content: 'Pity.' });
    expect(contents(done)).toEqual(["The tool 'book' was refused: no time"]);
    expect(ran).toEqual([]);
    // Beside the refusal, an answer to the closed wait has no effect.
    const both = configOf([book], [{ content: 'Pity.' }]);
    const answers = [
      { id: to, approved: false },
      { id: from, value: 'Rome' },
    ] as const;
    expect(await resumeToolLoop(both, run.state, answers)).toMatchObject({ status: 'completed' });
    expect(ran).toEqual([]);
  });

  test('of one call does not affect the waits of another', async () => {
    const pay = defineTool({ name: 'pay', description: 'Pay', approval: true, execute: () => 'paid' });
    const config = configOf([book, pay], [callsOf('book', 'pay'), { content: 'Done.' }]);
    const run = await runToolLoop(config, hello);
    const [from = '', , approval = ''] = ids(run);
    const partly = await resumeToolLoop(config, run.state, [{ id: from, approved: false }]);
    expect(partly.status).toBe('suspended');
    expect(ids(partly)).toEqual([approval]);
  });
});

test('a call that waits for an approval and then for the client records who gave each answer', async () => {
  const locate = defineTool({ name: 'locate', description: 'Where the user is', approval: true });
  const config = configOf([locate], [callsOf('locate'), { content: 'Done.' }]);
  const first = await runToolLoop(config, hello);
  expect(first.pending).toMatchObject([{ kind: 'approval' }]);
  const yes = { id: ids(first)[0] ?? '', approved: true };
  const second = await resumeToolLoop(config, first.state, [yes], { answeredBy: 'Anna' });
  expect(second.pending).toMatchObject([{ kind: 'client' }]);
  const oslo = { id: ids(second)[0] ?? '', result: 'Oslo' };
  const done = await resumeToolLoop(config, second.state, [oslo], { answeredBy: 'Ben' });
  expect(done).toMatchObject({ status: 'completed' });
  expect(contents(done)).toEqual(['Oslo']);
  expect(done.toolCalls[0]?.answers).toMatchObject([
    { kind: 'approval', answeredBy: 'Anna' },
    { kind: 'client', answeredBy: 'Ben' },
  ]);
});

test('an abort ends a run with a waiting call, which is answered and not suspended', async () => {
  const controller = new AbortController();
  const pay = defineTool({ name: 'pay', description: 'Pay', approval: true, execute: () => 'paid' });
  const stop = defineTool({
    name: 'stop',
    description: 'Stop',
    execute: async () => {
      // The other call waits by then.
      await new Promise(setImmediate);
      controller.abort();
      return 'stopped';
    },
  });
  const config = configOf([pay, stop], [callsOf('pay', 'stop')], { signal: controller.signal });
  const run = await runToolLoop(config, hello);
  expect(run).toMatchObject({ status: 'aborted', error: { name: 'RunAborted' } });
  expect(run).not.toHaveProperty('pending');
  expect(run).not.toHaveProperty('state');
  expect(run.toolCalls).toMatchObject([
    { id: 'c0', status: 'aborted' },
    { id: 'c1', status: 'aborted' },
  ]);
  expect(historyFaults(run.messages)).toEqual([]);
});

test('the limit of unknown tools continues to count after a resume', async () => {
  const pay = defineTool({ name: 'pay', description: 'Pay', approval: true, execute: () => 'paid' });
  const script = [callsOf('a'), callsOf('b'), callsOf('pay'), callsOf('c'), { content: 'never' }];
  const config = configOf([pay], script);
  const run = await runToolLoop(config, hello);
  const [id = ''] = ids(run);
  const state = JSON.parse(JSON.stringify(run.state));
  const done = await resumeToolLoop(config, state, [{ id, approved: true }]);
  expect(done).toMatchObject({ status: 'failed', error: { name: 'ToolRetriesExhausted' } });
  expect(done.toolCalls.map(({ name, attempts }) => [name, attempts])).toEqual([
    ['a', 1],
    ['b', 2],
    ['pay', 1],
    ['c', 3],
  ]);
});

test('context.ask throws the error of a custom rule for an answer that fits the JSON Schema', async () => {
  const schema = z.string().refine((city) => city !== 'Atlantis', 'no such city');
  const book = defineTool({
    name: 'book',
    description: 'Book',
    execute: (_args, context) => context.ask({ message: 'Where to?', schema }),
  });
  const config = configOf([book], [callsOf('book'), { content: 'Sorry.' }]);
  const run = await runToolLoop(config, hello);
  const [id = ''] = ids(run);
  const done = await resumeToolLoop(config, run.state, [{ id, value: 'Atlantis' }]);
  expect(contents(done)).toEqual(['The answer does not fit the schema of the question: no such city']);
  expect(done.toolCalls).toMatchObject([{ status: 'error', result: { error: { cause: { code: 514 } } } }]);
});

test('resumeToolLoop keeps the results of siblings complete: forUser, parts and details', async () => {
  const pay = defineTool({ name: 'pay', description: 'Pay', approval: true, execute: () => 'paid' });
  const draw = defineTool({
    name: 'draw',
    description: 'Draw',
    execute: () =>
      new ToolResult({
        forLLM: 'drawn',
        forUser: 'Here it is',
        content: [{ type: 'text', content: 'drawn' }],
        details: { strokes: 3 },
      }),
  });
  const config = configOf([draw, pay], [callsOf('draw', 'pay'), { content: 'Done.' }]);
  const run = await runToolLoop(config, hello);
  const state = JSON.parse(JSON.stringify(run.state));
  const [id = ''] = ids(run);
  const done = await resumeToolLoop(config, state, [{ id, approved: true }]);
  const [drawn] = run.toolCalls;
  expect(drawn?.result).toMatchObject({ forUser: 'Here it is', details: { strokes: 3 } });
  expect({ ...done.toolCalls[0]?.result }).toEqual({ ...drawn?.result });
});

describe('context.once with failed work', () => {
  test('repeats the work when it is called again', async () => {
    let tries = 0;
    const charge = defineTool({
      name: 'charge',
      description: 'Charge',
      execute: async (_args, context) => {
        const work = () => {
          tries += 1;
          if (tries === 1) throw new Error('line is busy');
          return tries;
        };
        await context.once('charge', work).catch(() => undefined);
        return `charged at try ${await context.once('charge', work)}`;
      },
    });
    const run = await runToolLoop(configOf([charge], [callsOf('charge'), { content: 'Done.' }]), hello);
    expect(contents(run)).toEqual(['charged at try 2']);
  });

  test('repeats the work after a resume, but not work that succeeded', async () => {
    const done: string[] = [];
    const charge = defineTool({
      name: 'charge',
      description: 'Charge',
      execute: async (_args, context) => {
        await context.once('reserve', () => done.push('reserved'));
        const charged = await context
          .once('charge', () => {
            done.push('tried');
            if (done.filter((word) => word === 'tried').length === 1) throw new Error('line is busy');
            return 'charged';
          })
          .catch(({ message }: Error) => message);
        await context.ask({ message: 'Sure?' });
        return charged;
      },
    });
    const config = configOf([charge], [callsOf('charge'), { content: 'Done.' }]);
    const run = await runToolLoop(config, hello);
    const [id = ''] = ids(run);
    const resumed = await resumeToolLoop(config, run.state, [{ id, value: true }]);
    expect(contents(resumed)).toEqual(['charged']);
    expect(done).toEqual(['reserved', 'tried', 'tried']);
  });
});
