import type { JsonObject } from '../contract/json-schema.js';
import type { ToolContext } from '../contract/tool-context.js';
import type { ToolDefinition } from '../contract/tool-definition.js';
import { ToolResult } from '../contract/tool-result.js';
import { onAbort } from '../kernel/on-abort.js';
import { CallContext } from './call-context.js';
import type { CallLog } from './call-log.js';
import { Deadline } from './deadline.js';
import type { CallEnvironment, CallRequest } from './invocation.js';
import { isPlainData } from './plain-data.js';
import { settled, type WorkOf } from './settle-work.js';
import type { Limits } from './unless-aborted.js';

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
  let body: BodyOf | undefined;
  try {
    // A tool that ignores the context gets none.
    value = tool.execute(args, context as ToolContext);
    // What most bodies give needs no closer look.
    if (value instanceof Promise) value = Promise.resolve(value);
    else if (!isReady(value)) {
      if (!isThenable(value)) body = new BodyOf(run);
      value = body === undefined ? Promise.resolve(value) : settled(value, body);
    }
  } catch (error) {
    return run.onEnd({ how: 'threw', error });
  }
  return value instanceof Promise ? awaitBody(run, value, body) : run.onEnd({ how: 'returned', value });
}

/** Goes on with the end of a body that is under way; what it gives is the result of the tool. */
function awaitBody<Outcome>(
  run: ToolRun<Outcome>,
  work: Promise<unknown>,
  body: BodyOf | undefined,
): Promise<Outcome> {
  const limits = limitsOf(run);
  if (limits.signal !== undefined || limits.timeoutMs !== undefined)
    return race(run, { ...limits, work, body: body ?? new BodyOf(run) }).then((ended) => run.onEnd(ended));
  return work.then(
    (value) =>
      isReady(value)
        ? run.onEnd({ how: 'returned', value })
        : settledEnd(value, new BodyOf(run)).then((ended) => run.onEnd(ended)),
    (error) => run.onEnd({ how: 'threw', error }),
  );
}

/** Goes on with the end of other work of a call that is under way, raced by the limits of the call. */
export function awaitWork<Outcome>(run: ToolRun<Outcome>, work: Promise<unknown>): Promise<Outcome> {
  return race(run, { ...limitsOf(run), work, body: undefined }).then((ended) => run.onEnd(ended));
}

/** Whether a value can be written as it is. What cannot be looked at is looked at again, where that may fail. */
function isReady(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || value instanceof ToolResult) return true;
  try {
    return isPlainData(value);
  } catch {
    return false;
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  if (value instanceof Promise) return true;
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

async function settledEnd(value: unknown, body: BodyOf): Promise<Ended> {
  try {
    return { how: 'returned', value: await settled(value, body) };
  } catch (error) {
    return { how: 'threw', error };
  }
}

/** A body at work. A generator reports through a context and is stopped by it, also where the tool takes none. */
class BodyOf implements WorkOf {
  readonly #run: ToolRun<unknown>;
  #context: CallContext | undefined;
  #stopped: { readonly reason: unknown } | undefined;

  constructor(run: ToolRun<unknown>) {
    this.#run = run;
    this.#context = run.context;
  }

  get tool(): ToolDefinition {
    return this.#run.tool;
  }

  get environment(): CallEnvironment {
    return this.#run.environment;
  }

  get context(): CallContext {
    if (this.#context !== undefined) return this.#context;
    const { call, tool, environment, log } = this.#run;
    this.#context = new CallContext({ call, tool, environment, log, sent: call.arguments });
    if (this.#stopped !== undefined) this.#context.stop(this.#stopped.reason);
    return this.#context;
  }

  stop(reason: unknown): void {
    this.#stopped = { reason };
    this.#context?.stop(reason);
  }
}

/** The limits of a call. A tool of a class may tell its own by a getter. */
export function limitsOf({ tool, environment }: Pick<ToolRun<unknown>, 'tool' | 'environment'>): Limits {
  return { signal: environment.scope.signal, timeoutMs: tool.timeoutMs ?? environment.toolTimeoutMs };
}

interface Race extends Limits {
  readonly work: Promise<unknown>;
  readonly body: BodyOf | undefined;
}

function race(run: ToolRun<unknown>, { work, body, signal, timeoutMs }: Race): Promise<Ended> {
  const { tool, log, context } = run;
  const stop = (reason: unknown): void => (body === undefined ? context?.stop(reason) : body.stop(reason));
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
      stop(signal?.reason);
      if (tool.observesSignal) grace = setTimeout(() => answer({ how: 'aborted' }), ABORT_GRACE_MS);
      else answer({ how: 'aborted' });
    };
    const expire = (): void => {
      stop(new DOMException(`The call took longer than ${timeoutMs} ms`, 'TimeoutError'));
      answer({ how: 'timed_out', timeoutMs: timeoutMs ?? 0 });
    };
    if (timeoutMs !== undefined && timeoutMs !== Number.POSITIVE_INFINITY)
      deadline = new Deadline(timeoutMs, expire);
    work.then(
      (value) => {
        if (body === undefined || isReady(value)) end({ how: 'returned', value });
        else void settledEnd(value, body).then(end);
      },
      (error) => end({ how: 'threw', error }),
    );
    if (signal !== undefined) unfollow = onAbort(signal, abort);
  });
}
