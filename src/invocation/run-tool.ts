import type { JsonObject } from '../contract/json-schema.js';
import type { ToolContext } from '../contract/tool-context.js';
import type { ToolDefinition } from '../contract/tool-definition.js';
import { onAbort } from '../kernel/on-abort.js';
import { CallContext } from './call-context.js';
import type { CallLog } from './call-log.js';
import { Deadline } from './deadline.js';
import { drain } from './drain.js';
import type { CallEnvironment, CallRequest } from './invocation.js';

/** How the body of a tool ended. */
export type Ended =
  | { readonly how: 'returned'; readonly value: unknown }
  | { readonly how: 'threw'; readonly error: unknown }
  | { readonly how: 'timed_out'; readonly timeoutMs: number }
  | { readonly how: 'aborted' }
  /** It was not allowed to begin. */
  | { readonly how: 'refused'; readonly reason: string };

/** What one run of a tool's body needs. */
export interface ToolRun<Outcome> {
  readonly tool: ToolDefinition;
  readonly call: CallRequest;
  readonly args: JsonObject;
  /** Absent for a tool that ignores it. */
  readonly context: CallContext | undefined;
  readonly environment: CallEnvironment;
  readonly log: CallLog;
  /** Goes on with what came of it. Must not throw. */
  onEnd(ended: Ended): Outcome | Promise<Outcome>;
}

/** How long a tool that takes the signal may use to wind up after an abort, before it is answered for. */
const ABORT_GRACE_MS = 500;

/**
 * Runs a tool's body and goes on with its end. A timeout and an abort race it: whoever is first decides,
 * the tool's signal is aborted, and what the body does later is only reported. Synchronous where the body
 * is; one promise where it is not.
 */
export function runTool<Outcome>(run: ToolRun<Outcome>): Outcome | Promise<Outcome> {
  const { tool, args, context, environment } = run;
  const { signal } = environment.scope;
  if (signal?.aborted && !tool.observesSignal) return run.onEnd({ how: 'aborted' });
  let value: unknown;
  let pending: Pending | undefined;
  try {
    // A tool that ignores the context gets none.
    value = tool.execute(args, context as ToolContext);
    // Looking at what was returned runs its author's code too: a getter, a proxy's traps.
    if (typeof value === 'object' && value !== null) pending = pendingOf(value, run);
  } catch (error) {
    return run.onEnd({ how: 'threw', error });
  }
  if (pending === undefined) return run.onEnd({ how: 'returned', value });
  const timeoutMs = tool.timeoutMs ?? environment.toolTimeoutMs;
  if (signal !== undefined || timeoutMs !== undefined)
    return race(run, { ...pending, signal, timeoutMs }).then((ended) => run.onEnd(ended));
  return pending.work.then(
    (settled) => run.onEnd({ how: 'returned', value: settled }),
    (error) => run.onEnd({ how: 'threw', error }),
  );
}

interface Pending {
  readonly work: Promise<unknown>;
  readonly context: CallContext | undefined;
}

/** What is still to come of a value; nothing where it is there already. */
function pendingOf(value: object, run: ToolRun<unknown>): Pending | undefined {
  if (value instanceof Promise) return { work: value, context: run.context };
  if ('then' in value && typeof value.then === 'function')
    return { work: Promise.resolve(value), context: run.context };
  if (!(Symbol.asyncIterator in value)) return undefined;
  // A generator reports through the context and is stopped by it, also where the tool itself takes none.
  const context = run.context ?? new CallContext(run);
  return { work: drain(value as AsyncIterable<unknown>, context), context };
}

interface Limits extends Pending {
  readonly signal: AbortSignal | undefined;
  readonly timeoutMs: number | undefined;
}

function race({ tool, log }: ToolRun<unknown>, { work, context, signal, timeoutMs }: Limits): Promise<Ended> {
  return new Promise((resolve) => {
    let isAnswered = false;
    let deadline: Deadline | undefined;
    let grace: NodeJS.Timeout | undefined;
    let unfollow: (() => void) | undefined;
    const answer = (ended: Ended): void => {
      isAnswered = true;
      deadline?.meet();
      if (grace !== undefined) clearTimeout(grace);
      unfollow?.();
      resolve(ended);
    };
    const end = (ended: Ended): void => {
      if (!isAnswered) answer(ended);
      // That a body ends by the abort is no news.
      else if (ended.how !== 'threw' || signal === undefined || ended.error !== signal.reason)
        log.ignored('A tool ended after its call had been answered', { how: ended.how });
    };
    const abort = (): void => {
      context?.stop(signal?.reason);
      if (tool.observesSignal) grace = setTimeout(() => answer({ how: 'aborted' }), ABORT_GRACE_MS);
      else answer({ how: 'aborted' });
    };
    const expire = (): void => {
      context?.stop(new DOMException(`The call took longer than ${timeoutMs} ms`, 'TimeoutError'));
      answer({ how: 'timed_out', timeoutMs: timeoutMs ?? 0 });
    };
    if (timeoutMs !== undefined && timeoutMs !== Number.POSITIVE_INFINITY)
      deadline = new Deadline(timeoutMs, expire);
    work.then(
      (value) => end({ how: 'returned', value }),
      (error) => end({ how: 'threw', error }),
    );
    if (signal !== undefined) unfollow = onAbort(signal, abort);
  });
}
