import { setMaxListeners } from 'node:events';
import type { ArgumentsHost, ContextType } from '@nestjs/common';
import type { ToolDefinition } from '../../core/contract/tool.js';
import type { ToolContext } from '../../core/contract/tool-context.js';
import { checkArguments } from '../../core/errors/author-fault.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { MAX_TIMER_MS } from '../../core/kernel/async.js';
import { withMethods } from '../../core/kernel/options.js';
import { CallContext } from '../../run/call/context.js';
import type { TaskQueue } from '../../run/call/task-queue.js';

/** Types of `ExecutionContext.getType()` in applications with tools: `context.getType<ToolContextType>()`. */
export type ToolContextType = ContextType | 'tool';

/** The tool call in a guard, an interceptor or an exception filter. */
export interface ToolCallInfo {
  /** The tool as it is offered: name, annotations, schema. */
  readonly tool: ToolDefinition;
  /** The arguments for the tool: validated, repaired, with defaults. JSON, unless the call bypassed the registry. */
  readonly arguments: unknown;
  /** The context of the call: `callId`, `data`, `signal`, … */
  readonly context: ToolContext;
  /** The HTTP request that started the loop, or the object given as `request`; absent without an HTTP request. */
  readonly request?: object;
}

/** The index of the call in a handler's arguments. Before it are HTTP's: request, response, next. */
const CALL_POSITION = 3;

/**
 * The tool call of an `ExecutionContext` or `ArgumentsHost` whose `getType()` is `'tool'`; otherwise `undefined`.
 *
 * @example
 * ```ts
 * @Injectable()
 * class WritersOnly implements CanActivate {
 *   canActivate(context: ExecutionContext) {
 *     const call = toolCallOf(context);
 *     return call === undefined || call.tool.annotations?.readOnly === true || call.context.data.role === 'writer';
 *   }
 * }
 * ```
 */
export function toolCallOf(host: ArgumentsHost): ToolCallInfo | undefined {
  checkArguments({ of: 'toolCallOf', given: { host }, rules: { host: HOST } });
  return host.getType<ToolContextType>() === 'tool' ? host.getArgByIndex(CALL_POSITION) : undefined;
}

const HOST = withMethods(['getType', 'getArgByIndex'], 'the ExecutionContext or ArgumentsHost of the call');

/** The abort reason of work that outlasts the shutdown's time limit. */
export const SHUTDOWN = new DOMException('The application is shutting down.', 'AbortError');

/** The error for waiting on a run that continues in another process. */
const LEFT =
  'The run was left to other processes, which go on with it when its lease has ended: this application is shutting down.';

/** How long aborted runs may take to end: a reader that has left may keep one open forever. */
const ABORT_GRACE_MS = 1_000;

/** A call whose method has not ended. */
interface CallUnderWay extends Pick<ToolCallInfo, 'context' | 'tool'> {
  readonly work: Promise<unknown>;
  reject(reason: unknown): void;
}

/** Tracks running calls, runs and background tasks, so that a shutdown can wait for them and abort the rest. */
export class RunningCalls {
  readonly #runs = new Set<Promise<unknown>>();
  readonly #calls = new Set<CallUnderWay>();
  readonly #leaving = new AbortController();
  readonly #ending = new AbortController();
  readonly #tasks: TaskQueue;

  constructor(tasks: TaskQueue) {
    this.#tasks = tasks;
    // Many runs may listen; this is not a leak.
    setMaxListeners(0, this.#ending.signal, this.#leaving.signal);
  }

  /** Aborted when a shutdown has waited long enough. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** Aborted before `signal`, for jobs and stored runs, which are left to other processes. */
  get leaving(): AbortSignal {
    return this.#leaving.signal;
  }

  /**
   * Tracks a call until its method has ended. After its time limit, a shutdown stops and rejects it; no call can start
   * then.
   */
  call({ context, tool }: Pick<CallUnderWay, 'context' | 'tool'>, work: () => unknown): unknown {
    this.signal.throwIfAborted();
    const value = work();
    if (!(value instanceof Promise)) return value;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const call = { context, tool, work: value, reject };
    this.#calls.add(call);
    value.finally(() => this.#calls.delete(call)).then(resolve, reject);
    return promise;
  }

  /** Tracks a run until it has ended; the signal ends it. */
  track<Value>(running: Promise<Value>): Promise<Value> {
    this.#runs.add(running);
    const forget = () => this.#runs.delete(running);
    running.then(forget, forget);
    return running;
  }

  /** Waits until nothing runs; after `limitMs`, aborts what still runs. */
  async end(limitMs: number): Promise<void> {
    this.#tasks.leaveJobs();
    await this.#settled(limitMs);
    this.#leaving.abort(new ToolwrightError('RunClaimed', LEFT));
    this.#ending.abort(SHUTDOWN);
    for (const { context, reject } of this.#calls) {
      // A call that was stopped for another reason already has its result, such as a job that is left to others.
      if (context instanceof CallContext && context.isStopped) continue;
      if (context instanceof CallContext) context.stop(SHUTDOWN);
      reject(SHUTDOWN);
    }
    for (const { id } of this.#tasks.tasks) this.#tasks.cancel(id, SHUTDOWN.message);
    await this.#settled(ABORT_GRACE_MS);
  }

  /** Resolves when nothing runs, or after `limitMs`. */
  async #settled(limitMs: number): Promise<void> {
    const late = Promise.withResolvers<true>();
    const limit = setTimeout(() => late.resolve(true), Math.min(limitMs, MAX_TIMER_MS));
    for (;;) {
      const running = [...this.#runs, ...[...this.#calls].flatMap(endOf)];
      if (running.length === 0 && this.#tasks.tasks.length === 0) break;
      const settled = Promise.allSettled([...running, this.#tasks.idle()]);
      if ((await Promise.race([settled, late.promise])) === true) break;
    }
    clearTimeout(limit);
  }
}

/**
 * Promises to wait for until a call has ended. If a call is answered before its method ends, it is awaited only if the
 * method observes the signal.
 */
function endOf({ work, context, tool }: CallUnderWay): readonly Promise<unknown>[] {
  if (!(context instanceof CallContext) || tool.observesSignal) return [work];
  if (context.isStopped) return [];
  const { promise: stopped, resolve } = Promise.withResolvers<unknown>();
  context.onStop(resolve);
  return [Promise.race([work, stopped])];
}
