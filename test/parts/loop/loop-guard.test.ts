import { describe, expect, test } from '@jest/globals';
import type { ToolLoopConfig } from 'toolwright';
import { historyFaults } from '../../flow/strict-history.js';
import { answers, numberTool, runScript } from './run-script.js';

const call = (name: string, n: unknown = 1) => ({ name, arguments: { n } as never });
const message = (...names: string[]) => ({ toolCalls: names.map((name) => call(name)) });
const told = (times: number) => `[This call returned the same result ${times} times. Do something else.]`;
const tools = [numberTool('a'), numberTool('b'), numberTool('c')];

/** Runs a script of messages, each given as the names of the tools it calls, and then an answer. */
async function play(messages: readonly string[][], config: Partial<ToolLoopConfig> = {}) {
  const script = [...messages.map((names) => message(...names)), { content: 'done' }];
  const { run } = await runScript(script, { tools, maxIterations: 30, ...config });
  expect(historyFaults(run.messages)).toEqual([]);
  expect(answers(run)).toHaveLength(run.toolCalls.length);
  return run;
}

const times = (count: number, ...names: string[]) => Array.from({ length: count }, () => names);

describe('a repeated call with the same result', () => {
  test('adds a warning to its result from the third time on', async () => {
    const run = await play(times(4, 'a'));
    expect(run.status).toBe('completed');
    expect(answers(run)).toEqual(['1', '1', `1\n\n${told(3)}`, `1\n\n${told(4)}`]);
  });

  test('fails the run at the sixth time, with a result for every call', async () => {
    const run = await play(times(9, 'a'));
    expect(run).toMatchObject({
      status: 'failed',
      content: '',
      iterations: 6,
      error: { name: 'ToolLoopStuck', code: 505 },
    });
    expect(run.error?.message).toBe(
      "The model called 'a' 6 times with the same arguments and the same result.",
    );
    expect(answers(run).at(-1)).toBe(`1\n\n${told(6)}`);
    expect(run.toolCalls.at(-1)?.result.forLLM).toBe('1');
  });

  test('is also detected if the result is an error', async () => {
    const broken = numberTool('a', {
      execute: () => {
        throw new Error('disk full');
      },
    });
    const run = await play(times(9, 'a'), { tools: [broken] });
    expect(run).toMatchObject({ status: 'failed', iterations: 6, error: { code: 505 } });
    expect(answers(run)[2]).toBe(`disk full\n\n${told(3)}`);
  });

  test('is detected despite different ids and different spellings of the arguments', async () => {
    const texts = ['{"n":1}', '{ "n": 1 }', '{"n":"1"}', '{"n":1,"extra":true}', '```json\n{"n":1}\n```'];
    const script = texts.map((text, id) => ({
      toolCalls: [{ id: `x${id}`, name: 'a', arguments: text }],
    }));
    const { run } = await runScript([...script, { content: 'done' }], { tools });
    expect(answers(run).at(-1)).toBe(`1\n\n${told(5)}`);
  });

  test('counts once per message, and each call of the message gets the warning', async () => {
    const run = await play(times(3, 'a', 'a'));
    expect(run.status).toBe('completed');
    expect(answers(run)).toEqual(['1', '1', '1', '1', `1\n\n${told(3)}`, `1\n\n${told(3)}`]);
  });

  test('counts as progress beside a new call', async () => {
    const script = Array.from({ length: 12 }, (_, n) => ({ toolCalls: [call('a'), call('b', n)] }));
    const { run } = await runScript([...script, { content: 'done' }], { tools });
    expect(run.status).toBe('completed');
    expect(answers(run).filter((answer) => answer.includes('same result'))).toEqual([]);
  });

  test('is detected in an alternation, A B A B', async () => {
    const run = await play([...Array(12)].map((_, index) => [index % 2 === 0 ? 'a' : 'b']));
    expect(run).toMatchObject({ status: 'failed', error: { name: 'ToolLoopStuck' } });
    expect(run.iterations).toBeLessThanOrEqual(12);
    expect(answers(run)[4]).not.toContain('same result');
    expect(answers(run)[5]).toContain(told(3));
  });

  test('is detected in a cycle of three', async () => {
    const run = await play([...Array(24)].map((_, index) => [['a', 'b', 'c'][index % 3] as string]));
    expect(run).toMatchObject({ status: 'failed', error: { name: 'ToolLoopStuck' } });
  });
});

describe('calls that are not a loop', () => {
  test('include the same call with different results', async () => {
    let count = 0;
    const counter = numberTool('a', { execute: () => ++count });
    const run = await play(times(12, 'a'), { tools: [counter] });
    expect(run.status).toBe('completed');
    expect(answers(run).at(-1)).toBe('12');
  });

  test('include different arguments with the same result', async () => {
    const same = numberTool('a', { execute: () => 'ok' });
    const script = Array.from({ length: 12 }, (_, n) => ({ toolCalls: [call('a', n)] }));
    const { run } = await runScript([...script, { content: 'done' }], { tools: [same] });
    expect(run.status).toBe('completed');
    expect(new Set(answers(run))).toEqual(new Set(['ok']));
  });

  test('include a repeated call after a new one, from which the model may have learned', async () => {
    const script = ['a', 'a', 'b', 'a', 'a', 'c', 'a', 'a'];
    const run = await play(script.map((name) => [name]));
    expect(run.status).toBe('completed');
    expect(answers(run)).toEqual(script.map(() => '1'));
  });

  test('include rejected calls, which count against the retries', async () => {
    const bad = { toolCalls: [call('a', 'x')] };
    const { run } = await runScript([...Array(8).fill(bad), { content: 'done' }], { tools, maxRetries: 8 });
    expect(run.status).toBe('completed');
    expect(answers(run).filter((answer) => answer.includes('same result'))).toEqual([]);
  });

  test('include results with different images and the same text', async () => {
    let count = 0;
    const screenshot = numberTool('a', {
      execute: () => ({
        content: [
          { type: 'text', content: 'Screenshot' },
          { type: 'image', data: btoa(`picture ${++count}`), mimeType: 'image/png' },
        ],
      }),
    });
    expect((await play(times(8, 'a'), { tools: [screenshot] })).status).toBe('completed');
  });

  test('include calls whose arguments cannot be written as JSON', async () => {
    const anything = { name: 'a', description: 'a', parameters: { type: 'object' }, execute: () => 'x' };
    const big = { toolCalls: [{ name: 'a', arguments: { n: 1n } as never }] };
    const { run } = await runScript([big, big, big, { content: 'done' }], { tools: [anything] });
    expect(run.status).toBe('completed');
  });
});

describe('the loop guard', () => {
  test('is disabled with false', async () => {
    const run = await play(times(20, 'a'), { loopGuard: false });
    expect(run.status).toBe('completed');
    expect(new Set(answers(run))).toEqual(new Set(['1']));
  });

  test('has numbers that can be set separately', async () => {
    const both = await play(times(9, 'a'), { loopGuard: { tellAt: 2, endAt: 4 } });
    expect([both.iterations, answers(both)[1]]).toEqual([4, `1\n\n${told(2)}`]);
    const late = await play(times(9, 'a'), { loopGuard: { endAt: Number.POSITIVE_INFINITY } });
    expect([late.status, answers(late)[8]]).toEqual(['completed', `1\n\n${told(9)}`]);
    const quiet = await play(times(9, 'a'), { loopGuard: { tellAt: 99 } });
    expect([quiet.iterations, answers(quiet)[5]]).toEqual([6, '1']);
  });

  test('counts each run separately', async () => {
    for (let run = 0; run < 3; run += 1) expect((await play(times(2, 'a'))).status).toBe('completed');
  });

  test('compares long results to their end', async () => {
    const ends = [...'abcdefgh', ...'hhhhh'].values();
    const long = numberTool('a', { execute: () => 'x'.repeat(5000) + ends.next().value });
    const run = await play(times(20, 'a'), { tools: [long] });
    expect(run).toMatchObject({ status: 'failed', iterations: 13, error: { name: 'ToolLoopStuck' } });
    expect(answers(run).slice(0, 9).join('')).not.toContain('gave the same result');
  });
});
