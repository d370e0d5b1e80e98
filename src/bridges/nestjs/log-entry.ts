import { type InspectOptions, inspect } from 'node:util';
import type { LogFields } from '../../contract/logger.js';
import { ToolwrightError } from '../../errors/toolwright-error.js';
import { visibleText } from '../../kernel/visible-text.js';

/**
 * A log message with its fields, in the two forms that loggers want. One that collects data (`json: true`, pino,
 * winston) finds own properties; Nest's console, which inspects what is no string, gets one line of text, and
 * under it where an unexpected error came from.
 */
export class LogEntry {
  readonly message: string;
  /** Where `error` says what happened: the error itself, under the name that pino has a serialiser for. */
  declare readonly err?: Error;

  constructor(message: string, fields: LogFields) {
    this.message = message;
    const { error } = fields;
    const told = error instanceof Error ? { error: error.message, err: error } : {};
    // JSON.stringify shows nothing of an error but what was added to it.
    // Fields may be called anything, and a frozen `Object.prototype` lets nobody assign `toString`.
    Object.defineProperties(this, Object.getOwnPropertyDescriptors({ ...fields, ...told, message }));
  }

  [inspect.custom](_depth: number, options: InspectOptions): string {
    const { message, err, ...fields } = this as LogEntry & LogFields;
    const texts = Object.entries(fields).map(([name, value]) => `${name}=${textOf(value)}`);
    const line = [message, ...texts].join(' ');
    const origin = originOf(err);
    return visibleText(origin === undefined ? line : `${line}\n${inspect(origin, options)}`);
  }
}

/** Bare where it is one word, otherwise as JSON. */
function textOf(text: unknown): string {
  if (typeof text === 'string') return /^[^\s"=]+$/.test(text) ? text : JSON.stringify(text);
  try {
    return JSON.stringify(text) ?? String(text);
  } catch {
    return inspect(text, { compact: true, breakLength: Number.POSITIVE_INFINITY });
  }
}

/** The error that nobody expected: the framework's own say everything in their message. */
function originOf(error: Error | undefined): Error | undefined {
  if (!ToolwrightError.is(error)) return error;
  const { cause } = error as Error;
  return cause instanceof Error ? cause : undefined;
}
