import { appendFile, closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { Writable } from 'node:stream';
import { inspect } from 'node:util';
import type { Logform } from 'winston';
import winston from 'winston';
import { checkOptions, refuseOptions } from '../../core/errors/author-fault.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { BOOLEAN, FILLED_TEXT, oneOf, optionTable, withMethods } from '../../core/kernel/options.js';
import { visibleLine, visibleText } from '../../core/kernel/visible-text.js';

const LEVELS = ['error', 'warn', 'info', 'http', 'verbose', 'debug', 'silly'] as const;

/** winston's own levels, the most severe first; `silent` logs nothing. */
export type LogLevel = (typeof LEVELS)[number] | 'silent';

/** Options of {@link createLogger}. */
export interface LoggerOptions {
  /** Default: the environment's `LOG_LEVEL`, then `info`. */
  readonly level?: LogLevel;
  /** One JSON object per line, for machines. */
  readonly json?: boolean;
  /** Path of a file to write to as well. */
  readonly file?: string;
  /** The output besides `file` (default: standard error). */
  readonly stream?: NodeJS.WritableStream;
}

const OPTIONS = optionTable<LoggerOptions>('createLogger', {
  level: oneOf(...LEVELS, 'silent'),
  json: BOOLEAN,
  file: FILLED_TEXT,
  stream: withMethods(['write'], 'process.stderr'),
});

/**
 * Creates a winston logger that fits every `logger` option of the framework.
 *
 * It writes to standard error and never to standard output, which belongs to MCP over stdio and to `--json`. Stack
 * traces are written only at level `debug` or finer. Throws if `level` is unknown or `file` cannot be opened; an
 * unknown `LOG_LEVEL` counts as `info`, with a warning. A later failure to write the file is reported once.
 *
 * @example
 * ```ts
 * const logger = createLogger({ level: 'debug', file: 'run.log' });
 * logger.info('tool finished', { tool: 'find_orders', durationMs: 12 });
 * // 2026-01-31T12:00:00.000Z info  tool finished tool=find_orders durationMs=12
 * ```
 */
export function createLogger(options: LoggerOptions = {}): winston.Logger {
  checkOptions(options, OPTIONS);
  const { json = false, file, stream = process.stderr } = options;
  const wanted = options.level ?? process.env.LOG_LEVEL?.trim().toLowerCase();
  const isKnown = OPTIONS.rules.get('level')?.accepts(wanted) ?? false;
  const level = isKnown ? (wanted as LogLevel) : 'info';
  const report = ({ message }: Error) => stream.write(`cannot log: ${message}\n`);
  const logger: winston.Logger = winston.createLogger({
    level: level === 'silent' ? 'error' : level,
    silent: level === 'silent',
    format: winston.format.printf((info) => {
      const style = { time: new Date().toISOString(), stacks: logger.isLevelEnabled('debug') };
      return (json ? jsonLine : textLine)(readLogEntry(info), style);
    }),
    transports: [
      new winston.transports.Stream({ stream, eol: '\n' }),
      ...(file === undefined
        ? []
        : [new winston.transports.Stream({ stream: logFile(file, report), eol: '\n' })]),
    ],
  });
  // Without a listener, an `error` event would end the process.
  logger.on('error', report);
  if (wanted && !isKnown) logger.warn('LOG_LEVEL is unknown, so info is used', { LOG_LEVEL: wanted });
  return logger;
}

/** Appends to a file. winston's own transport ignores the errors of its file, such as a full disk. */
function logFile(path: string, report: (error: Error) => void): Writable {
  try {
    mkdirSync(dirname(path), { recursive: true });
    closeSync(openSync(path, 'a'));
  } catch (error) {
    const problem = `file cannot be opened: ${errorMessage(error)}`;
    const fix = "file: 'run.log', or another file that this process may write";
    refuseOptions([{ where: OPTIONS.of, option: 'file', problem, fix }]);
  }
  /** The cause that was reported since the last entry was written. */
  let reported: string | undefined;
  return new Writable({
    write(entry, _encoding, done) {
      appendFile(path, entry, (error) => {
        if (error !== null && error.code !== reported) report(error);
        reported = error?.code;
        done();
      });
    },
  });
}

// winston stores the caller's fields under this symbol (package triple-beam).
const GIVEN = Symbol.for('splat');

/** A log entry as the caller wrote it: plain data, before formatting. */
interface LogEntry {
  readonly level: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/**
 * Restores an entry from winston's record, which mixes message and fields: a field `message` is appended to the message
 * there, and fields are missing if the message contains `%s` or `%d`.
 */
function readLogEntry(info: Logform.TransformableInfo): LogEntry {
  const { level, message, ...merged } = info;
  const { stack, cause, ...others } = merged;
  const given = givenFields(info);
  const appended = 'message' in given && given.message ? ` ${given.message}` : '';
  const text = String(message);
  return {
    level,
    message: appended !== '' && text.endsWith(appended) ? text.slice(0, -appended.length) : text,
    // winston adds the parts of an error to the fields.
    fields: given instanceof Error ? { ...others, error: given } : { ...merged, ...given },
  };
}

function givenFields(info: Logform.TransformableInfo): Record<string, unknown> | Error {
  const given: unknown = info[GIVEN];
  const first: unknown = Array.isArray(given) ? given[0] : undefined;
  if (first instanceof Error) return first as Error & Record<string, unknown>;
  return typeof first === 'object' && first !== null ? { ...first } : {};
}

/** The JSON of any value. Errors become objects; values that JSON cannot represent are shown with `util.inspect`. */
function jsonOf(value: unknown, style: LineStyle): string {
  try {
    return visibleLine(JSON.stringify(value, (_key, part) => plainPart(part, style)) ?? 'null');
  } catch {
    // A circular value, or a `toJSON` that throws: logging must never make a run fail.
    return visibleLine(JSON.stringify(inspect(value, { depth: 3, breakLength: Number.POSITIVE_INFINITY })));
  }
}

/** A value in a line for people: without quotes if that is clear, otherwise as JSON. */
function textOfValue(value: unknown, style: LineStyle): string {
  if (value instanceof Error) return jsonOf(messagesOf(value), style);
  if (typeof value === 'string' && /^[^\s"'=\p{Cc}\p{Cf}]+$/u.test(value)) return value;
  return jsonOf(value, style);
}

function plainPart(part: unknown, { stacks }: LineStyle): unknown {
  if (typeof part === 'bigint') return String(part);
  if (!(part instanceof Error)) return part;
  const { name, message, stack } = part;
  const { code } = part as { code?: unknown };
  const { cause, errors } = within(part);
  return { name, message, code, stack: stacks ? stack : undefined, cause, errors };
}

/** The message of an error, with those of its causes and of the errors that it aggregates. */
function messagesOf(thrown: unknown, seen = new Set<unknown>()): string {
  return messageOf(thrown) + messagesWithin(thrown, seen);
}

function messagesWithin(thrown: unknown, seen: Set<unknown>): string {
  // A chain of causes may be circular.
  if (!(thrown instanceof Error) || seen.has(thrown)) return '';
  seen.add(thrown);
  const { cause, errors = [] } = within(thrown);
  const all = errors.map((item) => messagesOf(item, seen)).join('; ');
  const others = all === '' ? '' : ` (errors: ${all})`;
  if (cause === undefined) return others;
  // Many messages already end with that of their cause.
  const isContained = messageOf(thrown).endsWith(messageOf(cause));
  return isContained ? messagesWithin(cause, seen) + others : ` (cause: ${messagesOf(cause, seen)})${others}`;
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message || thrown.name : String(thrown);
}

function within(error: Error): { readonly cause?: unknown; readonly errors?: readonly unknown[] } {
  const { cause, errors } = error as { cause?: unknown; errors?: unknown };
  return { cause: cause ?? undefined, ...(Array.isArray(errors) ? { errors } : {}) };
}

/** The format of entries. */
interface LineStyle {
  /** Whether the stack traces of errors are shown. */
  readonly stacks: boolean;
  /** Time of the entry, ISO 8601. */
  readonly time: string;
}

/** An entry as a JSON object with `time`, `level`, `message` and the fields. */
function jsonLine({ level, message, fields }: LogEntry, style: LineStyle): string {
  const head = { time: style.time, level, message };
  // The head comes first, and fields of the same names do not replace it.
  const line = jsonOf({ ...head, ...fields, ...head }, style);
  return line.startsWith('{') ? line : jsonOf({ ...head, fields: JSON.parse(line) }, style);
}

/**
 * An entry as one line: `<time> <level> <message> key=value …`. At level `debug`, the stack traces of errors follow on
 * lines of their own.
 */
function textLine({ level, message, fields }: LogEntry, style: LineStyle): string {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  const pairs = given.map(([key, value]) => `${visibleLine(key)}=${textOfValue(value, style)}`);
  const line = [style.time, level.padEnd(5), visibleLine(message), ...pairs].join(' ');
  if (!style.stacks) return line;
  const lines = [line];
  for (const [, value] of given) {
    // As Node shows an error and its causes.
    const shown = value instanceof Error ? visibleText(inspect(value, { depth: 3 })).split('\n') : [];
    for (const text of shown) lines.push(`  ${text}`);
  }
  return lines.join('\n');
}
