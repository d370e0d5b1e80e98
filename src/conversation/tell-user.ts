import type { ToolResult } from '../contract/tool-result.js';
import type { CompletedCall } from './completion.js';
import type { EventHub } from './event-hub.js';

/** Tells what a result has to say to the user: `forUser`, unless it is silent or empty. */
export function tellUser(events: EventHub, { forUser, silent }: ToolResult, of: CompletedCall): void {
  if (!forUser || silent) return;
  const { tool, callId, taskId } = of;
  const task = taskId === undefined ? {} : { taskId };
  events.tell({ type: 'user-message', text: forUser, tool, callId, ...task });
}
