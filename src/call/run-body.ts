import type { ToolContext } from '../contract/tool-context.js';
import { isThenable, type Limits, MAX_TIMER_MS, onAbort } from '../kernel/async.js';
import { type Call, contextOf, limitsOf } from './context.js';
import type { BodyEnd } from './invocation.js';
import { isReady } from './result.js';
import { settled } from './settle-work.js';

/** Goes on with a call whose body has ended. Must not throw. */
type OnBodyEnd<Answer> = (call: Call, end: BodyEnd) => Answer | Promise<Answer>;

/**
 * Runs a tool's body and goes on with its end. A timeout and an abort race it: whoever is first decides,
 * the tool's signal is aborted, and what the body does later is only reported. Synchronous where the body
 * is; one promise where it is not.
 */
export function runBody<Answer>(call: Call, onEnd: OnBodyEnd<Answer>): Answer | Promise<Answer> {
  const { tool } = call;
  if (call.scope.signal?.aborted && !tool.observesSignal) return onEnd(call, { how: 'aborted' });
  let value: unknown;
  try {
    // A tool that ignores the context gets none.
    value = tool.execute(call.args, call.context as ToolContext);
  } catch (error) {
    return onEnd(call, { how: 'threw', error });
  }
  return endBody(call, value, onEnd);
}

/** Goes on with what a body gave: with its end, once there is nothing left to be awaited of it. */
export function endBody<Answer>(
  call: Call,
  given: unknown,
  onEnd: OnBodyEnd<Answer>,
): Answer | Promise<Answer> {
  let value = given;
  try {
    // What most bodies give needs no closer look.
    if (value instanceof Promise) value = Promise.resolve(value);
    else if (!isReady(value)) value = isThenable(value) ? Promise.resolve(value) : settledValue(value, call);
  } catch (error) {
    return onEnd(call, { how: 'threw', error });
  }
  return value instanceof Promise ? awaitBody(call, value, onEnd) : onEnd(call, { how: 'returned', value });
}

/** Goes on with the end of a body that is under way; what it gives is the result of the tool. */
function awaitBody<Answer>(call: Call, work: Promise<unknown>, onEnd: OnBodyEnd<Answer>): Promise<Answer> {
  const { signal, timeoutMs } = limitsOf(call);
  if (signal !== undefined || timeoutMs !== undefined)
    return awaitWork(call, work, {
      onEnd: (end) => onEnd(call, end),
      settle: (value) => (isReady(value) ? undefined : settledEnd(call, value)),
      stop: (reason) => contextOf(call).stop(reason),
    });
  return work.then(
    (value) =>
      isReady(value)
        ? onEnd(call, { how: 'returned', value })
        : settledEnd(call, value).then((end) => onEnd(call, end)),
    (error) => onEnd(call, { how: 'threw', error }),
  );
}

/** A generator reports through the context, and is stopped by it, also where the tool takes none. */
function settledValue(value: unknown, call: Call): unknown {
  return settled(value, { tool: call.tool, environment: call.environment, context: contextOf(call) });
}

/** The end of a body that gave a value which is not ready to be written. */
export async function settledEnd(call: Call, value: unknown): Promise<BodyEnd> {
  try {
    return { how: 'returned', value: await settledValue(value, call) };
  } catch (error) {
    return { how: 'threw', error };
  }
}

/** How long a tool that takes the signal may use to wind up after an abort, before it is answered for. */
const ABORT_GRACE_MS = 500;

/** What is done about work that is waited for, of a call that each of these is told. */
export interface AwaitedWork<Answer, Working extends WorkingCall = WorkingCall> {
  /** Goes on with the end. Must not throw. */
  readonly onEnd: (end: BodyEnd, call: Working) => Answer | Promise<Answer>;
  /** The end of work that has given a value which is not ready to be written; default: all are. */
  readonly settle?: (value: unknown, call: Working) => Promise<BodyEnd> | undefined;
  /** Tells the work that nobody waits for it any more. */
  readonly stop?: (reason: unknown, call: Working) => void;
}

/** What its work and its limits need of a call. */
type WorkingCall = Pick<Call, 'tool' | 'scope' | 'environment' | 'log'>;

/** Goes on with the end of work of a call: its own, or that of the first of its limits. */
export function awaitWork<Answer, Working extends WorkingCall>(
  call: Working,
  work: Promise<unknown>,
  awaited: AwaitedWork<Answer, Working>,
): Promise<Answer> {
  return new Promise<BodyEnd>((resolve) => followWork(call, work, { awaited, resolve })).then((end) =>
    awaited.onEnd(end, call),
  );
}

/**
 * Work of a call that is under way, and what may end the call before it. No class, as nothing is that lives for one call
 * alone: an engine throws away the code that knows one when the collector finds no instance of it.
 */
interface LimitedWork<Working extends WorkingCall> {
  readonly call: Working;
  readonly limits: Limits;
  readonly awaited: Pick<AwaitedWork<unknown, Working>, 'settle' | 'stop'>;
  readonly resolve: (end: BodyEnd) => void;
  isAnswered: boolean;
  deadline: Deadline | undefined;
  grace: NodeJS.Timeout | undefined;
  unfollow: (() => void) | undefined;
}

function followWork<Working extends WorkingCall>(
  call: Working,
  work: Promise<unknown>,
  { awaited, resolve }: Pick<LimitedWork<Working>, 'awaited' | 'resolve'>,
): void {
  const limits = limitsOf(call);
  const { signal, timeoutMs } = limits;
  const limited: LimitedWork<Working> = {
    call,
    limits,
    awaited,
    resolve,
    isAnswered: false,
    deadline: undefined,
    grace: undefined,
    unfollow: undefined,
  };
  if (timeoutMs !== undefined && timeoutMs !== Number.POSITIVE_INFINITY)
    limited.deadline = startDeadline(timeoutMs, () => expireWork(limited, timeoutMs));
  work.then(
    (value) => {
      const settling = awaited.settle?.(value, call);
      if (settling === undefined) endWork(limited, { how: 'returned', value });
      else void settling.then((end) => endWork(limited, end));
    },
    (error) => endWork(limited, { how: 'threw', error }),
  );
  if (signal !== undefined) limited.unfollow = onAbort(signal, () => abortWork(limited, signal.reason));
}

function answerWork<Working extends WorkingCall>(limited: LimitedWork<Working>, end: BodyEnd): void {
  limited.isAnswered = true;
  if (limited.deadline !== undefined) cancelDeadline(limited.deadline);
  if (limited.grace !== undefined) clearTimeout(limited.grace);
  limited.unfollow?.();
  limited.resolve(end);
}

function endWork<Working extends WorkingCall>(limited: LimitedWork<Working>, end: BodyEnd): void {
  const { signal } = limited.limits;
  if (!limited.isAnswered) answerWork(limited, end);
  // That a body ends by the abort is no news.
  else if (end.how !== 'threw' || end.error !== signal?.reason || signal === undefined)
    limited.call.log.ignored('A tool ended after its call had been answered', { how: end.how });
}

function abortWork<Working extends WorkingCall>(limited: LimitedWork<Working>, reason: unknown): void {
  limited.awaited.stop?.(reason, limited.call);
  if (limited.call.tool.observesSignal)
    limited.grace = setTimeout(() => answerWork(limited, { how: 'aborted', hasBegun: true }), ABORT_GRACE_MS);
  else answerWork(limited, { how: 'aborted', hasBegun: true });
}

function expireWork<Working extends WorkingCall>(limited: LimitedWork<Working>, timeoutMs: number): void {
  const reason = new DOMException(`The call took longer than ${timeoutMs} ms`, 'TimeoutError');
  limited.awaited.stop?.(reason, limited.call);
  answerWork(limited, { how: 'timed_out', timeoutMs, hasBegun: true });
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
