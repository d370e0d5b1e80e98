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

/** Goes on with a call whose body has ended. Must not throw. */
type OnBodyEnd<Answer> = (call: Call, outcome: BodyOutcome) => Answer | Promise<Answer>;

/** Runs a tool's body and goes on with its outcome: synchronously if the body is, otherwise with one promise. */
export function runBody<Answer>(call: Call, onEnd: OnBodyEnd<Answer>): Answer | Promise<Answer> {
  const { tool } = call;
  if (call.scope.signal?.aborted && !tool.observesSignal) return onEnd(call, { type: 'aborted' });
  try {
    // A tool that ignores the context gets none.
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

/** Goes on with the outcome of a body that has not ended yet, or with the first of the call's limits. */
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

/** A generator reports through the context, and is stopped by it, even if the tool takes none. */
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

/** How long a tool that takes the signal may use to wind up after an abort, before it is answered for. */
const ABORT_GRACE_MS = 500;

/** What is done about work that a call waits for. */
interface AwaitedWork<Answer> {
  /** Goes on with the outcome. Must not throw. */
  readonly onEnd: (outcome: BodyOutcome) => Answer | Promise<Answer>;
  /** The outcome of a value that cannot be written as it is; default: all can. */
  readonly settle?: (value: unknown) => Promise<BodyOutcome> | undefined;
  /** Aborts the work because its result is not needed any more. */
  readonly stop?: (reason: unknown) => void;
}

/**
 * Goes on with the outcome of work of a call: its own, or that of the first of its limits. What the work does later is
 * only reported.
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
        // That a body ends by the abort is no news.
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

/** What ends after so many milliseconds, unless it is cancelled before. */
export interface Deadline {
  readonly ms: number;
  readonly expire: () => void;
  timer: NodeJS.Timeout | undefined;
  isCancelled: boolean;
}

let waiting: Deadline[] = [];
let isScheduled = false;

/**
 * Calls `expire` after so many milliseconds. The timer is only set at the end of the event loop's turn: most calls have
 * ended by then, and a timer costs as much as all the rest of a call.
 */
export function startDeadline(ms: number, expire: () => void): Deadline {
  const deadline: Deadline = { ms, expire, timer: undefined, isCancelled: false };
  waiting.push(deadline);
  if (!isScheduled) setImmediate(armAll);
  isScheduled = true;
  return deadline;
}

/** It need not expire any more. */
export function cancelDeadline(deadline: Deadline): void {
  deadline.isCancelled = true;
  if (deadline.timer !== undefined) clearTimeout(deadline.timer);
  // Of calls that end within the turn, side by side too, none is kept until it ends.
  else while (waiting.at(-1)?.isCancelled) waiting.pop();
}

/** Sets the timers of those for which there is still something to wait. */
function armAll(): void {
  isScheduled = false;
  const due = waiting;
  waiting = [];
  for (const deadline of due) {
    const { ms, expire, isCancelled } = deadline;
    if (!isCancelled) deadline.timer = setTimeout(expire, Math.min(ms, MAX_TIMER_MS));
  }
}

/** What the outcome of a call contains that does not run; of a missing tool, its name. */
type BlockedCall = Parameters<typeof writeOutcome>[0] &
  CheckedCall & { readonly environment: CallEnvironment };

/** The outcome of a call that does not run, or not now; a call that a hook holds waits for nothing itself. */
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

/** What is known of a call, for when it is made again. */
function journalOf(call: CheckedCall): CallJournal {
  const { answers = [], once = [], ...known } = call.request.journal ?? {};
  return { ...known, arguments: argumentsBefore(call), answers, once };
}

/** The outcome of a call that waits, with the error that stands for it if nobody can be asked. */
export function suspended(tool: string, suspension: Suspension): CallOutcome {
  const message = `The call of '${tool}' waits for an answer, and nobody can give it here.`;
  return { status: 'suspended', result: failedResult('NotExecutableHere', message), suspension };
}

/**
 * The outcome of a call whose body asked a question that has no answer yet, or began a run that waits: the call waits,
 * whatever the body returned. Work of `once` that is under way then has the same limits as a body.
 */
export function outcomeOfBody(call: Call, body: BodyOutcome): CallOutcome | Promise<CallOutcome> {
  const { tool, task, scope, environment } = call;
  const replay = call.context?.replay;
  const waiting = environment.innerWaits?.() ?? NO_WAITS;
  if ((replay === undefined && waiting.length === 0) || scope.signal?.aborted)
    return writeOutcome(call, body);
  if (replay?.refused !== undefined)
    return { status: 'refused', result: failedResult('NotExecutableHere', replay.refused.message) };
  // Nobody waits for what a body began that was cut off, or that answers later.
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
