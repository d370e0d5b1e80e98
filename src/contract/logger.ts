/** How much a log message matters. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** Facts beside a log message: plain data. */
export type LogFields = Readonly<Record<string, unknown>>;

/**
 * Where the framework logs. Any winston logger satisfies it as it is, and so does a thin wrapper of
 * another one. `isLevelEnabled` saves work: without it every level counts as enabled.
 */
export interface Logger {
  debug(message: string, fields?: LogFields): unknown;
  info(message: string, fields?: LogFields): unknown;
  warn(message: string, fields?: LogFields): unknown;
  error(message: string, fields?: LogFields): unknown;
  isLevelEnabled?(level: string): boolean;
}
