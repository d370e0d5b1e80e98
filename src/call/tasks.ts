import { AsyncLocalStorage } from 'node:async_hooks';
import type { Trace } from '../contract/telemetry.js';
import type { AsyncCallback, AsyncTool, ContextualTool, ToolDefinition } from '../contract/tool.js';
import type { ToolContext } from '../contract/tool-context.js';
import { asyncResult, ToolResult } from '../contract/tool-result.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { andThen, callListener, nextTurn, onAbort } from '../kernel/async.js';
import { type Call, type CallWork, contextOf } from './context.js';
import type { BodyOutcome, CallOutcome } from './invocation.js';
import { cancelledResult } from './job-dispatch.js';
import { writeEnd } from './result.js';
import { failedResult, writeFailure } from './result-text.js';
import { cancelDeadline, type Deadline, startDeadline } from './run-body.js';
import { runWork, settled, settleWork, type WorkOf } from './settle-work.js';
import { lineOf, TaskQueue } from './task-queue.js';
import { traceTask } from './trace-call.js';
import { ExclusiveTurn } from './turns.js';

/** The task whose work runs here, so that work which it starts is known to be a part of it. */
const current = new AsyncLocalStorage<CallTask>();

/**
 * What outlives the answer of one call: work in the background, or a callback that is waited for. However it
 * ends (it settles, throws, is called back, takes too long, is cancelled, is aborted with its run), the first
 * end completes the call, and all later ones are only logged. The completion is delivered once, and never before
 * the call itself was answered.
 */
export class CallTask implements CallWork {
  readonly #call: Call;
  readonly #listener: AsyncCallback;
  readonly #queue: TaskQueue;
  #id: string | undefined;
  #state: 'open' | 'completed' | 'delivered' | 'discarded' = 'open';
  #completion: ToolResult | undefined;
  #isAcknowledged = false;
  #hasBegun = false;
  #deadline: Deadline | undefined;
  #unfollow: (() => void) | undefined;
  #trace: Trace<ToolResult> | undefined;
  /** Whoever makes room in the queue, or cancels, must not lend its own async context to this call. */
  #inContextOfCall: <Value>(run: () => Value) => Value = (run) => run();

  constructor(call: Call, listener: AsyncCallback) {
    this.#call = call;
    this.#listener = listener;
    this.#queue = call.environment.tasks ?? new TaskQueue();
    tasksByContext.set(contextOf(call), this);
  }

  get id(): string | undefined {
    return this.#id;
  }

  /** It is decided what the call completes with, or that it does not. */
  get isSettled(): boolean {
    return this.#state !== 'open';
  }

  get isOver(): boolean {
    return this.#id !== undefined && this.isSettled;
  }

  /** `context.background`. What the work itself starts is a part of it. */
  begin(
    work: () => unknown,
    acknowledgement = 'Started; the result will follow.',
  ): ToolResult | Promise<ToolResult> {
    if (current.getStore() === this) return settleWork(this.#workOf, work);
    const { tool, context, environment, log } = this.#call;
    const why =
      this.#id === undefined ? this.#state === 'discarded' && 'is answered' : 'has started its work';
    // Two pieces of work would need two completions, and a call has one.
    if (why)
      throw new ToolwrightError(
        'ToolExecutionFailed',
        `context.background: the call of '${tool.name}' ${why} already; start one piece of work, e.g. context.background(() => Promise.all([one(), two()])).`,
      );
    // A function cannot go to another process.
    if (!tool.background && environment.jobs?.isFirstClosure)
      log.ignored(
        `context.background of '${tool.name}' runs in this process and ends with it; on the engine run tools with @Tool({ background: true })`,
      );
    // A method that asked something runs again with the answer, and starts its work then.
    if (!context?.replay?.isSuspended) this.#enter(() => this.#run(work));
    return asyncResult(acknowledgement);
  }

  report(update: unknown): void {
    if (this.#id !== undefined) this.#queue.report(this.#id, update);
  }

  /** What a tool with `setCallback` gives its callback. */
  callBack(value: unknown): void {
    try {
      const ready = settled(value, this.#workOf);
      if (ready instanceof Promise) this.#completeWith(ready);
      else this.#complete({ type: 'returned', value: ready });
    } catch (error) {
      this.#complete({ type: 'error', error });
    }
  }

  /** A success with a completion to come is a start, also where the tool worded its own acknowledgement. */
  outlive(end: CallOutcome): CallOutcome {
    const { status, result } = end;
    // What was stopped together with its call has no other end than that.
    if (status === 'timed_out' || status === 'aborted') return end;
    if (this.#id === undefined && status === 'success' && result.async && isAsync(this.#call.tool)) {
      // It completes through its callback, or has done so already.
      this.#enter();
      if (this.isSettled) this.#letGo();
      else this.#begun();
    }
    if (this.#id === undefined) return end;
    // The method may have failed after it had begun its work, which completes all the same.
    if (status !== 'success') return { ...end, taskId: this.#id };
    return {
      status: 'started',
      result: result.async ? result : new ToolResult({ ...result, async: true }),
      taskId: this.#id,
    };
  }

  answered({ taskId, result }: CallOutcome): void {
    // After the answer has reached its caller, not before.
    if (taskId !== undefined) {
      setImmediate(() => {
        this.#isAcknowledged = true;
        if (this.#state === 'completed') this.#deliver();
      });
      return;
    }
    // Answered for good: a tool keeps its callback, and must not complete with it what was aborted long ago.
    this.#state = 'discarded';
    this.#letGo();
    this.#trace?.end(result);
    if (this.#id !== undefined) this.#queue.end(this.#id, result, () => {});
  }

  #enter(run?: () => void): void {
    const { request, tool, scope, log } = this.#call;
    const { signal, conversationId } = scope;
    const id = `task_${crypto.randomUUID()}`;
    this.#id = id;
    const inContext = AsyncLocalStorage.snapshot();
    this.#inContextOfCall = inContext;
    if (signal !== undefined && !signal.aborted) this.#unfollow = onAbort(signal, this.#abort);
    this.#queue.enter({
      id,
      callId: request.id,
      tool: tool.name,
      conversationId,
      line: lineOf(scope),
      run: run && (() => inContext(run)),
      mayRun: () => !this.#isAborted(),
      cancel: (reason) => this.#cancel(reason),
      onListenerError: (error) => log.ignored('A listener for tasks threw', { error }),
    });
    this.#isAborted();
  }

  /** An abort that this call has not heard of yet, or was too late to hear of, ends its work here. */
  #isAborted(): boolean {
    const isAborted = this.#call.scope.signal?.aborted ?? false;
    if (isAborted) this.#abort();
    return isAborted;
  }

  #run(work: () => unknown): void {
    this.#begun();
    const run = () => current.run(this, () => runWork(work, this.#workOf));
    this.#completeWith(this.#trace === undefined ? run() : this.#trace.within(run));
  }

  #begun(): void {
    this.#hasBegun = true;
    this.#setLimit();
    this.#trace = traceTask(this.#call, this.#id ?? '');
  }

  #completeWith(value: Promise<unknown>): void {
    value.then(
      (settledValue) => this.#complete({ type: 'returned', value: settledValue }),
      (error) => this.#complete({ type: 'error', error }),
    );
  }

  get #workOf(): WorkOf {
    const { tool, environment } = this.#call;
    return { tool, environment, context: contextOf(this.#call) };
  }

  /** Counted from when the work begins; the run's own limit is for calls, and this outlives the run. */
  #setLimit(): void {
    const { timeoutMs } = this.#call.tool;
    if (timeoutMs === undefined || timeoutMs === Number.POSITIVE_INFINITY) return;
    this.#deadline = startDeadline(timeoutMs, () => {
      const reason = new DOMException(`The work took longer than ${timeoutMs} ms`, 'TimeoutError');
      this.#stop(reason, () => this.#write({ type: 'timed_out', timeoutMs, hasBegun: true }));
    });
  }

  readonly #abort = (): void => {
    this.#stop(this.#call.scope.signal?.reason, () =>
      this.#write({ type: 'aborted', hasBegun: this.#hasBegun }),
    );
  };

  #cancel(reason: string | undefined): boolean {
    const result = cancelledResult(this.#call.tool.name, reason);
    return this.#stop(result.error, () => result);
  }

  /**
   * Decides first, so that what the tool does when its signal is aborted comes too late to be its result.
   * `false` where that was decided already.
   */
  #stop(reason: unknown, write: () => ToolResult): boolean {
    if (this.isSettled) return false;
    this.#settle(() => {
      this.#inContextOfCall(() => contextOf(this.#call).stop(reason));
      return write();
    });
    return true;
  }

  #complete(end: BodyOutcome): void {
    const { tool, environment } = this.#call;
    const { judgeCompletion } = environment;
    this.#settle(() => {
      const result = this.#write(end);
      try {
        return judgeCompletion ? this.#inContextOfCall(() => judgeCompletion(tool.name, result)) : result;
      } catch (error) {
        return writeFailure(tool.name, error, environment.describeError);
      }
    });
  }

  #settle(write: () => ToolResult): void {
    if (this.#state !== 'open') {
      const why = this.#state === 'discarded' ? 'has its answer' : 'was completed or aborted before';
      this.#call.log.ignored(`A completion came for a call that ${why}; it is ignored`);
      return;
    }
    this.#state = 'completed';
    this.#completion = write();
    this.#trace?.end(this.#completion);
    if (this.#isAcknowledged) this.#deliver();
    this.#letGo();
  }

  /** What was thrown or returned may throw again when it is looked at, and the call completes all the same. */
  #write(end: BodyOutcome): ToolResult {
    const { tool, environment } = this.#call;
    try {
      if (end.type === 'error' && isUnanswerable(end.error))
        return failedResult('NotExecutableHere', end.error.message);
      const { result } = writeEnd(this.#call, end);
      // Nothing follows a completion.
      return result.async ? new ToolResult({ ...result, async: false }) : result;
    } catch (error) {
      return writeFailure(tool.name, error, environment.describeError);
    }
  }

  /** Nothing is waited for any more: neither the limit, nor an abort, nor a slot in the queue. */
  #letGo(): void {
    if (this.#deadline !== undefined) cancelDeadline(this.#deadline);
    this.#unfollow?.();
    if (this.#id !== undefined) this.#queue.settle(this.#id);
  }

  #deliver(): void {
    const result = this.#completion;
    this.#state = 'delivered';
    if (result === undefined) return;
    void andThen(this.#call.hooked?.completed(result) ?? result, (heard) => this.#handOver(heard));
  }

  #handOver(result: ToolResult): void {
    const { log, since } = this.#call;
    const context = contextOf(this.#call);
    const deliver = (): void => {
      log.completedAsync(result, performance.now() - since);
      callListener(
        () => this.#inContextOfCall(() => this.#listener(context, result)),
        (error) => log.ignored('A listener for async results threw', { error }),
      );
    };
    if (this.#id !== undefined) this.#queue.end(this.#id, result, deliver);
    void context.close();
  }
}

/** A question in work that goes on after the answer (`context.ask`). */
function isUnanswerable(error: unknown): error is ToolwrightError {
  try {
    return ToolwrightError.is(error) && error.name === 'NotExecutableHere';
  } catch {
    return false;
  }
}

/** Starts a whole method as work in the background and gives the acknowledgement. */
export function startMethod(call: Call): ToolResult | Promise<ToolResult> {
  const { tool, args } = call;
  const context = contextOf(call);
  return context.background(async () => {
    // The acknowledgement goes first, however long the method takes until it first waits for something.
    await nextTurn();
    return context.isStopped ? undefined : runInTurn(call, () => tool.execute(args, context));
  });
}

/**
 * Runs the body of a call. A shared object has its turn for that, and is told of this call first; `undefined` where
 * an abort ended the wait for it, and an error where that would never have ended.
 */
export async function runInTurn<Value>(
  call: Call,
  body: () => Value | Promise<Value>,
): Promise<Value | ToolResult | undefined> {
  const { tool, task, scope, log } = call;
  if (!isContextual(tool) && !isAsync(tool)) return body();
  const callback: AsyncCallback = (context, result) => calledBack(call, callback, context)?.callBack(result);
  const turn = new ExclusiveTurn({
    shared: tool,
    enter: () => tellOfCall(call, callback),
    onError: (error) => log.ignored('A tool threw when it was told again of its call', { error }),
  });
  if (task instanceof CallTask) tasksByTurn.set(turn, task);
  const beginning = await turn.begin(scope.signal);
  if (beginning === 'begun' && !contextOf(call).isStopped) return turn.run(body);
  turn.end();
  return beginning === 'stuck' ? failedResult('ToolDeadlock', ringOf(tool.name)) : undefined;
}

function tellOfCall({ tool, task, scope }: Call, callback: AsyncCallback): void {
  const { channel, chatId } = scope;
  if (isContextual(tool) && channel && chatId) tool.setContext(channel, chatId);
  if (!isAsync(tool) || task === undefined || tool.background) return;
  latest.set(tool, callback);
  tool.setCallback(callback);
}

/**
 * Whose completion it is. A tool that keeps its callback in a field gives every call the latest: then the
 * context that it passes on, or the turn in which it began to work, says which call is meant.
 */
function calledBack(
  { tool, task }: Call,
  callback: AsyncCallback,
  context: ToolContext | undefined,
): CallTask | undefined {
  const named = context && tasksByContext.get(context);
  if (named !== undefined) return named;
  const began = latest.get(tool) === callback ? ExclusiveTurn.on(tool) : undefined;
  const other = began && tasksByTurn.get(began);
  if (other !== undefined && !other.isSettled) return other;
  return task instanceof CallTask ? task : undefined;
}

function ringOf(tool: string): string {
  return `The tool '${tool}' was not run: a call of it is under way that waits for the tool which made this call.`;
}

/** The callback that a shared object has now. */
const latest = new WeakMap<object, AsyncCallback>();
/** What completes the call of a turn, and of a context. */
const tasksByTurn = new WeakMap<ExclusiveTurn, CallTask>();
const tasksByContext = new WeakMap<ToolContext, CallTask>();

function isContextual(tool: ToolDefinition): tool is ToolDefinition & ContextualTool {
  return 'setContext' in tool && typeof tool.setContext === 'function';
}

function isAsync(tool: ToolDefinition): tool is ToolDefinition & AsyncTool {
  return 'setCallback' in tool && typeof tool.setCallback === 'function';
}
