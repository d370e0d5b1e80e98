import type { CallRecord } from '../contract/call.js';
import type { JsonObject } from '../contract/json-schema.js';
import type { ToolResult } from '../contract/tool-result.js';
import { errorMessage } from '../kernel/error-message.js';
import { plainJson } from '../kernel/json.js';
import type { LoopEvent, ToolLoopResult } from '../loop/events.js';

/** An event of a run as a log keeps it: JSON without what only this process can use. */
export function eventJson(event: LoopEvent): JsonObject {
  if (event.type === 'call-end') {
    const { type, callId, tool, record } = event;
    return plain({
      type,
      callId,
      tool,
      status: record.status,
      durationMs: record.durationMs,
      ...given(record),
    });
  }
  if (event.type === 'call-event') return plain({ ...event, event: eventJson(event.event) });
  if (event.type === 'run-end') return plain({ type: event.type, ...outcomeJson(event.result) });
  if (event.type === 'request-retry') return plain({ ...event, error: errorJson(event.error) });
  return plain(event);
}

/** The outcome of a run, or what a store knows of it. */
type RunOutcome = Pick<
  ToolLoopResult,
  'status' | 'content' | 'output' | 'iterations' | 'usage' | 'spent' | 'pending'
> & { readonly error?: unknown };

/** What came of a run, without its history: that is the conversation's. */
export function outcomeJson(result: RunOutcome): JsonObject {
  const { status, content, output, iterations, usage, spent, pending, error } = result;
  const told = error === undefined ? undefined : errorJson(error);
  return plain({ status, content, output, iterations, usage, spent, pending, error: told });
}

/** An error as readers in other processes get it. */
export function errorJson(error: unknown): JsonObject {
  const { name = 'Error', code } = Object(error) as { readonly name?: unknown; readonly code?: unknown };
  return { name: String(name), message: errorMessage(error), ...(typeof code === 'number' ? { code } : {}) };
}

/** Of edited arguments, also those that ran: `call-start` told of the model's. */
function given({ result, taskId, edited, arguments: args }: CallRecord): JsonObject {
  const told = { result: resultJson(result), taskId };
  return edited === undefined ? told : { ...told, arguments: args, edited };
}

/** All of a result that JSON can say, except the error, which is for logs. */
function resultJson({ forLLM, forUser, silent, isError, async, content, details }: ToolResult): JsonObject {
  return { forLLM, forUser, silent, isError, async, content, details: plainJson(details) };
}

function plain(value: object): JsonObject {
  return plainJson(value) as JsonObject;
}
