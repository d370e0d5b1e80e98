import type { InboxContent, NewInboxEntry } from '../contract/conversation-log.js';
import type { Job } from '../contract/job-engine.js';
import type { ToolResult } from '../contract/tool-result.js';
import { attachmentsText, resultText } from './result-text.js';

/** A call that has ended, or whose work has. */
export interface CompletedCall {
  readonly tool: string;
  readonly callId: string;
  readonly taskId?: string;
}

type Completion = Extract<InboxContent, { readonly kind: 'completion' }>;

/** A completion as it begins a turn: with the text that an answer of the call would have had. */
export function completionOf({ tool, callId, taskId }: CompletedCall, result: ToolResult): Completion {
  const task = taskId === undefined ? {} : { taskId };
  return { kind: 'completion', tool, callId, ...task, text: resultText(result) || attachmentsText(result) };
}

/** The same as an entry of an inbox; `owner`: that of the turn that made the call. */
export function completionContent(call: CompletedCall, result: ToolResult, owner: unknown): InboxContent {
  const { forUser, silent } = result;
  const told = forUser && !silent ? { forUser } : {};
  return { ...completionOf(call, result), ...told, ...(owner === undefined ? {} : { owner }) };
}

/** The key of that entry: the completion of a call enters once, whoever hears of it, and whichever process did its work. */
export function completionKey(idempotencyKey: string): string {
  return `completion task_${idempotencyKey}`;
}

/** Runs of conversations have the conversation's id and a number. */
function conversationOfRun(runId: string): string | undefined {
  return /^(.+)\.\d+$/s.exec(runId)?.[1];
}

/** How a job that a turn of a conversation has started tells that conversation what came of it. */
export function completionEntry(job: Job, result: ToolResult): NewInboxEntry | undefined {
  const { id: taskId, tool, callId, idempotencyKey, scope, runId = '' } = job;
  const { conversationId, owner } = scope;
  if (conversationId === undefined || conversationOfRun(runId) !== conversationId) return undefined;
  const call = { tool, callId, taskId };
  const content = completionContent(call, result, owner);
  return { conversationId, key: completionKey(idempotencyKey), content, onlyKnown: true };
}
