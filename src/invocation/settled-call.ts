import type { CallRecord, CallStatus } from '../contract/call-record.js';
import type { ToolResult } from '../contract/tool-result.js';
import type { ReadyArguments } from './check-arguments.js';
import type { CallEnvironment, CallRequest, Invocation } from './invocation.js';

/** What is known of a call that has its answer. */
export interface SettledParts {
  readonly call: CallRequest;
  readonly environment: CallEnvironment;
  readonly status: CallStatus;
  readonly result: ToolResult;
  readonly durationMs: number;
  readonly ready?: ReadyArguments;
}

const NONE: readonly string[] = [];

/** An answered call. Its record is written only for those who ask: most calls are made for their result. */
export class SettledCall implements Invocation {
  readonly result: ToolResult;
  readonly #parts: SettledParts;

  constructor(parts: SettledParts) {
    this.result = parts.result;
    this.#parts = parts;
  }

  get status(): 'settled' | 'started' {
    return this.#parts.status === 'started' ? 'started' : 'settled';
  }

  get record(): CallRecord {
    const { call, environment, status, result, durationMs, ready } = this.#parts;
    const usable = ready?.ok ? ready : undefined;
    return {
      id: call.id,
      name: call.name,
      rawArguments: call.arguments,
      arguments: usable?.checked,
      repairs: usable?.repairs ?? NONE,
      removed: usable?.removed ?? NONE,
      attempts: environment.attempt ?? 1,
      durationMs,
      status,
      result,
    };
  }
}
