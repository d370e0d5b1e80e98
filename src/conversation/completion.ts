import type { BackgroundTask } from '../contract/background-task.js';
import type { ToolContext } from '../contract/tool-context.js';
import type { ToolResult } from '../contract/tool-result.js';
import { toolMessage } from '../loop/write-messages.js';
import type { CompletionOrigin } from './conversation-event.js';

/** A completion as it begins a turn: with the text that an answer of the call would have had. */
export function completionOf(call: CompletedCall, result: ToolResult): CompletionOrigin {
  const { tool, callId, taskId } = call;
  const text = toolMessage(callId, result).content;
  return { kind: 'completion', tool, callId, ...(taskId === undefined ? {} : { taskId }), text };
}

/** A call that has ended, or whose work has. */
export interface CompletedCall {
  readonly tool: string;
  readonly callId: string;
  readonly taskId?: string;
}

/** The call of a context. */
export function callOfContext(context: ToolContext | undefined): CompletedCall {
  const { toolName = '', callId = '', taskId } = context ?? {};
  return { tool: toolName, callId, taskId };
}

/** The call of a task. */
export function callOfTask({ tool, callId, id }: BackgroundTask): CompletedCall {
  return { tool, callId, taskId: id };
}
