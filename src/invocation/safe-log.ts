import type { LogFields, Logger } from '../contract/logger.js';
import { loggedFields } from './log-field.js';

/** Writes what nobody else is told, without its secrets. A logger that throws changes nothing. */
export class SafeLog {
  readonly #logger: Logger | undefined;

  constructor(logger: Logger | undefined) {
    this.#logger = logger;
  }

  debug(message: string, fields: LogFields): void {
    this.#write('debug', message, fields);
  }

  warn(message: string, fields: LogFields): void {
    this.#write('warn', message, fields);
  }

  error(message: string, fields: LogFields): void {
    this.#write('error', message, fields);
  }

  #write(level: 'debug' | 'warn' | 'error', message: string, fields: LogFields): void {
    try {
      this.#logger?.[level](message, loggedFields(fields));
    } catch {
      // There is nowhere left to report a logger that throws.
    }
  }
}
