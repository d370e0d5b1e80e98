import type { LogFields } from '../contract/logger.js';
import { visibleLine, visibleText } from '../kernel/visible-text.js';
import { KNOWN_SECRETS, type Redaction } from './redact.js';

const MAX_TEXT = 2000;
const MAX_NAME = 64;
const MAX_ITEMS = 20;
/** Causes of causes: a chain may be a ring. */
const MAX_CAUSES = 10;
/** Errors of one field: those of an AggregateError may be many, with causes of their own. */
const MAX_ERRORS = 40;

/** Fields as they may be logged: of bounded size, without secrets, and with nothing hidden in their texts. */
export function loggedFields(fields: LogFields, redaction: Redaction = KNOWN_SECRETS): LogFields {
  const told: Record<string, unknown> = {};
  for (const name of Object.keys(fields)) told[name] = loggedField(fields[name], redaction);
  return told;
}

function loggedField(value: unknown, redaction: Redaction): unknown {
  if (typeof value === 'number' || (typeof value === 'string' && isName(value))) return value;
  try {
    return new LoggedField(redaction).of(value);
  } catch {
    return 'it cannot be shown: it throws when it is looked at';
  }
}

class LoggedField {
  readonly #redaction: Redaction;
  #errors = MAX_ERRORS;

  constructor(redaction: Redaction) {
    this.#redaction = redaction;
  }

  of(value: unknown): unknown {
    if (typeof value === 'string') return isName(value) ? value : visibleLine(this.#text(value));
    if (Array.isArray(value) && value.length > MAX_ITEMS)
      return [...this.#each(value.slice(0, MAX_ITEMS)), `… ${value.length - MAX_ITEMS} more`];
    if (Array.isArray(value)) return this.#each(value);
    if (value instanceof Error) return this.#error(value, MAX_CAUSES);
    return this.#redaction.copy(value);
  }

  #each(values: readonly unknown[]): readonly unknown[] {
    return values.map((value) => this.of(value));
  }

  #text(text: string): string {
    // Looked for in somewhat more than is shown, so that no half of a secret stays.
    const masked = this.#redaction.mask(text.slice(0, 2 * MAX_TEXT));
    if (text.length <= MAX_TEXT) return masked;
    return `${masked.slice(0, MAX_TEXT)}… (${text.length - MAX_TEXT} more characters)`;
  }

  /** The error itself where all of it may be logged as it is; otherwise a copy. */
  #error(error: Error, causes: number): Error {
    const told: PropertyDescriptorMap = {};
    let isChanged = false;
    for (const name of partsOf(error)) {
      const value: unknown = error[name as keyof Error];
      const shown = this.#part(name, value, causes - 1);
      if (shown !== value) isChanged = true;
      const enumerable = Object.prototype.propertyIsEnumerable.call(error, name);
      told[name] = { value: shown, enumerable, configurable: true, writable: true };
    }
    if (!isChanged) return error;
    // Loggers know errors by what only the engine makes.
    const copy = Object.setPrototypeOf(new Error(), Object.getPrototypeOf(error));
    return Object.defineProperties(copy, told);
  }

  #part(name: string, value: unknown, causes: number): unknown {
    if (name === 'errors' && Array.isArray(value)) return this.#errorsWithin(value, causes);
    if (value instanceof Error) return this.#errorWithin(value, causes);
    if (typeof value === 'string') return visibleText(this.#text(value));
    return typeof value === 'object' && value !== null ? this.of(value) : value;
  }

  #errorWithin(error: Error, causes: number): unknown {
    if (causes <= 0 || this.#errors <= 0) return '… more causes';
    this.#errors -= 1;
    return this.#error(error, causes);
  }

  #errorsWithin(errors: readonly unknown[], causes: number): readonly unknown[] {
    const shown = errors.slice(0, MAX_ITEMS).map((one) => this.#part('', one, causes));
    if (errors.length > MAX_ITEMS) return [...shown, `… ${errors.length - MAX_ITEMS} more`];
    return shown.every((one, index) => one === errors[index]) ? errors : shown;
  }
}

/** Most fields are names and ids, and there is one in every entry. */
function isName(text: string): boolean {
  return text.length <= MAX_NAME && /^[a-z][a-z_]*\d{0,9}$/.test(text);
}

const PARTS = ['message', 'stack', 'cause', 'errors'];

/** What an error shows: what it has of its own, and what every error may have. */
function partsOf(error: Error): ReadonlySet<string> {
  return new Set([...PARTS.filter((name) => name in error), ...Object.getOwnPropertyNames(error)]);
}
