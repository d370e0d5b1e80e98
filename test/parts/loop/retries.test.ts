import { describe, expect, test } from '@jest/globals';
import { answers, numberTool, runScript } from './run-script.js';

const bad = (name: string) => ({ toolCalls: [{ name, arguments: { n: 'x' } }] });
const good = (name: string) => ({ toolCalls: [{ name, arguments: { n: 1 } }] });
const done = { content: 'done' };

describe('retries', () => {
  test('allow two corrections, and the third rejection ends the run', async () => {
    const { run } = await runScript([bad('a'), bad('a'), bad('a'), done], { tools: [numberTool('a')] });
    expect(run).toMatchObject({ status: 'failed', iterations: 3, content: '' });
    expect(run.error).toMatchObject({ name: 'ToolRetriesExhausted', code: 503 });
    expect(run.error?.cause).toMatchObject({ name: 'InvalidArguments' });
    expect(answers(run)).toHaveLength(3);
  });

  test('allow a valid call after two rejections, whose record has attempts: 3', async () => {
    const { run } = await runScript([bad('a'), bad('a'), good('a'), done], { tools: [numberTool('a')] });
    expect(run.status).toBe('completed');
    expect(run.toolCalls.map(({ attempts, status }) => [attempts, status])).toEqual([
      [1, 'rejected'],
      [2, 'rejected'],
      [3, 'success'],
    ]);
  });

  test('start again from zero after a success of the tool', async () => {
    const errs = [bad('a'), good('a'), bad('a'), bad('a'), good('a'), bad('a'), bad('a')];
    const { run } = await runScript([...errs, done], { tools: [numberTool('a')] });
    expect(run).toMatchObject({ status: 'completed', iterations: 8 });
    expect(run.toolCalls.map(({ attempts }) => attempts)).toEqual([1, 2, 1, 2, 3, 1, 2]);
    const over = await runScript([...errs, bad('a'), done], { tools: [numberTool('a')] });
    expect(over.run).toMatchObject({ status: 'failed', iterations: 8, error: { code: 503 } });
  });

  test('do not start again after a success of another tool', async () => {
    const script = [bad('a'), good('b'), bad('a'), good('b'), bad('a'), done];
    const { run } = await runScript(script, { tools: [numberTool('a'), numberTool('b')] });
    expect(run).toMatchObject({ status: 'failed', iterations: 5 });
  });

  test('end the run after ten times as many rejections, regardless of successes between them', async () => {
    const script = Array.from({ length: 11 }, () => [bad('a'), good('a')]).flat();
    const { run } = await runScript([...script, done], {
      tools: [numberTool('a')],
      maxRetries: 1,
      maxIterations: 30,
      loopGuard: false,
    });
    expect(run).toMatchObject({ status: 'failed', iterations: 21, error: { code: 503 } });
    expect(run.error?.message).toContain('11 unusable calls in this run');
  });

  test('count several rejections in one message once', async () => {
    const three = { toolCalls: [...bad('a').toolCalls, ...bad('a').toolCalls, ...bad('a').toolCalls] };
    const { run } = await runScript([three, three, done], { tools: [numberTool('a')] });
    expect(run).toMatchObject({ status: 'completed', iterations: 3 });
  });

  test('are counted separately for each tool', async () => {
    const script = [bad('a'), bad('b'), bad('a'), bad('b'), done];
    const { run } = await runScript(script, { tools: [numberTool('a'), numberTool('b')] });
    expect(run.status).toBe('completed');
  });

  test('are counted together for all unknown tools', async () => {
    const { run } = await runScript([bad('x'), bad('y'), bad('constructor'), done], {
      tools: [numberTool('a')],
    });
    expect(run).toMatchObject({ status: 'failed', iterations: 3, error: { code: 503 } });
    expect(answers(run)).toEqual(['tool not found: x', 'tool not found: y', 'tool not found: constructor']);
  });

  test('use the tool’s own value before that of the run', async () => {
    const tools = [numberTool('a', { retries: 0 }), numberTool('b', { retries: 3 })];
    const none = await runScript([bad('a'), done], { tools });
    expect(none.run).toMatchObject({ status: 'failed', iterations: 1 });
    const three = await runScript([bad('b'), bad('b'), bad('b'), done], { tools, maxRetries: 0 });
    expect(three.run).toMatchObject({ status: 'completed', iterations: 4 });
  });

  test('do not stop other calls of a message, even of the message that ends the run', async () => {
    const ran: unknown[] = [];
    const b = numberTool('b', { execute: ({ n }: { n: number }) => void ran.push(n) });
    const both = { toolCalls: [...bad('a').toolCalls, ...good('b').toolCalls] };
    const { run } = await runScript([both, done], { tools: [numberTool('a'), b], maxRetries: 0 });
    expect(run).toMatchObject({ status: 'failed', iterations: 1 });
    expect(ran).toEqual([1]);
    expect(answers(run)).toEqual([
      'Validation failed for tool \'a\':\n  - n: must be integer\nReceived: {"n":"x"}',
      'ok',
    ]);
  });

  test('are not used up by errors that a tool throws', async () => {
    const broken = numberTool('a', {
      execute: () => {
        throw new Error('disk full');
      },
    });
    const script = [good('a'), good('a'), good('a'), good('a'), done];
    const { run } = await runScript(script, { tools: [broken], maxRetries: 0 });
    expect(run.status).toBe('completed');
  });
});
