import type { ArgumentFault } from '../contract/argument-fault.js';
import type { LogFields, Logger } from '../contract/logger.js';
import type { ToolResult } from '../contract/tool-result.js';
import type { CallEnvironment, CallRequest } from './invocation.js';
import { loggedFields } from './log-field.js';
import type { PerformedCall } from './performed-call.js';

/** Where a call is logged, and what of it. */
export type LogOptions = Pick<CallEnvironment, 'logger' | 'logArguments' | 'redact'>;

interface Mended {
  readonly removed: readonly string[];
  readonly repairs?: readonly string[];
}

/** Writes the life of one call to the log. A logger that throws changes nothing. */
export class CallLog {
  /** Where nobody reads along, all calls share one that does nothing. */
  static readonly none = new CallLog({}, { id: '', name: '', arguments: undefined });

  readonly #logger: Logger | undefined;
  readonly #options: LogOptions;
  readonly #call: CallRequest;
  /** Which call it is, as every entry says it. */
  #head: LogFields | undefined;

  constructor(options: LogOptions, call: CallRequest) {
    this.#logger = options.logger;
    this.#options = options;
    this.#call = call;
  }

  notFound(): void {
    this.#write('warn', 'Tool not found');
  }

  /** Only what is wrong, never what was sent: that may hold secrets. */
  rejected(faults: readonly ArgumentFault[], durationMs: number): void {
    const told = faults
      .slice(0, 20)
      .map(({ path, message }) => (path === '' ? message : `${path}: ${message}`));
    this.#write('warn', 'Tool call rejected', { durationMs, faults: told.join('; ') });
  }

  refused(reason: string): void {
    this.#write('warn', 'Tool call refused', { reason });
  }

  started(args: unknown): void {
    this.#write('info', 'Tool started');
    const { logArguments = true } = this.#options;
    if (logArguments && this.#enabled('debug')) this.#write('debug', 'Tool arguments', { arguments: args });
  }

  /** What was changed about the arguments before they fitted. */
  mended({ removed, repairs }: Mended): void {
    if (removed.length > 0) this.#write('info', 'Unknown arguments removed', { removed });
    if (repairs?.length) this.#write('info', 'Tool arguments mended', { count: repairs.length, repairs });
  }

  /** However the call ended. */
  performed({ status, result }: PerformedCall, durationMs: number): void {
    if (status === 'refused') this.refused(result.forLLM);
    // The model is told to call again, or nobody waits any more: nothing is broken that somebody has to mend.
    else if (status === 'rejected')
      this.#write('warn', 'Tool call rejected', { durationMs, reason: result.forLLM });
    else if (status === 'aborted')
      this.#write('warn', 'Tool call aborted', { durationMs, reason: result.forLLM });
    else if (status === 'suspended') this.#write('info', 'Tool call suspended', { durationMs });
    else if (result.async) this.startedAsync(durationMs);
    else this.ended(result, durationMs);
  }

  ended(result: ToolResult, durationMs: number): void {
    if (result.isError) this.#write('error', 'Tool failed', { durationMs, ...failureOf(result) });
    else this.#write('info', 'Tool completed', { durationMs, resultLength: result.forLLM.length });
  }

  startedAsync(durationMs: number): void {
    this.#write('info', 'Tool started async work', { durationMs });
  }

  completedAsync(result: ToolResult, durationMs: number): void {
    if (result.isError) this.#write('error', 'Async tool failed', { durationMs, ...failureOf(result) });
    else this.#write('info', 'Async tool completed', { durationMs, resultLength: result.forLLM.length });
  }

  /** Something that changes nothing any more, but that somebody should know. */
  ignored(what: string, fields?: LogFields): void {
    this.#write('warn', what, fields);
  }

  /** Whether anybody reads along, so that times need to be taken. */
  get isRead(): boolean {
    return this.#logger !== undefined;
  }

  #enabled(level: string): boolean {
    try {
      return this.#logger !== undefined && (this.#logger.isLevelEnabled?.(level) ?? true);
    } catch {
      return false;
    }
  }

  #write(level: 'debug' | 'info' | 'warn' | 'error', message: string, fields?: LogFields): void {
    if (this.#logger === undefined || !this.#enabled(level)) return;
    try {
      const { redact } = this.#options;
      const { name: tool, id: callId } = this.#call;
      this.#head ??= loggedFields({ tool, callId }, redact);
      this.#logger[level](
        message,
        fields === undefined ? { ...this.#head } : this.#entry(this.#head, fields),
      );
    } catch {
      // There is nowhere left to report a logger that throws.
    }
  }

  #entry(head: LogFields, { durationMs, ...others }: LogFields): LogFields {
    const timing = typeof durationMs === 'number' ? { durationMs: Math.round(durationMs * 100) / 100 } : {};
    return { ...head, ...timing, ...loggedFields(others, this.#options.redact) };
  }
}

/** The error, and what the model was told instead where it was told something else. */
function failureOf({ error, forLLM }: ToolResult): LogFields {
  if (!(error instanceof Error)) return { error: error ?? forLLM };
  return error.message.endsWith(forLLM) ? { error } : { told: forLLM, error };
}
