import type { CallRecord } from '../contract/call-record.js';
import type { FinishReason, Usage } from '../contract/llm-provider.js';
import type { ProgressUpdate } from '../contract/tool-context.js';
import type { ToolResult } from '../contract/tool-result.js';
import type { ToolLoopResult } from './loop-result.js';

/** What happens in a run, in the order in which it happens. */
export type LoopEvent =
  | { readonly type: 'run-start' }
  | { readonly type: 'step-start'; readonly iteration: number }
  | { readonly type: 'text-delta'; readonly text: string }
  | {
      readonly type: 'call-start';
      readonly callId: string;
      readonly tool: string;
      /** As the model sent them. */
      readonly arguments: unknown;
    }
  | {
      readonly type: 'call-progress';
      readonly callId: string;
      readonly tool: string;
      readonly arguments: unknown;
      /** What the tool reported. */
      readonly update: ProgressUpdate;
    }
  | {
      readonly type: 'call-end';
      readonly callId: string;
      readonly tool: string;
      readonly result: ToolResult;
      readonly record: CallRecord;
    }
  /** The call waits for somebody, and the run will end as suspended; resumed, the call starts again. */
  | { readonly type: 'call-suspended'; readonly callId: string; readonly tool: string }
  | {
      readonly type: 'step-end';
      readonly iteration: number;
      readonly finishReason: FinishReason;
      readonly usage?: Usage;
    }
  | { readonly type: 'run-end'; readonly result: ToolLoopResult };

/**
 * Takes the events of a run. The run waits for what it returns, so that a slow reader slows the run
 * instead of filling memory; progress is not waited for, because tools report it in passing.
 */
export type EventSink = (event: LoopEvent) => void | Promise<void>;
