import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Logger } from 'toolwright';
import { createLogger, type LoggerOptions } from 'toolwright/winston';

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z /;

/** Returns what a logger with these options writes, without the times. */
function written(options: LoggerOptions, log: (logger: Logger) => void): string[] {
  const chunks: string[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      chunks.push(String(chunk));
      done();
    },
  });
  log(createLogger({ ...options, stream }));
  return chunks
    .join('')
    .split('\n')
    .slice(0, -1)
    .map((line) => line.replace(TIME, ''));
}

describe('createLogger', () => {
  const saved = process.env.LOG_LEVEL;
  beforeEach(() => {
    delete process.env.LOG_LEVEL;
  });
  afterEach(() => {
    if (saved === undefined) delete process.env.LOG_LEVEL;
    else process.env.LOG_LEVEL = saved;
  });

  test('writes an entry as one line with time, level, message and fields', () => {
    const lines = written({}, (logger) => {
      logger.info('tool finished', {
        tool: 'find_orders',
        durationMs: 12,
        note: 'two words',
        gone: undefined,
      });
      logger.warn('odd', { args: { a: [1n, null] }, empty: '' });
    });
    expect(lines).toEqual([
      'info  tool finished tool=find_orders durationMs=12 note="two words"',
      'warn  odd args={"a":["1",null]} empty=""',
    ]);
  });

  test('starts every line with the time', () => {
    const chunks: string[] = [];
    const stream = new Writable({ write: (chunk, _encoding, done) => done(void chunks.push(String(chunk))) });
    createLogger({ stream }).info('x');
    expect(chunks.join('')).toMatch(TIME);
  });

  test('does not write entries below the level, and isLevelEnabled returns false for them', () => {
    const lines = written({}, (logger) => {
      logger.debug('hidden');
      expect(logger.isLevelEnabled?.('debug')).toBe(false);
      expect(logger.isLevelEnabled?.('info')).toBe(true);
    });
    expect(lines).toEqual([]);
    expect(written({ level: 'debug' }, (logger) => logger.debug('shown'))).toEqual(['debug shown']);
    expect(written({ level: 'silent' }, (logger) => logger.error('x'))).toEqual([]);
  });

  test('uses LOG_LEVEL if no level is given', () => {
    process.env.LOG_LEVEL = 'DEBUG';
    expect(written({}, (logger) => logger.debug('shown'))).toEqual(['debug shown']);
    expect(written({ level: 'error' }, (logger) => logger.warn('hidden'))).toEqual([]);
  });

  test('treats an unknown LOG_LEVEL as info and warns once', () => {
    process.env.LOG_LEVEL = 'loud';
    expect(written({}, (logger) => logger.info('x'))).toEqual([
      'warn  LOG_LEVEL is unknown, so info is used LOG_LEVEL=loud',
      'info  x',
    ]);
  });

  test('throws for an unknown level in the options and lists the valid levels', () => {
    const level = 'loud' as 'info';
    expect(() => createLogger({ level })).toThrow(/level is 'loud'.*'error' or 'warn' or 'info'/s);
  });

  test('writes an error field as its message and causes, with the stack only at debug level', () => {
    const error = new Error('no such order', { cause: new Error('row 7') });
    const log = (logger: Logger) => logger.warn('tool failed', { error });
    expect(written({}, log)).toEqual(['warn  tool failed error="no such order (cause: row 7)"']);
    const [first, ...stack] = written({ level: 'debug' }, log);
    expect(first).toBe('warn  tool failed error="no such order (cause: row 7)"');
    expect(stack[0]).toBe('  Error: no such order');
    expect(stack.join('\n')).toContain('row 7');
    expect(stack.every((line) => line.startsWith('  '))).toBe(true);
  });

  test('writes every error of an AggregateError, and each cause only once', () => {
    const refused = new Error('refused', { cause: new Error('port 1') });
    const all = new AggregateError([refused, 'late', refused], 'none answered');
    const error = new Error('The call failed: none answered', { cause: all });
    expect(written({}, (logger) => logger.warn('failed', { error }))).toEqual([
      'warn  failed error="The call failed: none answered (errors: refused (cause: port 1); late; refused)"',
    ]);
    const [json] = written({ json: true }, (logger) => logger.warn('failed', { error: all }));
    expect(JSON.parse(json ?? '').error).toMatchObject({
      message: 'none answered',
      errors: [{ message: 'refused', cause: { name: 'Error', message: 'port 1' } }, 'late', {}],
    });
  });

  test('writes circular causes once', () => {
    const error = new Error('first');
    error.cause = new Error('second', { cause: error });
    expect(written({}, (logger) => logger.warn('failed', { error }))).toEqual([
      'warn  failed error="first (cause: second (cause: first))"',
    ]);
  });

  test('writes an error that is passed instead of fields as a field', () => {
    const lines = written({}, (logger) => logger.error('it failed', new Error('why') as never));
    expect(lines).toEqual(['error it failed error="why"']);
  });

  test('preserves fields called message or level, and messages that contain %s', () => {
    const lines = written({}, (logger) => {
      logger.info('first', { message: 'second', level: 'high' });
      logger.info('100 %d and %s', { a: 1 });
    });
    expect(lines).toEqual(['info  first message=second level=high', 'info  100 %d and %s a=1']);
  });

  test('escapes line breaks and escape sequences, so that text cannot forge an entry', () => {
    const lines = written({}, (logger) => logger.info('a\nerror b\u001b[2J', { text: 'c\nd\u001b[2J' }));
    expect(lines).toEqual([String.raw`info  a\nerror b\u001b[2J text="c\nd\u001b[2J"`]);
  });

  test('does not throw for values that JSON cannot represent', () => {
    const ring: Record<string, unknown> = { name: 'ring' };
    ring.self = ring;
    const [line, ...more] = written({}, (logger) => logger.info('x', { ring, fn: () => 1 }));
    expect(line).toMatch(/^info {2}x ring=".*Circular.*" fn=/);
    expect(more).toEqual([]);
    const [json] = written({ json: true }, (logger) => logger.info('x', { ring }));
    expect(JSON.parse(json ?? '')).toMatchObject({
      message: 'x',
      fields: expect.stringContaining('Circular'),
    });
  });

  test('writes one object per line with json, with errors as objects and stacks only at debug level', () => {
    const log = (logger: Logger) =>
      logger.warn('failed', { tool: 'a', level: 9, error: Object.assign(new Error('why'), { code: 501 }) });
    const [line] = written({ json: true }, log);
    expect(JSON.parse(line ?? '')).toEqual({
      time: expect.stringMatching(/^\d{4}-/),
      level: 'warn',
      message: 'failed',
      tool: 'a',
      error: { name: 'Error', message: 'why', code: 501 },
    });
    const [debugging] = written({ json: true, level: 'debug' }, log);
    expect(JSON.parse(debugging ?? '').error.stack).toContain('winston.test');
  });

  test('adds the fields of a child logger', () => {
    const lines: string[] = [];
    const stream = new Writable({ write: (chunk, _encoding, done) => done(void lines.push(String(chunk))) });
    createLogger({ stream }).child({ run: 7 }).info('x', { a: 1 });
    expect(lines.join('').replace(TIME, '')).toBe('info  x run=7 a=1\n');
  });

  test('writes to standard error without a stream', async () => {
    const original = process.stderr.write;
    const seen: string[] = [];
    process.stderr.write = ((chunk: unknown) => seen.push(String(chunk)) > 0) as typeof process.stderr.write;
    try {
      createLogger().info('to stderr');
      await setImmediate();
    } finally {
      process.stderr.write = original;
    }
    expect(seen.join('')).toContain('info  to stderr');
  });
});

describe('a log file', () => {
  let folder = '';
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'toolwright-log-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  test('receives the same lines as the stream', async () => {
    const file = join(folder, 'run.log');
    const lines: string[] = [];
    const stream = new Writable({ write: (chunk, _encoding, done) => done(void lines.push(String(chunk))) });
    const logger = createLogger({ file, stream });
    logger.info('kept', { a: 1 });
    logger.warn('too');
    await flushed(logger);
    expect(await readFile(file, 'utf8')).toBe(lines.join(''));
    expect(lines).toHaveLength(2);
  });

  test('that cannot be opened is refused', async () => {
    await writeFile(join(folder, 'plain'), '');
    const opening = (file: string) => () => createLogger({ file });
    expect(opening(folder)).toThrow(/file cannot be opened: EISDIR/);
    expect(opening(join(folder, 'plain', 'run.log'))).toThrow(/file cannot be opened: E/);
  });

  test('that can no longer be written is reported once, and again after it could be written', async () => {
    const file = join(folder, 'logs', 'run.log');
    const lines: string[] = [];
    const stream = new Writable({ write: (chunk, _encoding, done) => done(void lines.push(String(chunk))) });
    const logger = createLogger({ file, stream });
    const log = async (message: string) => {
      logger.info(message);
      await flushed(logger);
    };
    for (const round of ['first', 'second']) {
      await rm(file);
      await mkdir(file);
      await log(`${round}, lost`);
      await log(`${round}, lost, too`);
      await rm(file, { recursive: true });
      await log(`${round}, written`);
      expect(await readFile(file, 'utf8')).toMatch(new RegExp(`^\\S+ info  ${round}, written\n$`));
    }
    const reports = lines.filter((line) => line.startsWith('cannot log'));
    expect(reports).toEqual(Array(2).fill(expect.stringMatching(/^cannot log: EISDIR/)));
  });
});

/** Waits until the last entry is written: winston does not wait for its streams. */
async function flushed(logger: ReturnType<typeof createLogger>): Promise<void> {
  const streams = logger.transports.map((transport) => Reflect.get(transport, '_stream') as Writable);
  while (streams.some(({ writableLength }) => writableLength > 0)) await setImmediate();
}
