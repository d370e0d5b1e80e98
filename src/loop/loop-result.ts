import type { CallRecord } from '../contract/call-record.js';
import type { Usage } from '../contract/llm-provider.js';
import type { Message } from '../contract/message.js';

/** How a run ended. */
export type LoopStatus = 'completed' | 'limit' | 'suspended' | 'aborted' | 'failed';

/** The outcome of a run. */
export interface ToolLoopResult {
  /** The model's final text; empty unless `completed` (or answered at the limit). */
  readonly content: string;
  /** Requests made to the model. */
  readonly iterations: number;
  readonly status: LoopStatus;
  /** The whole history, the input included: always one that a strict provider accepts. */
  readonly messages: readonly Message[];
  /** Every call that the model made, rejected ones included, in order. */
  readonly toolCalls: readonly CallRecord[];
  /** Summed over all replies that told theirs. */
  readonly usage: Usage;
  /** Why the run did not complete. */
  readonly error?: Error;
}
