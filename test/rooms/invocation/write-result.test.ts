import { runInNewContext } from 'node:vm';
import { describe, expect, test } from '@jest/globals';
import { errorResult, ToolResult, toolResult, userResult } from '../../../src/contract/tool-result.js';
import { writeFailure, writeResult } from '../../../src/invocation/write-result.js';

describe('what a method returns', () => {
  test.each([
    ['text', 'text'],
    ['', ''],
    [undefined, 'ok'],
    [null, 'ok'],
    [100, '100'],
    [0, '0'],
    [false, 'false'],
    [{ a: [1] }, '{"a":[1]}'],
    [[], '[]'],
    [new Date(0), '"1970-01-01T00:00:00.000Z"'],
    [{ big: 10n }, '{"big":"10"}'],
    [10n, '"10"'],
    [() => 1, 'ok'],
  ])('%p becomes %j', (value, forLLM) => {
    expect(writeResult('work', value)).toEqual(toolResult(forLLM));
  });

  test('a ToolResult is taken as it is', () => {
    const result = userResult('x');
    expect(writeResult('work', result)).toBe(result);
  });

  test('a ToolResult whose text is none gets text, so that a message can be made of it', () => {
    const result = new ToolResult({ forLLM: undefined as unknown as string, isError: true, details: 1 });
    expect(writeResult('work', result)).toMatchObject({ forLLM: '', isError: true, details: 1 });
  });

  test('an object with content parts gives their texts, one a line, and keeps parts and details', () => {
    const content = [
      { type: 'text', content: 'one' },
      { type: 'image', data: 'AA==', mimeType: 'image/png' },
      { type: 'text', content: 'two' },
    ];
    expect(writeResult('work', { content, details: { ms: 1 } })).toMatchObject({
      forLLM: 'one\ntwo',
      content,
      details: { ms: 1 },
    });
  });

  test('an object whose content is something else is plain data', () => {
    expect(writeResult('work', { content: ['a'] }).forLLM).toBe('{"content":["a"]}');
  });

  test.each([
    ['here', new Error('gone')],
    ['another realm', runInNewContext('new Error("gone")')],
  ])('an Error of %s is a failure', (_where, error) => {
    const result = writeResult('work', error);
    expect(result).toMatchObject({ forLLM: 'gone', isError: true });
    expect(result.error).toMatchObject({ name: 'ToolExecutionFailed', code: 501, cause: error });
  });

  test('what cannot be written as JSON is a failure that says so', () => {
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    const result = writeResult('work', circle);
    expect(result.isError).toBe(true);
    expect(result.forLLM).toMatch(/^the result cannot be written as JSON: .*circular/i);
  });

  test('an object that throws when it is looked at is a failure', () => {
    const hostile = {
      get content() {
        throw new Error('hands off');
      },
    };
    expect(writeResult('work', hostile)).toMatchObject({ forLLM: 'hands off', isError: true });
  });
});

describe('what a method throws', () => {
  test.each([
    [new Error('disk full'), 'disk full'],
    [new TypeError(''), 'TypeError'],
    ['text', 'text'],
    [{ message: 'like an error' }, 'like an error'],
    [404, '404'],
    [undefined, 'the tool failed without a message'],
    [null, 'the tool failed without a message'],
    ['', 'the tool failed without a message'],
  ])('%p is told as %j', (thrown, message) => {
    const result = writeFailure('work', thrown);
    expect(result).toMatchObject({ ...errorResult(message), error: expect.anything() });
    expect(result.error).toMatchObject({ name: 'ToolExecutionFailed', cause: thrown });
  });

  test('an error whose message throws is told without it', () => {
    const hostile = Object.defineProperty(new Error('x'), 'message', {
      get: () => {
        throw new Error('no');
      },
    });
    expect(writeFailure('work', hostile).forLLM).toBe('the tool failed with an error that cannot be read');
  });

  test('describeError decides what the model is told; the cause stays for the log', () => {
    const secret = new Error('password is hunter2');
    const mask = (_thrown: unknown, tool: string) => `${tool} is out of order`;
    const result = writeFailure('work', secret, mask);
    expect(result.forLLM).toBe('work is out of order');
    expect(result.error).toMatchObject({ cause: secret });
    expect(writeResult('work', secret, mask).forLLM).toBe('work is out of order');
  });

  test('a describeError that throws lets nothing out', () => {
    const mask = () => {
      throw new Error('broken mask');
    };
    expect(writeFailure('work', new Error('hunter2'), mask).forLLM).toBe("The tool 'work' failed.");
  });
});
