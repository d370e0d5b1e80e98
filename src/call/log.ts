import type { LogFields, Logger, LogLevel } from '../contract/ports.js';
import type { ArgumentFault } from '../contract/tool.js';
import type { ToolResult } from '../contract/tool-result.js';
import { errorMessage, isClientError } from '../kernel/error-message.js';
import { withoutUndefined } from '../kernel/json.js';
import { visibleLine, visibleText } from '../kernel/visible-text.js';
import type { CallEnvironment, CallOutcome, CallRequest } from './invocation.js';
import { KNOWN_SECRETS, type Redaction } from './redact.js';

/** Where a call is logged, and what of it. */
type LogOptions = Pick<CallEnvironment, 'logger' | 'logArguments' | 'redact'>;

/** What keeps secrets out of what is recorded of calls; none where their arguments are not to be told. */
export function redactionIn({ logArguments = true, redact }: CallEnvironment): Redaction | undefined {
  return logArguments ? (redact ?? KNOWN_SECRETS) : undefined;
}

/** Writes the life of one call to the log. A logger that throws changes nothing. */
export class CallLog {
  /** Without a logger, all calls share one that does nothing. */
  static readonly none = new CallLog({}, { id: '', name: '', arguments: undefined });

  /** Whether anybody reads along, so that times need to be taken. */
  readonly isRead: boolean;
  readonly #logger: Logger | undefined;
  readonly #options: LogOptions;
  readonly #call: CallRequest;
  /** Which call it is, as every entry says it. */
  #head: LogFields | undefined;

  constructor(options: LogOptions, call: CallRequest) {
    this.isRead = options.logger !== undefined;
    this.#logger = options.logger;
    this.#options = options;
    this.#call = call;
  }

  notFound(): void {
    this.#write('warn', 'Tool not found');
  }

  /** Only what is wrong, never what was sent: that may hold secrets. */
  rejected(faults: readonly ArgumentFault[], durationMs: number): void {
    const told = faults.slice(0, 20).map(({ path, message }) => `${path}${path && ': '}${message}`);
    const { cause: error } = faults.find(({ cause }) => cause !== undefined) ?? {};
    const thrown = error === undefined ? {} : { error };
    this.#write('warn', 'Tool call rejected', { durationMs, faults: told.join('; '), ...thrown });
  }

  started(args: unknown): void {
    this.#write('info', 'Tool started');
    const { logArguments = true } = this.#options;
    if (logArguments) this.#write('debug', 'Tool arguments', { arguments: args });
  }

  /** What was changed about the arguments before they fitted. */
  repaired(repairs: readonly string[], removed: readonly string[]): void {
    if (removed.length > 0) this.#write('info', 'Unknown arguments removed', { removed });
    if (repairs.length > 0) this.#write('info', 'Tool arguments mended', { count: repairs.length, repairs });
  }

  /** However the call ended. */
  performed({ status, result }: CallOutcome, durationMs: number): void {
    const { forLLM: reason } = result;
    if (status === 'refused') this.#write('warn', 'Tool call refused', { reason });
    // The model is asked to call again, or the run has ended: this is not an error.
    else if (status === 'rejected' || status === 'aborted')
      this.#write('warn', `Tool call ${status}`, { durationMs, reason });
    else if (status === 'suspended') this.#write('info', 'Tool call suspended', { durationMs });
    else if (result.async) this.#write('info', 'Tool started async work', { durationMs });
    else this.#ended('Tool', result, durationMs);
  }

  completedAsync(result: ToolResult, durationMs: number): void {
    this.#ended('Async tool', result, durationMs);
  }

  #ended(what: string, { isError, error, forLLM }: ToolResult, durationMs: number): void {
    if (!isError) {
      this.#write('info', `${what} completed`, { durationMs, resultLength: forLLM.length });
      return;
    }
    // An error that says no to a client, as NestJS calls them, is an answer: nothing is broken.
    const isThrown = error instanceof Error;
    const refusal = [error, isThrown ? error.cause : undefined].find(isClientError);
    if (refusal !== undefined)
      this.#write('debug', `${what} failed`, { durationMs, reason: errorMessage(refusal) });
    // What the model received instead, if that is different.
    else if (isThrown && !error.message.endsWith(forLLM))
      this.#write('error', `${what} failed`, { durationMs, told: forLLM, error });
    else this.#write('error', `${what} failed`, { durationMs, error: error ?? forLLM });
  }

  /** An event without consequences that an operator should know of. */
  ignored(what: string, fields?: LogFields): void {
    this.#write('warn', what, fields);
  }

  #write(level: LogLevel, message: string, fields?: LogFields): void {
    try {
      if (this.#logger === undefined || this.#logger.isLevelEnabled?.(level) === false) return;
      const { redact } = this.#options;
      const { name: tool, id: callId, place } = this.#call;
      this.#head ??= loggedFields(withoutUndefined({ tool, callId, runId: place?.runId }), redact);
      const entry = { ...this.#head, ...(fields && loggedFields(fields, redact)) };
      const { durationMs } = entry;
      if (typeof durationMs === 'number') entry.durationMs = Math.round(durationMs * 100) / 100;
      this.#logger[level](message, entry);
    } catch {
      // There is nowhere left to report a logger that throws.
    }
  }
}

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
    if (Array.isArray(value)) {
      const shown = value.slice(0, MAX_ITEMS).map((item) => this.of(item));
      return value.length > MAX_ITEMS ? [...shown, `… ${value.length - MAX_ITEMS} more`] : shown;
    }
    if (value instanceof Error) return this.#error(value, MAX_CAUSES);
    return this.#redaction.copy(value);
  }

  #text(text: string): string {
    const masked = this.#redaction.mask(text, MAX_TEXT);
    return text.length <= MAX_TEXT ? masked : `${masked}… (${text.length - MAX_TEXT} more characters)`;
  }

  /** The error itself where all of it may be logged as it is; otherwise a copy. */
  #error(error: Error, causes: number): Error {
    const told: PropertyDescriptorMap = {};
    let isChanged = false;
    // What it has of its own, and what every error may have.
    const parts = PARTS.filter((name) => name in error);
    for (const name of new Set([...parts, ...Object.getOwnPropertyNames(error)])) {
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
    if (name === 'errors' && Array.isArray(value)) {
      const shown = value.slice(0, MAX_ITEMS).map((error) => this.#part('', error, causes));
      if (value.length > MAX_ITEMS) return [...shown, `… ${value.length - MAX_ITEMS} more`];
      return shown.every((item, index) => item === value[index]) ? value : shown;
    }
    if (value instanceof Error) {
      if (causes <= 0 || this.#errors <= 0) return '… more causes';
      this.#errors -= 1;
      return this.#error(value, causes);
    }
    if (typeof value === 'string') return visibleText(this.#text(value));
    return typeof value === 'object' && value !== null ? this.of(value) : value;
  }
}

/** Most fields are names and ids, and there is one in every entry. */
function isName(text: string): boolean {
  return text.length <= MAX_NAME && /^[a-z][a-z_]*\d{0,9}$/.test(text);
}

const PARTS = ['message', 'stack', 'cause', 'errors'];

/** Writes what is reported nowhere else, without secrets. A logger that throws changes nothing. */
export class SafeLog {
  readonly #logger: Logger | undefined;

  constructor(logger: Logger | undefined) {
    this.#logger = logger;
  }

  debug(message: string, fields: LogFields): void {
    this.#write('debug', message, fields);
  }

  info(message: string, fields: LogFields): void {
    this.#write('info', message, fields);
  }

  warn(message: string, fields: LogFields): void {
    this.#write('warn', message, fields);
  }

  error(message: string, fields: LogFields): void {
    this.#write('error', message, fields);
  }

  #write(level: LogLevel, message: string, fields: LogFields): void {
    try {
      this.#logger?.[level](KNOWN_SECRETS.mask(message), loggedFields(fields));
    } catch {
      // There is nowhere left to report a logger that throws.
    }
  }
}
