import type { CallRecord, CallScope, HookNote } from '../../core/contract/call.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { ArgumentFault, ToolDefinition } from '../../core/contract/tool.js';
import {
  type Content,
  type ContentPart,
  RetryToolCall,
  ToolResult,
} from '../../core/contract/tool-result.js';
import { parsedJson } from '../../core/kernel/json.js';
import { listFaults } from '../../tools/checking/faults.js';
import type { CallLog } from './call-log.js';
import type { BodyOutcome, CallEnvironment, CallOutcome, CallRequest } from './invocation.js';
import type { CallPlan } from './plan.js';
import { isToolResultLike, ResultForm, writeResult } from './result-form.js';
import {
  cutDetails,
  failedResult,
  headOf,
  unendedText,
  withoutFiles,
  withText,
  writeFailure,
} from './result-text.js';

/** The facts that the text of a result depends on. */
interface WrittenCall {
  /** If the tool no longer exists, only its name. */
  readonly tool: Pick<
    ToolDefinition,
    'name' | 'returnsContent' | 'maxResultChars' | 'isOutputInferred' | 'annotations'
  >;
  readonly plan?: CallPlan;
  readonly environment: CallEnvironment;
  readonly scope: CallScope;
  readonly log: CallLog;
}

/** Converts the outcome of a tool's body to the result and status of its call: the last stage of the pipeline. */
export function writeOutcome(call: WrittenCall, end: BodyOutcome): CallOutcome {
  const written = end.type === 'returned' ? writeReturned(call, end.value) : writeUnreturned(call, end);
  const limit = call.tool.maxResultChars ?? call.environment.maxResultChars ?? MAX_RESULT_CHARS;
  const { length } = written.result.forLLM;
  // Most results are short.
  if (length < SHORTEST_WITH_FILES && length <= limit) return written;
  return { ...written, result: cutResult(takeOutFiles(written.result), limit) };
}

/** The default for the most characters of a result that the model receives: about 25,000 tokens. */
const MAX_RESULT_CHARS = 100_000;

function writeUnreturned(
  { tool, environment, scope }: WrittenCall,
  end: Exclude<BodyOutcome, { readonly type: 'returned' }>,
): CallOutcome {
  switch (end.type) {
    case 'error': {
      const { error } = end;
      if (asksForRetry(error)) {
        const isSilent = String(error.message).trim() === '';
        const hint = isSilent
          ? `The tool '${tool.name}' cannot use this call, and did not say why. Call it again with other arguments.`
          : error.message;
        return { status: 'rejected', result: failedResult('InvalidArguments', hint, error) };
      }
      if (isAbort(error, scope.signal)) return aborted(tool, true);
      const status = scope.signal?.aborted ? 'aborted' : 'error';
      return { status, result: writeFailure(tool.name, error, environment.describeError) };
    }
    case 'timed_out':
      return { status: 'timed_out', result: failedResult('ToolTimedOut', unendedText(tool, end)) };
    case 'refused': {
      // The call may have been aborted while the decision was pending.
      if (scope.signal?.aborted && !end.isAnswer) return aborted(tool);
      const name = end.isExpired ? 'AnswerExpired' : 'ToolRefused';
      return {
        status: 'refused',
        result: failedResult(name, `The tool '${tool.name}' was refused: ${end.reason}`),
      };
    }
    case 'aborted':
      return aborted(tool, end.hasBegun);
  }
}

function aborted(tool: WrittenCall['tool'], hasBegun = false): CallOutcome {
  const message = `The run was aborted. ${unendedText(tool, hasBegun ? 'begun' : 'not-begun')}`;
  const end: CallOutcome = { status: 'aborted', result: failedResult('RunAborted', message) };
  return hasBegun ? end : { ...end, isNotBegun: true };
}

/** Whether a method stopped only because of the abort, as `fetch` does. It may have had an effect before. */
function isAbort(thrown: unknown, signal: AbortSignal | undefined): boolean {
  if (!signal?.aborted) return false;
  return thrown === signal.reason || (thrown instanceof DOMException && thrown.name === 'AbortError');
}

/** Reading a thrown value may run its author's code, such as the traps of a proxy. */
function asksForRetry(thrown: unknown): thrown is RetryToolCall {
  try {
    return RetryToolCall.is(thrown);
  } catch {
    return false;
  }
}

function writeReturned(call: WrittenCall, value: unknown): CallOutcome {
  const { tool, plan, environment } = call;
  const result = writeResult(tool, value, environment.describeError);
  if (result.isError) return { status: 'error', result };
  const success: CallOutcome = { status: 'success', result };
  // Most tools declare no output.
  return plan?.checkResult === undefined ? success : checkedOutcome(call, value, success);
}

function checkedOutcome(call: WrittenCall, value: unknown, success: CallOutcome): CallOutcome {
  const { tool, plan, log } = call;
  const { result } = success;
  // A mismatch with an inferred output is only a warning for the log.
  if (plan === undefined || result.async || (tool.isOutputInferred && !log.isRead)) return success;
  const faults = resultFaults(call, value, result);
  if (faults.length === 0) return success;
  if (tool.isOutputInferred) {
    // Types state the intention, but the value was returned. Each place is reported once.
    const { reportedMisfits } = plan;
    for (const { path, message: fault } of faults) {
      const place = path.replace(/(^|\.)\d+(?=\.|$)/g, '$1*');
      if (reportedMisfits.has(place) || reportedMisfits.size >= MAX_MISFITS) continue;
      reportedMisfits.add(place);
      log.ignored('A result does not fit the output that was read from its types', { path: place, fault });
    }
    return success;
  }
  const message = `The tool ran, but its result does not fit the output that '${tool.name}' declares:`;
  return {
    status: 'error',
    result: failedResult('InvalidResult', [message, ...listFaults(faults)].join('\n')),
  };
}

/** The most reported places of one tool, because an array has as many places as items. */
const MAX_MISFITS = 50;

/**
 * Checks a declared output schema against the value itself, or against the details of a result for the model. Without
 * details, it checks the text, as it is or as JSON, because awaited background work returns text.
 */
function resultFaults(
  { tool, plan }: WrittenCall,
  value: unknown,
  { forLLM, details }: ToolResult,
): readonly ArgumentFault[] {
  const check = plan?.checkResult ?? (() => []);
  if (value instanceof ResultForm) return check(value.json);
  if (!isToolResultLike(value, tool)) return check(value);
  if (details !== undefined) return check(details);
  const faults = check(forLLM);
  const parsed = faults.length === 0 ? undefined : parsedJson(forLLM);
  return parsed === undefined ? faults : check(parsed);
}

/** A call that has ended, or that was answered without being executed. */
interface EndedCall {
  readonly request: CallRequest;
  readonly attempt: number;
  readonly since: number;
  readonly checked?: JsonObject | undefined;
  readonly sent?: unknown;
  readonly repairs?: readonly string[];
  readonly removed?: readonly string[];
  readonly hooked?: { readonly rawArguments: unknown; readonly notes: readonly HookNote[] } | undefined;
}

/** The record of a call. */
export function callRecord(call: EndedCall, { status, result, taskId }: CallOutcome): CallRecord {
  const { request, attempt, since, checked, hooked } = call;
  const { sent = request.arguments, repairs = [], removed = [] } = call;
  const record: CallRecord = {
    id: request.id,
    name: request.name,
    rawArguments: hooked === undefined ? sent : hooked.rawArguments,
    arguments: checked,
    repairs,
    removed,
    attempts: attempt,
    durationMs: since === 0 ? 0 : performance.now() - since,
    status,
    taskId,
    result,
  };
  return hooked === undefined || hooked.notes.length === 0 ? record : { ...record, hooks: hooked.notes };
}

/** Limits a result to this many characters for the model, and adds a note about the missing text. */
function cutResult(result: ToolResult, limit: number): ToolResult {
  const { forLLM, content } = result;
  if (forLLM.length <= limit) return result;
  const { head, shown } = headOf(forLLM, limit);
  const text = `${head}\n[${forLLM.length - shown} more characters were cut off]`;
  return new ToolResult({
    ...result,
    forLLM: text,
    content: content && withText(content, text),
    details: cutDetails(result),
  });
}

/** Texts shorter than this may contain a small image. */
const SHORTEST_WITH_FILES = 4_000;

/** Images that models support; of other and further images, only a note remains. */
const PICTURES = /^image\/(?:png|jpeg|gif|webp)$/;

const MOST_PICTURES = 8;

const MOST_CHARS = 7_000_000;

/**
 * Removes Base64 files from the text of a result, where models cannot read them: images become parts, and a note
 * takes their place. The whole text stays in the details.
 */
function takeOutFiles(result: ToolResult): ToolResult {
  const { forLLM, content } = result;
  if (forLLM.length < SHORTEST_WITH_FILES) return result;
  const pictures: ContentPart[] = [];
  const text = withoutFiles(forLLM, (mimeType, data) => {
    if (!PICTURES.test(mimeType) || pictures.length >= MOST_PICTURES || data.length > MOST_CHARS) return '';
    pictures.push({ type: 'image', mimeType, data });
    return `image-${pictures.length}: `;
  });
  if (text === forLLM) return result;
  const details = cutDetails(result);
  if (pictures.length === 0 && content === undefined)
    return new ToolResult({ ...result, forLLM: text, details });
  const others = content?.filter(({ type }) => type !== 'text') ?? [];
  const parts: Content = [{ type: 'text', content: text }, ...others, ...pictures];
  return new ToolResult({ ...result, forLLM: text, content: parts, details });
}
