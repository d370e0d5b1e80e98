import type { CallJournal, Suspension, Wait } from '../../core/contract/call.js';
import type { ToolContext } from '../../core/contract/tool-context.js';
import { isThenable, MAX_TIMER_MS, onAbort } from '../../core/kernel/async.js';
import { writeOutcome } from './call-outcome.js';
import { argumentsBefore, type CheckedCall } from './check-arguments.js';
import { type Call, contextOf, limitsOf } from './context.js';
import type { Block, BodyOutcome, CallEnvironment, CallOutcome } from './invocation.js';
import { isReady, settled } from './result-form.js';
import { failedResult } from './result-text.js';
import { withoutApproval } from './waits.js';

/** Continues a call after its body has ended. Must not throw. */
type OnBodyEnd<Answer> = (call: Call, outcome: BodyOutcome) => Answer | Promise<Answer>;

/** Runs a tool's body and continues with its outcome: synchronously if the body is, otherwise with one promise. */
export function runBody<Answer>(call: Call, onEnd: OnBodyEnd<Answer>): Answer | Promise<Answer> {
  const { tool } = call;
  if (call.scope.signal?.aborted && !tool.observesSignal) return onEnd(call, { type: 'aborted' });
  try {
    // A tool that ignores the context receives none.
    const value: unknown = tool.execute(call.args, call.context as ToolContext);
    if (value instanceof Promise) return awaitBody(call, Promise.resolve(value), onEnd);
    if (isReady(value)) return onEnd(call, { type: 'returned', value });
    const later = isThenable(value) ? Promise.resolve(value) : settledValue(value, call);
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
  return awaitWork(call, work, {
    onEnd: (outcome) => onEnd(call, outcome),
    settle: (value) => (isReady(value) ? undefined : settledOutcome(call, value)),
    stop: (reason) => contextOf(call).stop(reason),
  });
}

/** A generator reports through the context and is stopped by it, even if the tool takes none. */
function settledValue(value: unknown, call: Call): unknown {
  return settled(value, { tool: call.tool, environment: call.environment, context: contextOf(call) });
}

async function settledOutcome(call: Call, value: unknown): Promise<BodyOutcome> {
  try {
    return { type: 'returned', value: await settledValue(value, call) };
  } catch (error) {
    return { type: 'error', error };
  }
}

/** How long a tool that takes the signal may use to finish after an abort. */
const ABORT_GRACE_MS = 500;

/** How awaited work continues. */
interface AwaitedWork<Answer> {
  /** Continues with the outcome. Must not throw. */
  readonly onEnd: (outcome: BodyOutcome) => Answer | Promise<Answer>;
  /** The outcome of a value that needs preparation; default: none does. */
  readonly settle?: (value: unknown) => Promise<BodyOutcome> | undefined;
  /** Aborts the work because its result is no longer needed. */
  readonly stop?: (reason: unknown) => void;
}

/**
 * Continues with the outcome of a call's work, or with the first of its limits. Later results of the work are only
 * logged.
 */
export function awaitWork<Answer>(
  call: Pick<Call, 'tool' | 'scope' | 'environment' | 'log'>,
  work: Promise<unknown>,
  { onEnd, settle, stop }: AwaitedWork<Answer>,
): Promise<Answer> {
  const { signal, timeoutMs } = limitsOf(call);
  return new Promise((resolve) => {
    let isAnswered = false;
    let deadline: Deadline | undefined;
    let grace: NodeJS.Timeout | undefined;
    let unfollow: (() => void) | undefined;
    const end = (outcome: BodyOutcome): void => {
      if (isAnswered) {
        // A body that ends because of the abort is expected.
        if (outcome.type !== 'error' || signal === undefined || outcome.error !== signal.reason)
          call.log.ignored('A tool ended after its call had been answered', { how: outcome.type });
        return;
      }
      isAnswered = true;
      if (deadline !== undefined) cancelDeadline(deadline);
      if (grace !== undefined) clearTimeout(grace);
      unfollow?.();
      resolve(onEnd(outcome));
    };
    work.then(
      (value) => {
        const settling = settle?.(value);
        if (settling === undefined) end({ type: 'returned', value });
        else void settling.then(end);
      },
      (error) => end({ type: 'error', error }),
    );
    if (timeoutMs !== undefined && timeoutMs !== Number.POSITIVE_INFINITY)
      deadline = startDeadline(timeoutMs, () => {
        stop?.(new DOMException(`The call took longer than ${timeoutMs} ms`, 'TimeoutError'));
        end({ type: 'timed_out', timeoutMs, hasBegun: true });
      });
    if (signal !== undefined)
      unfollow = onAbort(signal, () => {
        stop?.(signal.reason);
        const abort = (): void => end({ type: 'aborted', hasBegun: true });
        if (call.tool.observesSignal) grace = setTimeout(abort, ABORT_GRACE_MS);
        else abort();
      });
  });
}

/** A timeout that can be cancelled. */
export interface Deadline {
  readonly ms: number;
  readonly expire: () => void;
  timer: NodeJS.Timeout | undefined;
  isCancelled: boolean;
}

let waiting: Deadline[] = [];
let isScheduled = false;

/**
 * Calls `expire` after this many milliseconds. The timer is set at the end of the event loop's turn: most calls have
 * ended by then, and a timer costs as much as the rest of a call.
 */
export function startDeadline(ms: number, expire: () => void): Deadline {
  const deadline: Deadline = { ms, expire, timer: undefined, isCancelled: false };
  waiting.push(deadline);
  if (!isScheduled) setImmediate(armAll);
  isScheduled = true;
  return deadline;
}

/** Cancels a deadline. */
export function cancelDeadline(deadline: Deadline): void {
  deadline.isCancelled = true;
  if (deadline.timer !== undefined) clearTimeout(deadline.timer);
  // Deadlines of calls that end within the turn, in parallel too, are removed early.
  else while (waiting.at(-1)?.isCancelled) waiting.pop();
}

/** Sets the timers of the remaining deadlines. */
function armAll(): void {
  isScheduled = false;
  const due = waiting;
  waiting = [];
  for (const deadline of due) {
    const { ms, expire, isCancelled } = deadline;
    if (!isCancelled) deadline.timer = setTimeout(expire, Math.min(ms, MAX_TIMER_MS));
  }
}

/** The facts in the outcome of a call that does not run; for a missing tool, its name. */
type BlockedCall = Parameters<typeof writeOutcome>[0] &
  CheckedCall & { readonly environment: CallEnvironment };

/** The outcome of a call that does not run, or not now; a call that a hook holds has no waits of its own. */
export function blockedResult(call: BlockedCall, block: Block | BodyOutcome): CallOutcome {
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
  const why = because === undefined ? '' : ` Why it asks: ${because}`;
  const message =
    wait.kind === 'client'
      ? `The tool '${tool.name}' is executed by the client; it cannot run here.`
      : `The tool '${tool.name}' needs an approval, and nobody can give it here; it was not run.${why}`;
  return { status: 'refused', result: failedResult('NotExecutableHere', message) };
}

/** The journal of a call for its next execution. */
function journalOf(call: CheckedCall): CallJournal {
  const { answers = [], once = [], ...known } = call.request.journal ?? {};
  return { ...known, arguments: argumentsBefore(call), answers, once };
}

/** The outcome of a call that waits, with the error that replaces it if no user can be asked. */
export function suspended(tool: string, suspension: Suspension): CallOutcome {
  const message = `The call of '${tool}' waits for an answer, and nobody can give it here.`;
  return { status: 'suspended', result: failedResult('NotExecutableHere', message), suspension };
}

/**
 * The outcome of a call whose body asked an unanswered question, or started a run that waits. The call waits,
 * whatever the body returned. Running `once` work then has the same limits as a body.
 */
export function outcomeOfBody(call: Call, body: BodyOutcome): CallOutcome | Promise<CallOutcome> {
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
  return awaitWork<CallOutcome>(call, replay.suspension(argumentsBefore(call)), {
    onEnd: (waited) => {
      if (waited.type !== 'returned') return writeOutcome(call, waited);
      const { waits, journal } = waited.value as Suspension;
      return suspended(tool.name, { waits: [...waits, ...inner], journal });
    },
    stop: (reason) => contextOf(call).stop(reason),
  });
}

const NO_WAITS: readonly Wait[] = [];
