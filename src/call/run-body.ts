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
    return awaitWork<Answer>(call, work, {
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

/** What is done about work that is waited for. */
export interface AwaitedWork<Answer> {
  /** Goes on with the end. Must not throw. */
  onEnd(end: BodyEnd): Answer | Promise<Answer>;
  /** The end of work that has given a value which is not ready to be written; default: all are. */
  settle?(value: unknown): Promise<BodyEnd> | undefined;
  /** Tells the work that nobody waits for it any more. */
  stop?(reason: unknown): void;
}

/** What its work and its limits need of a call. */
export type WorkingCall = Pick<Call, 'tool' | 'scope' | 'environment' | 'log'>;

/** Goes on with the end of work of a call: its own, or that of the first of its limits. */
export function awaitWork<Answer>(
  call: WorkingCall,
  work: Promise<unknown>,
  awaited: AwaitedWork<Answer>,
): Promise<Answer> {
  return new Promise<BodyEnd>((resolve) => new LimitedWork(call, awaited, resolve).follow(work)).then((end) =>
    awaited.onEnd(end),
  );
}

/** Work of a call that is under way, and what may end the call before it. */
class LimitedWork {
  readonly #call: WorkingCall;
  readonly #limits: Limits;
  readonly #awaited: Pick<AwaitedWork<unknown>, 'settle' | 'stop'>;
  readonly #resolve: (end: BodyEnd) => void;
  #isAnswered = false;
  #deadline: Deadline | undefined;
  #grace: NodeJS.Timeout | undefined;
  #unfollow: (() => void) | undefined;

  constructor(
    call: WorkingCall,
    awaited: Pick<AwaitedWork<unknown>, 'settle' | 'stop'>,
    resolve: (end: BodyEnd) => void,
  ) {
    this.#call = call;
    this.#limits = limitsOf(call);
    this.#awaited = awaited;
    this.#resolve = resolve;
  }

  follow(work: Promise<unknown>): void {
    const { signal, timeoutMs } = this.#limits;
    if (timeoutMs !== undefined && timeoutMs !== Number.POSITIVE_INFINITY)
      this.#deadline = new Deadline(timeoutMs, () => this.#expire(timeoutMs));
    work.then(
      (value) => {
        const settling = this.#awaited.settle?.(value);
        if (settling === undefined) this.#end({ how: 'returned', value });
        else void settling.then((end) => this.#end(end));
      },
      (error) => this.#end({ how: 'threw', error }),
    );
    if (signal !== undefined) this.#unfollow = onAbort(signal, () => this.#abort(signal.reason));
  }

  #answer(end: BodyEnd): void {
    this.#isAnswered = true;
    this.#deadline?.cancel();
    if (this.#grace !== undefined) clearTimeout(this.#grace);
    this.#unfollow?.();
    this.#resolve(end);
  }

  #end(end: BodyEnd): void {
    if (!this.#isAnswered) this.#answer(end);
    // That a body ends by the abort is no news.
    else if (
      end.how !== 'threw' ||
      end.error !== this.#limits.signal?.reason ||
      this.#limits.signal === undefined
    )
      this.#call.log.ignored('A tool ended after its call had been answered', { how: end.how });
  }

  #abort(reason: unknown): void {
    this.#awaited.stop?.(reason);
    if (this.#call.tool.observesSignal)
      this.#grace = setTimeout(() => this.#answer({ how: 'aborted' }), ABORT_GRACE_MS);
    else this.#answer({ how: 'aborted' });
  }

  #expire(timeoutMs: number): void {
    this.#awaited.stop?.(new DOMException(`The call took longer than ${timeoutMs} ms`, 'TimeoutError'));
    this.#answer({ how: 'timed_out', timeoutMs });
  }
}

let waiting: Deadline[] = [];
let isScheduled = false;

/**
 * Calls `expire` after so many milliseconds, unless it was cancelled before. The timer is only set at the end of
 * the event loop's turn: most calls have ended by then, and a timer costs as much as all the rest of a call.
 */
export class Deadline {
  readonly #ms: number;
  readonly #expire: () => void;
  #timer: NodeJS.Timeout | undefined;
  #isCancelled = false;

  constructor(ms: number, expire: () => void) {
    this.#ms = ms;
    this.#expire = expire;
    waiting.push(this);
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(armAll);
  }

  /** It need not expire any more. */
  cancel(): void {
    this.#isCancelled = true;
    if (this.#timer !== undefined) clearTimeout(this.#timer);
    // Of calls that end within the turn, side by side too, none is kept until it ends.
    else while (waiting.at(-1)?.isCancelled) waiting.pop();
  }

  /** Nobody waits for its end any more. */
  get isCancelled(): boolean {
    return this.#isCancelled;
  }

  /** Sets the timer, if there is still something to wait for. */
  arm(): void {
    if (!this.#isCancelled) this.#timer = setTimeout(this.#expire, Math.min(this.#ms, MAX_TIMER_MS));
  }
}

function armAll(): void {
  isScheduled = false;
  const due = waiting;
  waiting = [];
  for (const deadline of due) deadline.arm();
}
