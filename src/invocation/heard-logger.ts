import type { LogListener } from '../contract/call-scope.js';
import type { LogFields, Logger, LogLevel } from '../contract/logger.js';
import { callListener } from './call-listener.js';

/** A logger that somebody listens to, whatever levels it writes itself. A listener that throws changes nothing. */
export function heardLogger(logger: Logger, onEntry: (entry: Parameters<LogListener>[0]) => void): Logger {
  const write = (level: LogLevel) => (message: string, fields?: LogFields) => {
    callListener(
      () => onEntry({ level, message, ...(fields ? { fields } : {}) }),
      () => {},
    );
    return logger[level](message, fields);
  };
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}
