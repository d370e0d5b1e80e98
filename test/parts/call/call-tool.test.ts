import { describe, expect, test } from '@jest/globals';
import { type Invocation, RetryToolCall, type ToolDefinition } from 'toolwright';
import { makeCall } from '../../../src/run/call/call-pipeline.js';
import type { CallEnvironment, CallSource } from '../../../src/run/call/invocation.js';
import { logbook } from './logbook.js';
import { plainTool } from './plain-tool.js';

/** Calls a tool (or none) without a way to ask for approval. */
function call(
  tool: ToolDefinition | undefined,
  args: unknown = {},
  { scope = {}, ...environment }: Partial<CallEnvironment & CallSource> = {},
): Invocation | Promise<Invocation> {
  const find = () => tool && { open: () => tool, offered: tool };
  const request = { id: 'c1', name: 'work', arguments: args };
  return makeCall({ find, ...environment, isRecorded: true }, request, { scope });
}

describe('the pipeline of a call', () => {
  test('find: an unknown tool is rejected', async () => {
    const { status, result, record } = await call(undefined, {});
    expect(status).toBe('settled');
    expect(result).toMatchObject({ forLLM: 'tool not found: work', isError: true, error: { code: 500 } });
    expect(record).toMatchObject({ id: 'c1', name: 'work', status: 'rejected', attempts: 1 });
  });

  test('find: a factory that throws is reported as an error of the tool', async () => {
    const find = () => {
      throw new Error('no database');
    };
    const { result, record } = await call(undefined, {}, { find });
    expect(record.status).toBe('error');
    expect(result).toMatchObject({
      forLLM: "The tool 'work' cannot be called: no database",
      error: { name: 'InvalidToolSignature' },
    });
  });

  test.each([
    ['[1]', '  - the arguments must be a JSON object, not an array'],
    ['{"a":', '  - the arguments are cut off in the middle of a value; send them again, complete'],
  ])('read: %s is rejected, and the body is not run', async (args, line) => {
    const tool = plainTool(() => {
      throw new Error('must not run');
    });
    const { result, record } = await call(tool, args);
    expect(result.forLLM).toBe(`Validation failed for tool 'work':\n${line}\nReceived: ${args}`);
    expect(result.error).toMatchObject({ name: 'InvalidArguments' });
    expect(record).toMatchObject({ status: 'rejected', rawArguments: args });
    expect(record.arguments).toBeUndefined();
  });

  test('check: the record contains the raw arguments, the used arguments, the repairs and the removed keys', async () => {
    const parameters = { type: 'object', properties: { n: { type: 'integer' }, m: { default: 1 } } };
    let seen: unknown;
    const tool = plainTool(
      (args) => {
        seen = args;
      },
      { parameters },
    );
    const { record } = await call(tool, '{"n":"5","x":1}');
    expect(seen).toEqual({ n: 5, m: 1 });
    expect(record).toMatchObject({
      rawArguments: '{"n":"5","x":1}',
      arguments: { n: 5, m: 1 },
      repairs: ['coerced n'],
      removed: ['x'],
      status: 'success',
    });
    expect(record.durationMs).toBeGreaterThanOrEqual(0);
  });

  test('check: faults that hydration finds are reported in the same format', async () => {
    const hydrate = async () => ({
      ok: false as const,
      faults: [{ path: 'order.total', message: 'must match the items' }],
    });
    const { result, record } = await call(
      plainTool(() => 'ran', { hydrate }),
      {},
    );
    expect(result.forLLM).toBe("Validation failed for tool 'work':\n  - order.total: must match the items");
    expect(record.status).toBe('rejected');
  });

  test('check: the body gets the hydrated value, and the record contains the sent arguments', async () => {
    const hydrate = () => ({ ok: true as const, value: { at: new Date(0) } });
    const tool = plainTool(({ at }) => (at as Date).toISOString(), { hydrate });
    const { result, record } = await call(tool, { at: '1970-01-01T00:00:00Z' });
    expect(result.forLLM).toBe('1970-01-01T00:00:00.000Z');
    expect(record.arguments).toEqual({ at: '1970-01-01T00:00:00Z' });
  });

  test('check: an invalid schema is an error of the tool, not of the model', async () => {
    const { result, record } = await call(
      plainTool(() => 'x', { parameters: { type: 'strnig' } }),
      {},
    );
    expect(record.status).toBe('error');
    expect(result.forLLM).toMatch(/^The tool 'work' cannot be called: schema is invalid/);
  });

  test('check: a destructive tool rejects unknown keys', async () => {
    const parameters = { type: 'object', properties: { id: { type: 'string' } } };
    const tool = plainTool(() => 'gone', { parameters, annotations: { destructive: true } });
    expect((await call(tool, { id: 'a', all: true })).result.forLLM).toBe(
      "Validation failed for tool 'work':\n  - all: is not a known property, and this tool accepts no others\n" +
        'Received: {"id":"a","all":true}',
    );
    expect((await call(tool, { id: 'a' })).result.forLLM).toBe('gone');
  });

  test.each([
    ['needs an approval', { approval: true }],
    ['needs an approval for these arguments', { approval: () => true }],
    ['has an approval function that fails', { approval: () => Promise.reject(new Error('down')) }],
    ['is executed by the client', { execution: 'client' as const }],
  ])('allow: a tool that %s is refused if no approval can be requested', async (_what, more) => {
    const tool = plainTool(() => {
      throw new Error('must not run');
    }, more);
    const { result, record } = await call(tool, {});
    expect(record.status).toBe('refused');
    expect(result).toMatchObject({ isError: true, error: { name: 'NotExecutableHere', code: 511 } });
  });

  test('allow: a tool runs if its approval function returns false', async () => {
    const tool = plainTool(() => 'ran', { approval: (args) => Number(args.amount) > 100 });
    expect((await call(tool, { amount: 5 })).result.forLLM).toBe('ran');
    expect((await call(tool, { amount: 500 })).record.status).toBe('refused');
  });

  test('run: the message of an error goes to the model, and only the log has the cause', async () => {
    const { logger, lines } = logbook();
    const cause = new Error('disk full');
    const tool = plainTool(() => {
      throw cause;
    });
    const { result, record } = await call(tool, {}, { logger });
    expect(result.forLLM).toBe('disk full');
    expect(record.status).toBe('error');
    expect(lines.at(-1)).toMatchObject({
      level: 'error',
      message: 'Tool failed',
      fields: { error: { cause } },
    });
  });

  test('run: RetryToolCall and aborts are logged as warnings, not as failures', async () => {
    const { logger, lines } = logbook();
    const ambiguous = plainTool(() => {
      throw new RetryToolCall('Two customers have that name; give the id.');
    });
    await call(ambiguous, {}, { logger });
    expect(lines.at(-1)).toMatchObject({
      level: 'warn',
      message: 'Tool call rejected',
      fields: { reason: 'Two customers have that name; give the id.' },
    });
    const endless = plainTool(() => new Promise(() => {}));
    await call(endless, {}, { logger, scope: { signal: AbortSignal.timeout(5) } });
    expect(lines.at(-1)).toMatchObject({
      level: 'warn',
      message: 'Tool call aborted',
      fields: { reason: expect.stringContaining("The run was aborted. The tool 'work' had begun") },
    });
  });

  const unknown = 'had begun, and its effects are unknown: find out, or ask, before you call it again.';
  const givingUp: ToolDefinition['execute'] = (_args, { signal }) =>
    new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  test.each<[string, Partial<ToolDefinition>, string]>([
    ['has begun', {}, unknown],
    ['gives up with the abort', { execute: givingUp, observesSignal: true }, unknown],
    ['has begun and only reads', { annotations: { readOnly: true } }, 'had not finished.'],
    ['has begun and may be repeated', { annotations: { idempotent: true } }, 'had not finished.'],
    ['is not approved yet', { approval: () => new Promise<boolean>(() => {}) }, 'was not run.'],
  ])('run: an abort of a call that %s reports whether the call had started', async (_what, more, told) => {
    const tool = plainTool(() => new Promise(() => {}), more);
    const { result } = await call(tool, {}, { scope: { signal: AbortSignal.timeout(5) } });
    expect(result.forLLM).toBe(`The run was aborted. The tool 'work' ${told}`);
  });

  test('run: the values of an async generator are progress, and its return value is the result', async () => {
    const updates: unknown[] = [];
    const tool = plainTool(async function* () {
      yield { percent: 50 };
      yield { percent: 100 };
      return 'done';
    });
    const scope = { onUpdate: (update: unknown, from: unknown) => updates.push([update, from]) };
    const { result } = await call(tool, {}, { scope });
    expect(result.forLLM).toBe('done');
    const from = { callId: 'c1', tool: 'work' };
    expect(updates).toEqual([
      [{ percent: 50 }, from],
      [{ percent: 100 }, from],
    ]);
  });

  test('a logger or progress listener that throws does not affect the call', async () => {
    const fail = () => {
      throw new Error('full disk');
    };
    const tool = plainTool((_args, context) => {
      context.progress('half');
      return 'done';
    });
    const logger = { debug: fail, info: fail, warn: fail, error: fail, isLevelEnabled: fail };
    const { result } = await call(tool, {}, { logger, scope: { onUpdate: fail } });
    expect(result.forLLM).toBe('done');
  });
});

describe('the log of a call', () => {
  test('arguments are logged at debug level only, redacted', async () => {
    const { logger, lines } = logbook();
    await call(
      plainTool(() => 'x'),
      { user: 'a', password: 'hunter2' },
      { logger },
    );
    expect(lines.filter(({ fields }) => JSON.stringify(fields).includes('user'))).toEqual([
      {
        level: 'debug',
        message: 'Tool arguments',
        fields: { tool: 'work', callId: 'c1', arguments: { user: 'a', password: '[redacted]' } },
      },
    ]);
    expect(JSON.stringify(lines)).not.toContain('hunter2');
  });

  test('arguments are not logged if the debug level is disabled', async () => {
    const { logger, lines } = logbook();
    await call(
      plainTool(() => 'x'),
      {},
      { logger: { ...logger, isLevelEnabled: (level) => level !== 'debug' } },
    );
    expect(lines.map(({ message }) => message)).toEqual(['Tool started', 'Tool completed']);
  });

  test('removed arguments, rejected arguments and refusals are logged', async () => {
    const { logger, lines } = logbook();
    const parameters = { type: 'object', properties: { n: { type: 'integer' } } };
    const tool = plainTool(() => 'x', { parameters });
    await call(tool, { evil: 1 }, { logger });
    await call(tool, { n: 'x' }, { logger });
    await call(
      plainTool(() => 'x', { approval: true }),
      {},
      { logger },
    );
    expect(lines).toContainEqual(
      expect.objectContaining({
        message: 'Unknown arguments removed',
        fields: expect.objectContaining({ removed: ['evil'] }),
      }),
    );
    expect(lines).toContainEqual(expect.objectContaining({ message: 'Tool call rejected', level: 'warn' }));
    expect(lines.at(-1)).toMatchObject({ message: 'Tool call refused', level: 'warn' });
  });
});
