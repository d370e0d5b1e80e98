import type { CallRecord } from '../contract/call-record.js';
import type { Usage } from '../contract/llm-provider.js';
import type { Message } from '../contract/message.js';
import type { RunState } from '../contract/run-state.js';
import type { PendingCall } from '../contract/suspension.js';

/** How a run ended. */
export type LoopStatus = 'completed' | 'limit' | 'suspended' | 'aborted' | 'failed';

/** The outcome of a run. */
export interface ToolLoopResult {
  /**
   * The model's final text; of an `aborted` run, what was streamed of the reply that was cut off. Otherwise empty,
   * unless answered at the limit.
   */
  readonly content: string;
  /** Requests made to the model. */
  readonly iterations: number;
  readonly status: LoopStatus;
  /**
   * The whole history, the input included: always one that a strict provider accepts. That of a suspended run
   * ends before the assistant message whose calls wait.
   */
  readonly messages: readonly Message[];
  /** Every call that the model made and that has its result, rejected ones included, in order. */
  readonly toolCalls: readonly CallRecord[];
  /** Summed over all replies that told theirs. */
  readonly usage: Usage;
  /** What a suspended run waits for: one entry for each answer that `resumeToolLoop` takes. */
  readonly pending?: readonly PendingCall[];
  /** What `resumeToolLoop` goes on from; plain JSON. */
  readonly state?: RunState;
  /** Why the run did not complete. */
  readonly error?: Error;
}
