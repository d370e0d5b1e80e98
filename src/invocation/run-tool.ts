import type { JsonObject } from '../contract/json-schema.js';
import type { ToolContext } from '../contract/tool-context.js';
import type { ToolDefinition } from '../contract/tool-definition.js';
import type { CallContext } from './call-context.js';
import { MAX_TIMER_MS } from './max-timer-ms.js';

/** How the body of a tool ended. */
export type Ended =
  | { readonly how: 'returned'; readonly value: unknown }
  | { readonly how: 'threw'; readonly error: unknown }
  | { readonly how: 'timed_out'; readonly timeoutMs: number }
  | { readonly how: 'aborted' }
  /** It was not allowed to begin. */
  | { readonly how: 'refused'; readonly reason: string };

/** What one run of a tool's body needs. */
export interface ToolRun {
  readonly tool: ToolDefinition;
  readonly args: JsonObject;
  /** Absent for a tool that ignores it. */
  readonly context?: CallContext;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Told of a body that ended after its call had been answered. */
  readonly onLate: (ended: Ended) => void;
}

/** How long a tool that takes the signal may use to wind up after an abort, before it is answered for. */
const ABORT_GRACE_MS = 500;

/**
 * Runs a tool's body. A timeout and an abort race it: whoever is first decides, the tool's signal is
 * aborted, and what the body does later is only reported. Synchronous where the body is.
 */
export function runTool(run: ToolRun): Ended | Promise<Ended> {
  const { tool, signal, timeoutMs } = run;
  if (signal?.aborted && !tool.observesSignal) return { how: 'aborted' };
  const started = start(run);
  if (started.how !== 'pending') return started;
  if (signal === undefined && timeoutMs === undefined) return started.ended;
  return race(run, started.ended);
}

type Started = Ended | { readonly how: 'pending'; readonly ended: Promise<Ended> };

function start({ tool, args, context }: ToolRun): Started {
  try {
    // A tool that ignores the context gets none.
    const value = tool.execute(args, context as ToolContext);
    if (isThenable(value)) return { how: 'pending', ended: settle(value) };
    if (isAsyncIterable(value)) return { how: 'pending', ended: settle(drain(value, context)) };
    return { how: 'returned', value };
  } catch (error) {
    return { how: 'threw', error };
  }
}

async function settle(value: PromiseLike<unknown>): Promise<Ended> {
  try {
    return { how: 'returned', value: await value };
  } catch (error) {
    return { how: 'threw', error };
  }
}

/** Each value of an async iterable is progress; what the generator returns is the result. */
async function drain(values: AsyncIterable<unknown>, context: CallContext | undefined): Promise<unknown> {
  const iterator = values[Symbol.asyncIterator]();
  for (;;) {
    const next = await iterator.next();
    if (next.done) return next.value;
    // Nobody waits for it any more; `return` lets the generator's `finally` run.
    if (context?.isStopped) return (await iterator.return?.())?.value;
    context?.progress(next.value);
  }
}

function race({ tool, context, signal, timeoutMs, onLate }: ToolRun, ended: Promise<Ended>): Promise<Ended> {
  return new Promise((resolve) => {
    let answered = false;
    const timers: NodeJS.Timeout[] = [];
    const answer = (how: Ended): void => {
      answered = true;
      for (const timer of timers) clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
      resolve(how);
    };
    const abort = (): void => {
      context?.stop(signal?.reason);
      if (tool.observesSignal) timers.push(setTimeout(() => answer({ how: 'aborted' }), ABORT_GRACE_MS));
      else answer({ how: 'aborted' });
    };
    if (timeoutMs !== undefined) {
      const expire = (): void => {
        context?.stop(new DOMException(`The call took longer than ${timeoutMs} ms`, 'TimeoutError'));
        answer({ how: 'timed_out', timeoutMs });
      };
      timers.push(setTimeout(expire, Math.min(timeoutMs, MAX_TIMER_MS)));
    }
    ended.then((how) => (answered ? onLate(how) : answer(how)));
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort);
  });
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return value instanceof Promise || (isObject(value) && 'then' in value && typeof value.then === 'function');
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return isObject(value) && Symbol.asyncIterator in value;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
