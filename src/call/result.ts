import types from 'node:util/types';
import type { ResultChecker } from '../checking/checker.js';
import { listFaults } from '../checking/faults.js';
import type { CallRecord, CallScope, HookNote } from '../contract/call.js';
import type { JsonObject } from '../contract/json-schema.js';
import type { ArgumentFault, ToolDefinition } from '../contract/tool.js';
import {
  type Content,
  type ContentPart,
  RetryToolCall,
  ToolResult,
  type ToolResultFields,
  toolResult,
} from '../contract/tool-result.js';
import { unreadableResult } from '../kernel/error-message.js';
import { isPlainData, parsedJson } from '../kernel/json.js';
import type { BodyOutcome, CallEnvironment, CallOutcome, CallRequest } from './invocation.js';
import type { CallLog } from './log.js';
import type { CallPlan } from './plan.js';
import { ResultForm } from './result-form.js';
import { cutResult, type DescribeError, failedResult, unendedText, writeFailure } from './result-text.js';
import { takeOutFiles } from './take-out-files.js';

/** What the writing of a result depends on. */
interface WrittenCall {
  /** Of one that is gone, its name. */
  readonly tool: LimitedTool & Pick<ToolDefinition, 'isOutputInferred' | 'annotations'>;
  readonly plan?: CallPlan;
  readonly environment: CallEnvironment;
  readonly scope: CallScope;
  readonly log: CallLog;
}

/** How a tool's body ended, as the result and status of its call: the last stage of the pipeline. */
export function writeEnd(call: WrittenCall, end: BodyOutcome): CallOutcome {
  const written = end.type === 'returned' ? writeReturned(call, end.value) : writeUnreturned(call, end);
  const limit = call.tool.maxResultChars ?? call.environment.maxResultChars ?? MAX_RESULT_CHARS;
  if (written.result.forLLM.length <= SHORT && written.result.forLLM.length <= limit) return written;
  return { ...written, result: cutResult(takeOutFiles(written.result), limit) };
}

type LimitedTool = WritingTool & Pick<ToolDefinition, 'maxResultChars'>;

/** Characters of a result that the model sees, where nothing else is said: some 25,000 tokens. */
const MAX_RESULT_CHARS = 100_000;
/** What is longer is looked through for files. */
const SHORT = 4_000;

type Unreturned = Exclude<BodyOutcome, { readonly type: 'returned' }>;

function writeUnreturned({ tool, environment, scope }: WrittenCall, end: Unreturned): CallOutcome {
  switch (end.type) {
    case 'error': {
      if (asksForRetry(end.error)) {
        const { message } = end.error;
        const hint = String(message).trim() === '' ? withoutHint(tool.name) : message;
        return { status: 'rejected', result: failedResult('InvalidArguments', hint, end.error) };
      }
      if (isAbort(end.error, scope.signal)) return aborted(tool, true);
      const status = scope.signal?.aborted ? 'aborted' : 'error';
      return { status, result: writeFailure(tool.name, end.error, environment.describeError) };
    }
    case 'timed_out':
      return {
        status: 'timed_out',
        result: failedResult('ToolTimedOut', unendedText(tool, end)),
      };
    case 'refused':
      // Whoever decides may have waited until there was nothing left to decide.
      if (scope.signal?.aborted && !end.isAnswer) return aborted(tool);
      return {
        status: 'refused',
        result: failedResult(
          end.isExpired ? 'AnswerExpired' : 'ToolRefused',
          `The tool '${tool.name}' was refused: ${end.reason}`,
        ),
      };
    case 'aborted':
      return aborted(tool, end.hasBegun);
  }
}

function aborted(tool: WrittenCall['tool'], hasBegun = false): CallOutcome {
  const message = `The run was aborted. ${unendedText(tool, hasBegun ? 'begun' : 'unmade')}`;
  const end: CallOutcome = { status: 'aborted', result: failedResult('RunAborted', message) };
  return hasBegun ? end : { ...end, isUnmade: true };
}

/** Whether a method only gave up because of the abort, as `fetch` does: that says nothing of what it had done. */
function isAbort(thrown: unknown, signal: AbortSignal | undefined): boolean {
  if (!signal?.aborted) return false;
  return thrown === signal.reason || (thrown instanceof DOMException && thrown.name === 'AbortError');
}

function withoutHint(tool: string): string {
  return `The tool '${tool}' cannot use this call, and did not say why. Call it again with other arguments.`;
}

function writeReturned(call: WrittenCall, value: unknown): CallOutcome {
  const { tool, plan, environment } = call;
  const written = writeResult(tool, value, environment.describeError);
  if (written.isError) return { status: 'error', result: written };
  const success: CallOutcome = { status: 'success', result: written };
  // Most tools declare no output.
  return plan?.checkResult === undefined ? success : (misfit(call, value, written) ?? success);
}

/** What is told instead of a result that does not fit the output that its tool declares. */
function misfit(call: WrittenCall, value: unknown, written: ToolResult): CallOutcome | undefined {
  const { tool, plan, log } = call;
  // Nobody hears of a misfit that is only a warning, where nothing is logged.
  if (plan?.checkResult === undefined || written.async || (tool.isOutputInferred && !log.isRead))
    return undefined;
  const faults = resultFaults({ tool, check: plan.checkResult }, value, written);
  if (faults.length === 0) return undefined;
  if (tool.isOutputInferred) {
    warnOfMisfits({ plan, log }, faults);
    return undefined;
  }
  const told = listFaults(faults);
  const message = `The tool ran, but its result does not fit the output that '${tool.name}' declares:`;
  return { status: 'error', result: failedResult('InvalidResult', [message, ...told].join('\n')) };
}

/** Of so many places of one tool: a list has as many as it has items. */
const MAX_TOLD = 50;

/** Types say what was meant; what was returned is there all the same. Told once for each place. */
function warnOfMisfits(
  { plan, log }: Required<Pick<WrittenCall, 'plan' | 'log'>>,
  faults: readonly ArgumentFault[],
): void {
  const { toldMisfits } = plan;
  for (const { path, message } of faults) {
    const place = path.replace(/(^|\.)\d+(?=\.|$)/g, '$1*');
    if (toldMisfits.has(place) || toldMisfits.size >= MAX_TOLD) continue;
    toldMisfits.add(place);
    log.ignored('A result does not fit the output that was read from its types', {
      path: place,
      fault: message,
    });
  }
}

/**
 * What a declared output schema has to say: of the value itself, or of the details of a result for the model; where it
 * has none, of its text, as it is or as JSON. (Awaited background work comes as text.)
 */
function resultFaults(
  { tool, check }: { readonly tool: WritingTool; readonly check: ResultChecker },
  value: unknown,
  { forLLM, details }: ToolResult,
): readonly ArgumentFault[] {
  if (value instanceof ResultForm) return check(value.json);
  if (!isToolResultLike(value, tool)) return check(value);
  if (details !== undefined) return check(details);
  const faults = check(forLLM);
  const parsed = faults.length === 0 ? undefined : parsedJson(forLLM);
  return parsed === undefined ? faults : check(parsed);
}

/** Looking at what was thrown runs its author's code: a proxy's traps. */
function asksForRetry(thrown: unknown): thrown is RetryToolCall {
  try {
    return RetryToolCall.is(thrown);
  } catch {
    return false;
  }
}

/** What a method returned, settled (`settled`), as a result. Never throws. */
export function writeResult(tool: WritingTool, value: unknown, describe?: DescribeError): ToolResult {
  try {
    const result = write(tool, value, describe);
    const lack = result.content?.map(lackOf).find((found) => found !== undefined);
    return lack === undefined ? result : unsendable(lack);
  } catch (error) {
    return writeFailure(tool.name, unreadableResult(error), describe);
  }
}

/** What the wording of a result depends on. */
type WritingTool = Pick<ToolDefinition, 'name' | 'returnsContent'>;

function write(tool: WritingTool, value: unknown, describe: DescribeError | undefined): ToolResult {
  if (typeof value === 'string') return toolResult(value);
  if (typeof value === 'number') return toolResult(`${value === 0 ? 0 : value}`);
  if (value === undefined || value === null) return toolResult('ok');
  if (typeof value === 'function' || typeof value === 'symbol')
    return unwritable(`it is a ${typeof value}. Return data`);
  const made =
    Object.getPrototypeOf(value) === Object.prototype ? undefined : writeInstance(tool, value, describe);
  if (made !== undefined) return made;
  if (isResultFields(value)) return saneResult(value);
  if (hasContent(value, tool))
    return new ToolResult({ forLLM: textOf(value.content), content: value.content, details: value.details });
  return writeJson(tool.name, value, describe);
}

/** What is known by its class. Plain objects, which most results are, need not be asked. */
function writeInstance(
  tool: WritingTool,
  value: unknown,
  describe: DescribeError | undefined,
): ToolResult | undefined {
  if (ToolResult.is(value)) return isSane(value) ? value : saneResult(value);
  if (value instanceof ResultForm) return writeForm(value);
  if (value instanceof Error || types.isNativeError(value)) return writeFailure(tool.name, value, describe);
  return undefined;
}

function writeForm({ json, files, problem }: ResultForm): ToolResult {
  if (problem !== undefined) return unwritable(problem);
  const text = typeof json === 'string' ? json : (JSON.stringify(json) ?? 'ok');
  if (files.length === 0) return toolResult(text);
  return new ToolResult({ forLLM: text, content: [{ type: 'text', content: text }, ...files] });
}

function unwritable(problem: string): ToolResult {
  return failedResult(
    'ToolExecutionFailed',
    `The tool ran, but its result cannot be written as JSON: ${problem}.`,
  );
}

function unsendable(lack: string): ToolResult {
  return failedResult('ToolExecutionFailed', `The tool ran, but its result cannot be sent: ${lack}.`);
}

/** Whether a method returned a result for the model, instead of plain data. */
export function isToolResultLike(value: unknown, tool?: WritingTool): boolean {
  return ToolResult.is(value) || isResultFields(value) || hasContent(value, tool);
}

/** Types of results are not checked where their authors write no TypeScript. */
function isSane({ forLLM, forUser, silent, isError, async, content }: ToolResult): boolean {
  return (
    typeof forLLM === 'string' &&
    (forUser === undefined || typeof forUser === 'string') &&
    typeof silent === 'boolean' &&
    typeof isError === 'boolean' &&
    typeof async === 'boolean' &&
    (content === undefined || (Array.isArray(content) && content.every(isPart)))
  );
}

/** A message's content must be text, parts are parts, and a flag is set or not. */
function saneResult(result: ToolResultFields): ToolResult {
  const { forLLM, forUser } = result as { readonly forLLM: unknown; readonly forUser: unknown };
  const { error, content: given, details } = result;
  const content = Array.isArray(given) ? given.filter(isPart) : undefined;
  return new ToolResult({
    ...{ error, content, details },
    forLLM: forLLM === undefined || forLLM === null ? '' : String(forLLM),
    forUser: forUser === undefined || forUser === null ? undefined : String(forUser),
    silent: Boolean(result.silent),
    isError: Boolean(result.isError),
    async: Boolean(result.async),
  });
}

/** The text of parts, one line for each. */
export function textOf(content: Content): string {
  return content.flatMap((part) => (part.type === 'text' ? [part.content] : [])).join('\n');
}

function writeJson(tool: string, value: unknown, describe: DescribeError | undefined): ToolResult {
  try {
    return toolResult(toJson(value));
  } catch (cause) {
    return writeFailure(tool, unreadableResult(cause), describe);
  }
}

/** JSON has no big integers; their digits lose nothing. Looked at only where plain writing failed. */
function toJson(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch {
    return JSON.stringify(value, (_key, field) => (typeof field === 'bigint' ? field.toString() : field));
  }
}

const RESULT_FIELDS: ReadonlySet<string> = new Set<keyof ToolResultFields>([
  ...(['forLLM', 'forUser', 'silent', 'isError', 'async', 'error', 'content', 'details'] as const),
]);

/** Anything else beside them would be lost: then it is data. */
function isResultFields(value: unknown): value is ToolResultFields {
  return (
    typeof value === 'object' &&
    value !== null &&
    'forLLM' in value &&
    typeof value.forLLM === 'string' &&
    Object.keys(value).every((key) => RESULT_FIELDS.has(key))
  );
}

/** Parts, where nothing is lost by taking them for the result, or where the tool's form says that they are it. */
function hasContent(
  value: unknown,
  tool: WritingTool | undefined,
): value is { readonly content: Content; readonly details?: unknown } {
  return (
    typeof value === 'object' &&
    value !== null &&
    'content' in value &&
    Array.isArray(value.content) &&
    value.content.every(isPart) &&
    (tool?.returnsContent === true || isOnlyContent(value))
  );
}

function isOnlyContent(value: { readonly content: unknown }): boolean {
  const isFilled = Array.isArray(value.content) && value.content.length > 0;
  return isFilled && Object.keys(value).every((key) => key === 'content' || key === 'details');
}

/** What a part lacks without which no model and no client can be sent it. */
function lackOf(part: ContentPart): string | undefined {
  if (part.type === 'text') return undefined;
  const [what, needed] = part.type === 'image' ? ['an image', IMAGE_FIELDS] : ['a file', FILE_FIELDS];
  const fields: Readonly<Record<string, unknown>> = { ...part };
  const lacking = needed.find((name) => typeof fields[name] !== 'string');
  return lacking === undefined ? undefined : `${what} part needs \`${lacking}\``;
}

const IMAGE_FIELDS = ['mimeType'] as const;
const FILE_FIELDS = ['mimeType', 'filename'] as const;

function isPart(part: unknown): part is ContentPart {
  if (typeof part !== 'object' || part === null || !('type' in part)) return false;
  if (part.type === 'text') return 'content' in part && typeof part.content === 'string';
  return (part.type === 'image' || part.type === 'file') && 'data' in part && typeof part.data === 'string';
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
  const { sent = request.arguments, repairs = NONE, removed = NONE } = call;
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

const NONE: readonly string[] = [];

/** Whether a value can be written as it is. What cannot be looked at is looked at again, where that may fail. */
export function isReady(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || value instanceof ToolResult) return true;
  try {
    return isPlainData(value);
  } catch {
    return false;
  }
}
