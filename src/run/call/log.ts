import type { LogFields, Logger, LogLevel } from '../../core/contract/ports.js';
import { isObject } from '../../core/kernel/json.js';
import { visibleLine, visibleText } from '../../core/kernel/visible-text.js';
import { firstItems, KNOWN_SECRETS, type Redaction } from './redact.js';

const MAX_TEXT = 2000;
const MAX_NAME = 64;
/** The depth limit of causes: a chain may be circular. */
const MAX_CAUSES = 10;
/** The most errors of one field: an AggregateError may have many, with their own causes. */
const MAX_ERRORS = 40;

/** Fields in a form that may be logged: of limited size, without secrets, and with visible control characters. */
export function loggedFields(fields: LogFields, redaction: Redaction = KNOWN_SECRETS): LogFields {
  const logged: Record<string, unknown> = {};
  for (const name of Object.keys(fields)) {
    const value = fields[name];
    try {
      const isShort = typeof value === 'number' || (typeof value === 'string' && isName(value));
      logged[name] = isShort ? value : new LoggedField(redaction).of(value);
    } catch {
      logged[name] = 'cannot be shown: reading it throws';
    }
  }
  return logged;
}

class LoggedField {
  #errors = MAX_ERRORS;

  constructor(private readonly redaction: Redaction) {}

  of(value: unknown): unknown {
    if (typeof value === 'string') return isName(value) ? value : visibleLine(this.#text(value));
    if (Array.isArray(value)) return firstItems(value, (item) => this.of(item));
    if (value instanceof Error) return this.#error(value, MAX_CAUSES);
    return this.redaction.copy(value);
  }

  #text(text: string): string {
    const masked = this.redaction.mask(text, MAX_TEXT);
    return text.length <= MAX_TEXT ? masked : `${masked}… (${text.length - MAX_TEXT} more characters)`;
  }

  /** The error itself if all of it may be logged; otherwise a copy. */
  #error(error: Error, causes: number): Error {
    const properties: PropertyDescriptorMap = {};
    let isChanged = false;
    // Its own properties, and those that every error may have.
    const parts = PARTS.filter((name) => name in error);
    for (const name of new Set([...parts, ...Object.getOwnPropertyNames(error)])) {
      const value: unknown = error[name as keyof Error];
      const shown = this.#part(name, value, causes - 1);
      if (shown !== value) isChanged = true;
      const enumerable = Object.prototype.propertyIsEnumerable.call(error, name);
      properties[name] = { value: shown, enumerable, configurable: true, writable: true };
    }
    if (!isChanged) return error;
    // Loggers recognize errors by an internal slot that only real errors have.
    const copy = Object.setPrototypeOf(new Error(), Object.getPrototypeOf(error));
    return Object.defineProperties(copy, properties);
  }

  #part(name: string, value: unknown, causes: number): unknown {
    if (name === 'errors' && Array.isArray(value)) {
      const shown = firstItems(value, (error) => this.#part('', error, causes));
      return shown.every((item, index) => item === value[index]) ? value : shown;
    }
    if (value instanceof Error) {
      if (causes <= 0 || this.#errors <= 0) return '… more causes';
      this.#errors -= 1;
      return this.#error(value, causes);
    }
    if (typeof value === 'string') return visibleText(this.#text(value));
    return isObject(value) ? this.of(value) : value;
  }
}

/** Most fields are names and ids that occur in every entry. */
function isName(text: string): boolean {
  return text.length <= MAX_NAME && /^[a-z][a-z_]*\d{0,9}$/.test(text);
}

const PARTS = ['message', 'stack', 'cause', 'errors'];

/** A logger for errors that are reported nowhere else, without secrets. Errors of the given logger have no effect. */
export function safeLog(logger: Logger | undefined, redaction: Redaction = KNOWN_SECRETS): Logger {
  return loggerTo((level, message, fields = {}) => {
    try {
      logger?.[level](redaction.mask(message), loggedFields(fields, redaction));
    } catch {
      // There is nowhere left to report a logger that throws.
    }
  });
}

/** A logger that passes its entries to a function. */
export function loggerTo(write: (level: LogLevel, message: string, fields?: LogFields) => unknown): Logger {
  const at = (level: LogLevel) => (message: string, fields?: LogFields) => write(level, message, fields);
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** Used if there is no logger. */
export const SILENT_LOGGER: Logger = { ...loggerTo(() => {}), isLevelEnabled: () => false };
