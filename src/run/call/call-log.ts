import type { LogFields, LogLevel } from '../../core/contract/ports.js';
import type { ToolResult } from '../../core/contract/tool-result.js';
import { errorMessage, isClientError } from '../../core/kernel/error-message.js';
import { withoutUndefined } from '../../core/kernel/json.js';
import { logFailure } from './failure-log.js';
import type { CallEnvironment, CallOutcome, CallRequest } from './invocation.js';
import { loggedFields } from './log.js';
import { KNOWN_SECRETS, type Redaction } from './redact.js';

/** The logger of a call, and what it may record. */
type LogOptions = Pick<CallEnvironment, 'logger' | 'logArguments' | 'redact'>;

/** The redaction for recorded calls; `undefined` if arguments must not be recorded. */
export function redactionIn({ logArguments = true, redact }: CallEnvironment): Redaction | undefined {
  return logArguments ? (redact ?? KNOWN_SECRETS) : undefined;
}

/** A call that may have no log of its own. */
interface LoggedCall {
  readonly request: CallRequest;
  readonly environment: LogOptions;
}

/** Logs an error of application code in a call that no other code receives; works without a logger, too. */
export function logThrown({ request, environment }: LoggedCall, what: string, error: unknown): void {
  const { logger, redact } = environment;
  logFailure(logger, { what, error, at: placeOf(request), redact });
}

function placeOf({ name: tool, id, place }: CallRequest): LogFields {
  return withoutUndefined({ tool, callId: id || undefined, runId: place?.runId });
}

/** Writes the events of one call to the log. Errors of the logger have no effect. */
export class CallLog {
  /** Without a logger, all calls share one log that does nothing. */
  static readonly none = new CallLog({}, { id: '', name: '', arguments: undefined });

  /** The fields of every entry that identify the call. */
  #head: LogFields | undefined;

  constructor(
    private readonly options: LogOptions,
    private readonly call: CallRequest,
  ) {}

  /** Whether there is a logger, so that times must be measured. */
  get isRead(): boolean {
    return this.options.logger !== undefined;
  }

  started(args: unknown): void {
    this.#write('info', 'Tool started');
    const { logArguments = true } = this.options;
    if (logArguments) this.#write('debug', 'Tool arguments', { arguments: args });
  }

  /** Changes to the arguments before they matched. */
  repaired(repairs: readonly string[], removed: readonly string[]): void {
    if (removed.length > 0) this.#write('info', 'Unknown arguments removed', { removed });
    if (repairs.length > 0)
      this.#write('info', 'Tool arguments repaired', { count: repairs.length, repairs });
  }

  /** Logs the end of the call. */
  ended({ status, result, faults }: CallOutcome, durationMs: number, isFound: boolean): void {
    const { forLLM: reason } = result;
    if (faults !== undefined) {
      // Only the faults, never the sent arguments, which may contain secrets.
      const shown = faults.slice(0, 20).map(({ path, message }) => `${path}${path && ': '}${message}`);
      const { cause: error } = faults.find(({ cause }) => cause !== undefined) ?? {};
      const thrown = error === undefined ? {} : { error };
      this.#write('warn', 'Tool call rejected', { durationMs, faults: shown.join('; '), ...thrown });
    } else if (!isFound && status === 'rejected') this.#write('warn', 'Tool not found');
    else if (status === 'refused') this.#write('warn', 'Tool call refused', { reason });
    // The model is asked to call again, or the run has ended: this is not an error.
    else if (status === 'rejected' || status === 'aborted')
      this.#write('warn', `Tool call ${status}`, { durationMs, reason });
    else if (status === 'suspended') this.#write('info', 'Tool call suspended', { durationMs });
    else if (result.async) this.#write('info', 'Tool started async work', { durationMs });
    else this.#completed('Tool', result, durationMs);
  }

  completedAsync(result: ToolResult, durationMs: number): void {
    this.#completed('Async tool', result, durationMs);
  }

  #completed(what: string, { isError, error, forLLM }: ToolResult, durationMs: number): void {
    if (!isError) {
      this.#write('info', `${what} completed`, { durationMs, resultLength: forLLM.length });
      return;
    }
    // A client error, such as NestJS's HTTP exceptions, is a regular answer and not a failure.
    const isThrown = error instanceof Error;
    const refusal = [error, isThrown ? error.cause : undefined].find(isClientError);
    if (refusal !== undefined)
      this.#write('debug', `${what} failed`, { durationMs, reason: errorMessage(refusal) });
    // The text that the model received instead, if it differs.
    else if (isThrown && !error.message.endsWith(forLLM))
      this.#write('error', `${what} failed`, { durationMs, sent: forLLM, error });
    else this.#write('error', `${what} failed`, { durationMs, error: error ?? forLLM });
  }

  /** An event without consequences that operators should see. */
  ignored(what: string, fields?: LogFields): void {
    this.#write('warn', what, fields);
  }

  #write(level: LogLevel, message: string, fields?: LogFields): void {
    try {
      const { logger, redact } = this.options;
      if (logger === undefined || logger.isLevelEnabled?.(level) === false) return;
      this.#head ??= loggedFields(placeOf(this.call), redact);
      const entry = { ...this.#head, ...(fields && loggedFields(fields, redact)) };
      const { durationMs } = entry;
      if (typeof durationMs === 'number') entry.durationMs = Math.round(durationMs * 100) / 100;
      logger[level](message, entry);
    } catch {
      // There is nowhere left to report a logger that throws.
    }
  }
}
