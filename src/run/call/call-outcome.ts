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

/** What the writing of a result depends on. */
interface WrittenCall {
  /** Of one that is gone, its name. */
  readonly tool: Pick<
    ToolDefinition,
    'name' | 'returnsContent' | 'maxResultChars' | 'isOutputInferred' | 'annotations'
  >;
  readonly plan?: CallPlan;
  readonly environment: CallEnvironment;
  readonly scope: CallScope;
  readonly log: CallLog;
}

/** How a tool's body ended, as the result and status of its call: the last stage of the pipeline. */
export function writeOutcome(call: WrittenCall, end: BodyOutcome): CallOutcome {
  const written = end.type === 'returned' ? writeReturned(call, end.value) : writeUnreturned(call, end);
  const limit = call.tool.maxResultChars ?? call.environment.maxResultChars ?? MAX_RESULT_CHARS;
  const { length } = written.result.forLLM;
  // Most results are short.
  if (length < SHORTEST_WITH_FILES && length <= limit) return written;
  return { ...written, result: cutResult(takeOutFiles(written.result), limit) };
}

/** Characters of a result that the model sees, where nothing else is said: some 25,000 tokens. */
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
      // Whoever decides may have waited until there was nothing left to decide.
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

/** Whether a method only gave up because of the abort, as `fetch` does: that says nothing of what it had done. */
function isAbort(thrown: unknown, signal: AbortSignal | undefined): boolean {
  if (!signal?.aborted) return false;
  return thrown === signal.reason || (thrown instanceof DOMException && thrown.name === 'AbortError');
}

/** Looking at what was thrown runs its author's code: a proxy's traps. */
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
  // A misfit of an output that is only inferred is a warning, which only a log reads.
  if (plan === undefined || result.async || (tool.isOutputInferred && !log.isRead)) return success;
  const faults = resultFaults(call, value, result);
  if (faults.length === 0) return success;
  if (tool.isOutputInferred) {
    // Types say what was meant; what was returned is there all the same. Reported once for each place.
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

/** Of so many places of one tool: a list has as many as it has items. */
const MAX_MISFITS = 50;

/**
 * What a declared output schema has to say: of the value itself, or of the details of a result for the model; where it
 * has none, of its text, as it is or as JSON. (Awaited background work comes as text.)
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

/** A call that has ended, or that was answered without being made. */
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

/** A result of at most so many characters for the model, with a mark that says how much is missing. */
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

/** Texts shorter than this may have a small picture in them. */
const SHORTEST_WITH_FILES = 4_000;

/** Pictures that models look at; of others, and of more, only a note stays. */
const PICTURES = /^image\/(?:png|jpeg|gif|webp)$/;

const MOST_PICTURES = 8;

const MOST_CHARS = 7_000_000;

/**
 * A result whose text has files in it, as Base64, which say nothing to a model as text: pictures become parts, and where
 * each of them stood is a note. The whole text stays in its details.
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
