import winston from 'winston';
import { checkOptions } from '../../errors/invalid-options.js';
import { BOOLEAN, FILLED_TEXT, oneOf, withMethods } from '../../kernel/option-rules.js';
import { optionTable } from '../../kernel/options.js';
import { readLogEntry } from './log-entry.js';
import { writeLine } from './write-line.js';

const LEVELS = ['error', 'warn', 'info', 'http', 'verbose', 'debug', 'silly'] as const;

/** winston's own levels, the gravest first; `silent` logs nothing. */
export type LogLevel = (typeof LEVELS)[number] | 'silent';

/** How {@link createLogger} logs. */
export interface LoggerOptions {
  /** Default: the environment's `LOG_LEVEL`, then `info`. */
  readonly level?: LogLevel;
  /** One JSON object per line, for machines. */
  readonly json?: boolean;
  /** Path of a file that is written as well. */
  readonly file?: string;
  /** Where lines go besides `file` (default: standard error). */
  readonly stream?: NodeJS.WritableStream;
}

const OPTIONS = optionTable<LoggerOptions>('createLogger', {
  level: oneOf(...LEVELS, 'silent'),
  json: BOOLEAN,
  file: FILLED_TEXT,
  stream: withMethods(['write'], 'process.stderr'),
});

/**
 * A winston logger that is ready for every `logger` option of the framework.
 *
 * It writes to standard error and never to standard output, which belongs to MCP over stdio and to `--json`.
 * Stacks of errors are written only while the level is `debug` or finer. Throws where `level` is unknown; an
 * unknown `LOG_LEVEL` counts as `info`, with a warning.
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
  const { level, unknown } = chooseLevel(options.level);
  const logger: winston.Logger = winston.createLogger({
    level: level === 'silent' ? 'error' : level,
    silent: level === 'silent',
    format: winston.format.printf((info) =>
      writeLine(readLogEntry(info), {
        json,
        time: new Date().toISOString(),
        stacks: logger.isLevelEnabled('debug'),
      }),
    ),
    transports: [
      new winston.transports.Stream({ stream, eol: '\n' }),
      ...(file === undefined ? [] : [new winston.transports.File({ filename: file, eol: '\n' })]),
    ],
  });
  // A full disk or an unwritable file must not end the process, which an unheard `error` event would.
  logger.on('error', (error) => stream.write(`cannot log: ${error.message}\n`));
  if (unknown !== undefined) logger.warn('LOG_LEVEL is unknown, so info is used', { LOG_LEVEL: unknown });
  return logger;
}

function chooseLevel(wanted: LogLevel | undefined): { level: LogLevel; unknown?: string } {
  if (wanted !== undefined) return { level: wanted };
  const named = process.env.LOG_LEVEL?.trim().toLowerCase();
  if (!named) return { level: 'info' };
  return isLevel(named) ? { level: named } : { level: 'info', unknown: named };
}

function isLevel(name: string): name is LogLevel {
  return name === 'silent' || LEVELS.some((level) => level === name);
}
