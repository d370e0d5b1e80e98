import type { CallJournal, CallRecord, CallScope, Suspension, Wait } from '../../core/contract/call.js';
import type { ArgumentFault, ToolDefinition } from '../../core/contract/tool.js';
import type { ToolContext } from '../../core/contract/tool-context.js';
import {
  type Content,
  type ContentPart,
  RetryToolCall,
  ToolResult,
} from '../../core/contract/tool-result.js';
import { atEndOfTurn, isThenable, MAX_TIMER_MS, onAbort } from '../../core/kernel/async.js';
import { parsedJson } from '../../core/kernel/json.js';
import { listFaults } from '../../tools/checking/faults.js';
import type { CallLog } from './call-log.js';
import { argumentsBefore, type CheckedCall } from './check-arguments.js';
import { type Call, contextOf, limitsOf, type ReceivedCall, workOf } from './context.js';
import type { CallHooks } from './hooked-call.js';
import type { Block, BodyOutcome, CallEnvironment, CallOutcome, MaybeLater } from './invocation.js';
import type { CallPlan } from './plan.js';
import { isReady, isToolResultLike, ResultForm, settled, writeResult } from './result-form.js';
import {
  cutDetails,
  failedResult,
  headOf,
  unendedText,
  withoutFiles,
  withText,
  writeFailure,
} from './result-text.js';
import { withoutApproval } from './waits.js';

/** Continues a call after its body has ended. Must not throw. */
type OnBodyEnd<Answer> = (call: Call, outcome: BodyOutcome) => MaybeLater<Answer>;

/** Runs a tool's body and continues with its outcome: synchronously if the body is, otherwise with one promise. */
export function runBody<Answer>(call: Call, onEnd: OnBodyEnd<Answer>): MaybeLater<Answer> {
  const { tool } = call;
  if (call.scope.signal?.aborted && !tool.observesSignal) return onEnd(call, { type: 'aborted' });
  try {
    // A tool that ignores the context receives none.
    const value: unknown = tool.execute(call.args, call.context as ToolContext);
    if (value instanceof Promise) return awaitBody(call, Promise.resolve(value), onEnd);
    if (isReady(value)) return onEnd(call, { type: 'returned', value });
    // A generator reports through the context and is stopped by it, even if the tool takes none.
    const later = isThenable(value) ? Promise.resolve(value) : settled(value, workOf(call));
    return later instanceof Promise
      ? awaitBody(call, later, onEnd)
      : onEnd(call, { type: 'returned', value: later });
  } catch (error) {
    return onEnd(call, { type: 'error', error });
  }
}

/** Continues with the outcome of a running body, or with the first of the call's limits. */
function awaitBody<Answer>(call: Call, work: Promise<unknown>, onEnd: OnBodyEnd<Answer>): Promise<Answer> {
  if (call.scope.signal === undefined && limitsOf(call).timeoutMs === undefined)
    return work.then(
      (value) =>
        isReady(value)
          ? onEnd(call, { type: 'returned', value })
          : settledOutcome(call, value).then((outcome) => onEnd(call, outcome)),
      (error) => onEnd(call, { type: 'error', error }),
    );
  return awaitWork(call, work, { onEnd, settle: settleValue, stop: stopCall });
}

function settleValue(call: Call, value: unknown): Promise<BodyOutcome> | undefined {
  return isReady(value) ? undefined : settledOutcome(call, value);
}

function stopCall(call: Call, reason: unknown): void {
  contextOf(call).stop(reason);
}

async function settledOutcome(call: Call, value: unknown): Promise<BodyOutcome> {
  try {
    return { type: 'returned', value: await settled(value, workOf(call)) };
  } catch (error) {
    return { type: 'error', error };
  }
}

/** How long a tool that takes the signal may use to finish after an abort. */
const ABORT_GRACE_MS = 500;

/** A call whose work is awaited. */
type WaitingCall = Pick<Call, 'tool' | 'scope' | 'environment' | 'log'>;

/** How awaited work continues: functions of the call, because closures would cost more than a small tool. */
interface AwaitedWork<Waiting, Answer> {
  /** Continues with the outcome. Must not throw. */
  readonly onEnd: (call: Waiting, outcome: BodyOutcome) => MaybeLater<Answer>;
  /** The outcome of a value that needs preparation; default: none does. */
  readonly settle?: (call: Waiting, value: unknown) => Promise<BodyOutcome> | undefined;
  /** Aborts the work because its result is no longer needed. */
  readonly stop?: (call: Waiting, reason: unknown) => void;
}

/**
 * Continues with the outcome of a call's work, or with the first of its limits. Later results of the work are only
 * logged.
 */
export function awaitWork<Waiting extends WaitingCall, Answer>(
  call: Waiting,
  work: Promise<unknown>,
  { onEnd, settle, stop }: AwaitedWork<Waiting, Answer>,
): Promise<Answer> {
  const { signal, timeoutMs = Infinity } = limitsOf(call);
  return new Promise((resolve, reject) => {
    let isAnswered = false;
    let isAborted = false;
    let grace: NodeJS.Timeout | undefined;
    const end = (outcome: BodyOutcome): void => {
      // The listener begins later than the work.
      if (signal?.aborted && !isAborted && !isAnswered) abort();
      if (isAnswered) {
        // A body that ends because of the abort is expected.
        if (outcome.type !== 'error' || signal === undefined || outcome.error !== signal.reason)
          call.log.ignored('A tool ended after its call had ended', { how: outcome.type });
        return;
      }
      isAnswered = true;
      if (grace !== undefined) clearTimeout(grace);
      leave();
      resolve(onEnd(call, outcome));
    };
    const abort = (): void => {
      isAborted = true;
      stop?.(call, signal?.reason);
      const endAborted = (): void => end({ type: 'aborted', hasBegun: true });
      if (call.tool.observesSignal) grace = setTimeout(endAborted, ABORT_GRACE_MS);
      else endAborted();
    };
    const leave = atEndOfTurn(() => {
      const expire = (): void => {
        stop?.(call, new DOMException(`The call took longer than ${timeoutMs} ms`, 'TimeoutError'));
        end({ type: 'timed_out', timeoutMs, hasBegun: true });
      };
      try {
        const unfollow = signal && onAbort(signal, () => isAborted || abort());
        const timer =
          timeoutMs === Infinity ? undefined : setTimeout(expire, Math.min(timeoutMs, MAX_TIMER_MS));
        return () => {
          clearTimeout(timer);
          unfollow?.();
        };
      } catch (error) {
        // What was given is not a signal. Thrown here, its error would end the process.
        reject(error);
        return () => {};
      }
    });
    work.then(
      (value) => {
        const settling = settle?.(call, value);
        if (settling === undefined) end({ type: 'returned', value });
        else void settling.then(end);
      },
      (error) => end({ type: 'error', error }),
    );
  });
}

/** The outcome of a call that does not run, or not now; a call that a hook holds has no waits of its own. */
export function blockedResult(call: WrittenCall & CheckedCall, block: Block | BodyOutcome): CallOutcome {
  const { tool, environment } = call;
  if (block.type === 'held') return suspended(tool.name, { waits: [], journal: journalOf(call) });
  if (block.type !== 'waits') return writeOutcome(call, block);
  const { wait, because } = block;
  if (environment.canSuspend) {
    const journal = journalOf(call);
    return suspended(tool.name, {
      waits: [wait],
      journal: wait.kind === 'approval' ? withoutApproval(journal) : journal,
    });
  }
  const why = because === undefined ? '' : ` Reason: ${because}`;
  const message =
    wait.kind === 'client'
      ? `The tool '${tool.name}' is executed by the client; it cannot run here.`
      : `The tool '${tool.name}' needs an approval, which cannot be given here; it was not run.${why}`;
  return { status: 'refused', result: failedResult('NotExecutableHere', message) };
}

/** The journal of a call for its next execution. */
function journalOf(call: CheckedCall): CallJournal {
  const { answers = [], once = [], ...known } = call.request.journal ?? {};
  return { ...known, arguments: argumentsBefore(call), answers, once };
}

/** The outcome of a call that waits, with the error that replaces it if no user can be asked. */
export function suspended(tool: string, suspension: Suspension): CallOutcome {
  const message = `The call of '${tool}' waits for an answer, which cannot be given here.`;
  return { status: 'suspended', result: failedResult('NotExecutableHere', message), suspension };
}

/**
 * The outcome of a call whose body asked an unanswered question, or started a run that waits. The call waits,
 * whatever the body returned. Running `once` work then has the same limits as a body.
 */
export function outcomeOfBody(call: Call, body: BodyOutcome): MaybeLater<CallOutcome> {
  const { tool, task, scope, environment } = call;
  const replay = call.context?.replay;
  const waiting = environment.innerWaits?.() ?? NO_WAITS;
  if ((replay === undefined && waiting.length === 0) || scope.signal?.aborted)
    return writeOutcome(call, body);
  if (replay?.refused !== undefined)
    return { status: 'refused', result: failedResult('NotExecutableHere', replay.refused.message) };
  // If a body was cut off, or answers later, its started runs are not waited for.
  const hasEnded = (body.type === 'returned' || body.type === 'error') && task?.id === undefined;
  const inner = hasEnded ? waiting : NO_WAITS;
  if (!replay?.isSuspended && inner.length === 0) return writeOutcome(call, body);
  if (replay === undefined) return suspended(tool.name, { waits: inner, journal: journalOf(call) });
  return awaitWork<Call, CallOutcome>(call, replay.suspension(argumentsBefore(call)), {
    onEnd: (_call, waited) => {
      if (waited.type !== 'returned') return writeOutcome(call, waited);
      const { waits, journal } = waited.value as Suspension;
      return suspended(tool.name, { waits: [...waits, ...inner], journal });
    },
    stop: stopCall,
  });
}

const NO_WAITS: readonly Wait[] = [];

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
  const { tool, plan, environment } = call;
  let written: CallOutcome;
  if (end.type !== 'returned') written = writeUnreturned(call, end);
  else {
    const result = writeResult(tool, end.value, environment.describeError);
    written = { status: result.isError ? 'error' : 'success', result };
    // Most tools declare no output.
    if (!result.isError && plan?.checkResult !== undefined)
      written = checkedOutcome(call, end.value, written);
  }
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
          ? `The tool '${tool.name}' cannot use this call and gave no reason. Call it again with other arguments.`
          : error.message;
        return { status: 'rejected', result: failedResult('InvalidArguments', hint, error) };
      }
      const { signal } = scope;
      const isAborted = signal?.aborted === true;
      // Methods that stop because of the abort, as `fetch` does, may have had an effect before.
      if (
        isAborted &&
        (error === signal.reason || (error instanceof DOMException && error.name === 'AbortError'))
      )
        return aborted(tool, true);
      const status = isAborted ? 'aborted' : 'error';
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

/** Reading a thrown value may run its author's code, such as the traps of a proxy. */
function asksForRetry(thrown: unknown): thrown is RetryToolCall {
  try {
    return RetryToolCall.is(thrown);
  } catch {
    return false;
  }
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
type EndedCall = Pick<ReceivedCall, 'request' | 'attempt' | 'since'> &
  Partial<Pick<ReceivedCall, 'checked' | 'sent' | 'repairs' | 'removed'>> & {
    readonly hooked?: Pick<CallHooks, 'rawArguments' | 'notes'> | undefined;
  };

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
