import { type LogLevel, Logger as NestLogger } from '@nestjs/common';
import type { LogFields, Logger } from '../../contract/logger.js';
import { LogEntry } from './log-entry.js';

/**
 * Nest's levels for the framework's: what happens to calls is `debug` and their arguments are `verbose`, so that
 * an application which logs from `log` on hears only of what went wrong.
 */
const LEVELS: Readonly<Record<string, LogLevel>> = {
  debug: 'verbose',
  info: 'debug',
  warn: 'warn',
  error: 'error',
};

/** Nest's logger behind the framework's port. */
export function nestLogger(): Logger {
  const logger = new NestLogger('Toolwright');
  const entry = (message: string, fields?: LogFields): LogEntry | string =>
    fields === undefined ? message : new LogEntry(message, fields);
  return {
    debug: (message, fields) => logger.verbose(entry(message, fields)),
    info: (message, fields) => logger.debug(entry(message, fields)),
    warn: (message, fields) => logger.warn(entry(message, fields)),
    error: (message, fields) => logger.error(entry(message, fields)),
    isLevelEnabled: (level) => isEnabled(LEVELS[level] ?? 'log'),
  };
}

/** NestJS 11 reports every level as disabled where none was set, and then all of them are enabled. */
function isEnabled(level: LogLevel): boolean {
  return NestLogger.isLevelEnabled(level) || !NestLogger.isLevelEnabled('fatal');
}
