import type { ToolResult } from './tool-result.js';

/** Work of a call that was started and has not completed yet. Plain data, so that it can be kept. */
export interface BackgroundTask {
  /** `task_` and a UUID: no two processes give the same. */
  readonly id: string;
  /** The call that started it. */
  readonly callId: string;
  readonly tool: string;
  /** Of the call's scope, where that had one. */
  readonly conversationId?: string;
  /** `waiting` for its turn in the queue, or `running`: also while its result is not delivered yet. */
  readonly status: 'waiting' | 'running';
}

/**
 * What becomes of started work. `task-start`: it begins to run; `task-progress`: its tool reported something;
 * `task-end`: its completion was delivered. A task that is cancelled while it waits has no `task-start`.
 */
export type TaskEvent =
  | { readonly type: 'task-start'; readonly task: BackgroundTask }
  | { readonly type: 'task-progress'; readonly task: BackgroundTask; readonly update: unknown }
  | { readonly type: 'task-end'; readonly task: BackgroundTask; readonly result: ToolResult };

/** Hears of started work. One that throws or rejects changes nothing. */
export type TaskListener = (event: TaskEvent) => void;
