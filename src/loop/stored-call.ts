import type { CallRecord } from '../contract/call-record.js';
import type { StoredCall, StoredCallRecord, StoredResult } from '../contract/run-state.js';
import { ToolResult } from '../contract/tool-result.js';
import { resultText } from '../registry/result-text.js';
import { type CallOutcome, isUnanswered } from './call-outcome.js';
import { type ReadCall, readCall } from './read-call.js';

/** What came of a call, as the state of a run keeps it. */
export function storedCall(outcome: CallOutcome): StoredCall {
  if (!isUnanswered(outcome)) return { status: 'settled', record: storedRecord(outcome) };
  const { call, suspension } = outcome;
  const { id, name, arguments: args } = call;
  return suspension === undefined
    ? { status: 'held', id, name, arguments: args }
    : { status: 'waiting', id, name, arguments: args, ...suspension };
}

/** A kept call, to be made again unless it has its answer. */
export function restoredCall(stored: StoredCall): ReadCall {
  if (stored.status === 'settled') {
    const record = restoredRecord(stored.record);
    const { id, name, rawArguments } = record;
    return { ...readCall({ id, name, arguments: rawArguments as ReadCall['arguments'] }), record };
  }
  const call = readCall(stored);
  return stored.status === 'waiting' ? { ...call, journal: stored.journal } : call;
}

/** The record of a call as the state of a run keeps it. */
export function storedRecord({ result, ...record }: CallRecord): StoredCallRecord {
  return { ...record, result: storedResult(result) };
}

/** The record of a call from the state of a run; its error, if it had one, is gone. */
export function restoredRecord({ result, ...record }: StoredCallRecord): CallRecord {
  return { ...record, result: new ToolResult(result) };
}

function storedResult(result: ToolResult): StoredResult {
  const { forUser, silent, isError, async, content, details } = result;
  const isPlain = details !== undefined && isJson(details);
  return {
    // An error that stands for an empty text is not kept, so its text is.
    forLLM: resultText(result),
    silent,
    isError,
    async,
    ...(forUser === undefined ? {} : { forUser }),
    ...(content === undefined ? {} : { content }),
    ...(isPlain ? { details } : {}),
  };
}

/** Details are the application's own, and may be anything. */
function isJson(value: unknown): boolean {
  try {
    return JSON.stringify(value) !== undefined;
  } catch {
    return false;
  }
}
