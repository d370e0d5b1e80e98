import { plainJson } from '../checking/plain-json.js';
import type { CallRecord } from '../contract/call-record.js';
import type { StoredCall, StoredCallRecord, StoredResult } from '../contract/run-state.js';
import { ToolResult } from '../contract/tool-result.js';
import { resultText } from '../registry/result-text.js';
import { type CallOutcome, isUnanswered } from './call-outcome.js';
import { type ReadCall, readCall } from './read-call.js';

/** What came of a call, as the state of a run keeps it. */
export function storedCall(outcome: CallOutcome, call: ReadCall): StoredCall {
  const args = sentArguments(call);
  if (!isUnanswered(outcome))
    return { status: 'settled', record: { ...storedRecord(outcome), rawArguments: args } };
  const { suspension } = outcome;
  const { id, name } = call;
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
export function storedRecord(record: CallRecord): StoredCallRecord {
  const { rawArguments, arguments: args, result } = record;
  return {
    ...record,
    rawArguments: plainJson(rawArguments),
    arguments: plainJson(args) as StoredCallRecord['arguments'],
    result: storedResult(result),
  };
}

/** The record of a call from the state of a run; its error, if it had one, is gone. */
export function restoredRecord({ result, ...record }: StoredCallRecord): CallRecord {
  return { ...record, result: new ToolResult(result) };
}

/**
 * As the model sent them, whatever the tool has done to the object since. Arguments that JSON cannot say were
 * none that could be used.
 */
function sentArguments({ arguments: args, text }: ReadCall): ReadCall['arguments'] {
  if (typeof args === 'string') return args;
  const sent = text === undefined ? plainJson(args) : JSON.parse(text);
  return (sent ?? '') as ReadCall['arguments'];
}

function storedResult(result: ToolResult): StoredResult {
  const { forUser, silent, isError, async, content, details } = result;
  // Details are the application's own, and may be anything.
  const plain = plainJson(details);
  return {
    // An error that stands for an empty text is not kept, so its text is.
    forLLM: resultText(result),
    silent,
    isError,
    async,
    ...(forUser === undefined ? {} : { forUser }),
    ...(content === undefined ? {} : { content }),
    ...(plain === undefined ? {} : { details: plain }),
  };
}
