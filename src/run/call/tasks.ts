import { AsyncLocalStorage } from 'node:async_hooks';
import type { Job } from '../../core/contract/job-engine.js';
import type { Trace } from '../../core/contract/telemetry.js';
import type { AsyncCallback, AsyncTool, ContextualTool, ToolDefinition } from '../../core/contract/tool.js';
import type { ToolContext } from '../../core/contract/tool-context.js';
import { asyncResult, ToolResult } from '../../core/contract/tool-result.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import {
  andThen,
  callListener,
  MAX_TIMER_MS,
  nextTurn,
  onAbort,
  unlessAborted,
} from '../../core/kernel/async.js';
import { plainJson, withoutUndefined } from '../../core/kernel/json.js';
import { logThrown } from './call-log.js';
import { type Call, type CallWork, contextOf, keyOfEffect, workOf } from './context.js';
import { jsonDigest } from './effect-key.js';
import { logSilence } from './failure-log.js';
import type { BodyOutcome, CallOutcome } from './invocation.js';
import { cancelledResult, type JobDispatch } from './job-dispatch.js';
import { runWork, settled, settleWork } from './result-form.js';
import { failedResult, writeFailure } from './result-text.js';
import { writeOutcome } from './run-body.js';
import type { TaskQueue } from './task-queue.js';
import { approvalNeed } from './waits.js';

const STARTED = 'Started; the result will follow.';

/** The task whose work runs here, so that work it starts belongs to it. */
const currentTask = new AsyncLocalStorage<CallTask>();

/**
 * Work that outlives the answer of one call: in the background, or with an awaited callback. It may end by settling,
 * throwing, calling back, timing out, being cancelled, or being aborted with its run. The first end completes the
 * call; later ones are only logged. The completion is delivered once, and never before the call itself was answered.
 */
export class CallTask implements CallWork {
  readonly #queue: TaskQueue;
  id: string | undefined;
  #state: 'open' | 'completed' | 'delivered' | 'discarded' = 'open';
  #completion: ToolResult | undefined;
  #isAcknowledged = false;
  #hasBegun = false;
  #deadline: NodeJS.Timeout | undefined;
  #unfollow: (() => void) | undefined;
  #trace: Trace<ToolResult> | undefined;
  /** Code that frees a slot, or cancels, must not pass its own async context to this call. */
  #inContextOfCall: <Value>(run: () => Value) => Value = (run) => run();

  constructor(private readonly call: Call) {
    this.#queue = call.environment.tasks as TaskQueue;
    tasksByContext.set(contextOf(call), this);
  }

  /** The completion of the call is decided, or there will be none. */
  get isSettled(): boolean {
    return this.#state !== 'open';
  }

  get isOver(): boolean {
    return this.id !== undefined && this.isSettled;
  }

  /** `context.background`. Work that the work itself starts is a part of it. */
  begin(work: () => unknown, acknowledgement = STARTED): ToolResult | Promise<ToolResult> {
    if (currentTask.getStore() === this) return settleWork(workOf(this.call), work);
    const { tool, context, environment, log } = this.call;
    const why = this.id === undefined ? this.#state === 'discarded' && 'has ended' : 'has started work';
    // Two pieces of work would need two completions, but a call has one.
    if (why)
      throw new ToolwrightError(
        'ToolExecutionFailed',
        `context.background: the call of '${tool.name}' ${why} already; start one piece of work, e.g. context.background(() => Promise.all([one(), two()])).`,
      );
    // A function cannot be sent to another process.
    if (!tool.background && environment.jobs?.isFirstClosure)
      log.ignored(
        `context.background of '${tool.name}' runs in this process and ends with it; on the engine run tools with @Tool({ background: true })`,
      );
    // A method that asked a question runs again with the answer, and starts its work then.
    if (!context?.replay?.isSuspended)
      this.#enter(() => {
        this.#begun();
        const run = () => currentTask.run(this, () => runWork(work, workOf(this.call)));
        this.#completeWith(this.#trace === undefined ? run() : this.#trace.within(run));
      });
    return asyncResult(acknowledgement);
  }

  report(update: unknown): void {
    if (this.id !== undefined) this.#queue.report(this.id, update);
  }

  /** Receives the argument of a `setCallback` tool's callback. */
  callBack(value: unknown): void {
    try {
      const ready = settled(value, workOf(this.call));
      if (ready instanceof Promise) this.#completeWith(ready);
      else this.#complete({ type: 'returned', value: ready });
    } catch (error) {
      this.#complete({ type: 'error', error });
    }
  }

  /** A success with a completion to follow is a start, even if the tool wrote its own acknowledgement. */
  outlive(end: CallOutcome): CallOutcome {
    const { status, result } = end;
    // Work that was stopped together with its call has no completion.
    if (status === 'timed_out' || status === 'aborted') return end;
    if (this.id === undefined && status === 'success' && result.async && isAsync(this.call.tool)) {
      // It completes through its callback, or already has.
      this.#enter();
      if (this.isSettled) this.#release();
      else this.#begun();
    }
    if (this.id === undefined) return end;
    // The method may have failed after it had started its work, which completes all the same.
    if (status !== 'success') return { ...end, taskId: this.id };
    return {
      status: 'started',
      result: result.async ? result : new ToolResult({ ...result, async: true }),
      taskId: this.id,
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
    // Finally answered: a tool that stored its callback must not complete an aborted call.
    this.#state = 'discarded';
    this.#release();
    this.#trace?.end(result);
    if (this.id !== undefined) this.#queue.end(this.id, result, () => {});
  }

  #enter(run?: () => void): void {
    const { signal } = this.call.scope;
    this.id = `task_${crypto.randomUUID()}`;
    const inContext = AsyncLocalStorage.snapshot();
    this.#inContextOfCall = inContext;
    if (signal !== undefined && !signal.aborted) this.#unfollow = onAbort(signal, this.#abort);
    this.#queue.enter({
      id: this.id,
      call: this.call,
      run: run && (() => inContext(run)),
      mayRun: () => !this.#isAborted(),
      cancel: (reason) => {
        const result = cancelledResult(this.call.tool.name, reason);
        return this.#stop(result.error, () => result);
      },
    });
    this.#isAborted();
  }

  /** Ends the work if the run was aborted before this call could observe it. */
  #isAborted(): boolean {
    const isAborted = this.call.scope.signal?.aborted ?? false;
    if (isAborted) this.#abort();
    return isAborted;
  }

  /** The tool's timeout starts here; the run's timeout is for calls, and this work outlives the run. */
  #begun(): void {
    const { tool, environment, request, trace } = this.call;
    const { timeoutMs } = tool;
    this.#hasBegun = true;
    if (timeoutMs !== undefined && timeoutMs !== Infinity) {
      const expire = (): void => {
        const reason = new DOMException(`The work took longer than ${timeoutMs} ms`, 'TimeoutError');
        this.#stop(reason, () => this.#write({ type: 'timed_out', timeoutMs, hasBegun: true }));
      };
      this.#deadline = setTimeout(expire, Math.min(timeoutMs, MAX_TIMER_MS));
    }
    const { telemetry } = environment;
    if (!telemetry?.isOn) return;
    // A separate trace, because it outlives that of the call.
    const task = { taskId: this.id ?? '', callId: request.id, tool: tool.name, startedBy: trace?.place };
    this.#trace = telemetry.startTask(task);
  }

  #completeWith(value: Promise<unknown>): void {
    value.then(
      (settledValue) => this.#complete({ type: 'returned', value: settledValue }),
      (error) => this.#complete({ type: 'error', error }),
    );
  }

  readonly #abort = (): void => {
    this.#stop(this.call.scope.signal?.reason, () =>
      this.#write({ type: 'aborted', hasBegun: this.#hasBegun }),
    );
  };

  /**
   * Decides first, so that a result that the tool produces because of the abort comes too late. Returns `false` if it
   * was already decided.
   */
  #stop(reason: unknown, write: () => ToolResult): boolean {
    if (this.isSettled) return false;
    this.#settle(() => {
      this.#inContextOfCall(() => contextOf(this.call).stop(reason));
      return write();
    });
    return true;
  }

  #complete(end: BodyOutcome): void {
    this.#settle(() => finalized(this.call, this.#write(end), this.#inContextOfCall));
  }

  #settle(write: () => ToolResult): void {
    if (this.#state !== 'open') {
      const why = this.#state === 'discarded' ? 'has ended' : 'was already completed or aborted';
      this.call.log.ignored(`A completion came for a call that ${why}; it is ignored`);
      return;
    }
    this.#state = 'completed';
    this.#completion = write();
    this.#trace?.end(this.#completion);
    if (this.#isAcknowledged) this.#deliver();
    this.#release();
  }

  /** Reading a thrown or returned value may throw again; the call completes all the same. */
  #write(end: BodyOutcome): ToolResult {
    const { tool, environment } = this.call;
    try {
      if (end.type === 'error' && isUnanswerable(end.error))
        return failedResult('NotExecutableHere', end.error.message);
      const { result } = writeOutcome(this.call, end);
      // Nothing follows a completion.
      return result.async ? new ToolResult({ ...result, async: false }) : result;
    } catch (error) {
      return writeFailure(tool.name, error, environment.describeError);
    }
  }

  /** Releases the timeout, the abort listener and the slot. */
  #release(): void {
    clearTimeout(this.#deadline);
    this.#unfollow?.();
    if (this.id !== undefined) this.#queue.settle(this.id);
  }

  #deliver(): void {
    const [result, id] = [this.#completion, this.id];
    this.#state = 'delivered';
    if (result === undefined || id === undefined) return;
    void andThen(this.call.hooked?.completed(result) ?? result, (reported) =>
      this.#queue.end(id, reported, () => handOver(this.call, reported, this.#inContextOfCall)),
    );
  }
}

/** A question in work that continues after the answer (`context.ask`). */
function isUnanswerable(error: unknown): error is ToolwrightError {
  try {
    return ToolwrightError.is(error) && error.name === 'NotExecutableHere';
  } catch {
    return false;
  }
}

/** Starts a whole method as background work and returns the acknowledgement. */
export function startMethod(call: Call): ToolResult | Promise<ToolResult> {
  const { tool, args } = call;
  const context = contextOf(call);
  return context.background(async () => {
    // The acknowledgement is sent first, even if the method first runs synchronously for long.
    await nextTurn();
    return context.isStopped ? undefined : runInTurn(call, () => tool.execute(args, context));
  });
}

/**
 * Runs the body of a call. A shared object has one turn at a time and receives this call's context first. Returns
 * `undefined` if an abort ended the wait for the turn, and throws if the wait would never have ended.
 */
export async function runInTurn<Value>(
  call: Call,
  body: () => Value | Promise<Value>,
): Promise<Value | ToolResult | undefined> {
  const { tool, task, scope } = call;
  if (!isContextual(tool) && !isAsync(tool)) return body();
  const callback: AsyncCallback = (context, result) => calledBack(call, callback, context)?.callBack(result);
  const announceCall = (): void => {
    const { channel, chatId } = scope;
    if (isContextual(tool) && channel && chatId) tool.setContext(channel, chatId);
    if (!isAsync(tool) || task === undefined || tool.background) return;
    latest.set(tool, callback);
    tool.setCallback(callback);
  };
  const turn = new ExclusiveTurn(tool, announceCall, (error) =>
    logThrown(call, 'A tool threw when its call was restored', error),
  );
  if (task instanceof CallTask) tasksByTurn.set(turn, task);
  const beginning = await turn.begin(scope.signal);
  if (beginning === 'begun' && !contextOf(call).isStopped) return turn.run(body);
  turn.end();
  if (beginning !== 'stuck') return undefined;
  return failedResult(
    'ToolDeadlock',
    `The tool '${tool.name}' was not run: another call of it is waiting for the tool that made this call.`,
  );
}

/**
 * Determines the call of a completion. A tool that stores its callback in a field gives every call the latest
 * callback; then the passed context, or the turn in which it started to work, identifies the call.
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

/** The current callback of a shared object. */
const latest = new WeakMap<object, AsyncCallback>();
/** The task of a turn, and of a context. */
const tasksByTurn = new WeakMap<ExclusiveTurn, CallTask>();
const tasksByContext = new WeakMap<ToolContext, CallTask>();

function isContextual(tool: ToolDefinition): tool is ToolDefinition & ContextualTool {
  return 'setContext' in tool && typeof tool.setContext === 'function';
}

function isAsync(tool: ToolDefinition): tool is ToolDefinition & AsyncTool {
  return 'setCallback' in tool && typeof tool.setCallback === 'function';
}

/** The turns that wait for an object, or for a turn on it within another turn. */
interface Line {
  /** Resolves when all of its turns have ended. */
  tail?: Promise<void> | undefined;
  last?: ExclusiveTurn | undefined;
}

const lines = new WeakMap<object, Line>();

/** The turn in which code runs. Only shared objects have turns, so that other calls have no overhead. */
const currentTurn = new AsyncLocalStorage<ExclusiveTurn>();

/**
 * A call's turn on a shared object. `setContext` and `setCallback` store on the object, so calls of it must not
 * overlap. A call that is made within a turn on the same object does not wait for that turn, which waits for it: such
 * calls have their own line, and when they end, the outer call's context is set again.
 */
class ExclusiveTurn {
  readonly #outer: ExclusiveTurn | undefined;
  readonly #line: Line = {};
  #release: () => void = () => {};
  /** The enclosing turn on the same object. */
  readonly #within: ExclusiveTurn | undefined;
  #isOver = false;
  /** Its line, and the turn before it. */
  #place: Line | undefined;
  #previous: ExclusiveTurn | undefined;
  /** Turns on other objects that calls within this turn wait for. */
  readonly #awaited = new Set<ExclusiveTurn>();

  /**
   * `enter` sets the context of this turn's call on the shared object; `onError` receives errors of the object when the
   * outer call is set again.
   */
  constructor(
    private readonly shared: object,
    private readonly enter: () => void,
    private readonly onError: (error: unknown) => void,
  ) {
    // Ended turns are released: work that starts work would form an endless chain.
    this.#outer = ExclusiveTurn.#nearest(currentTurn.getStore(), (turn) => !turn.#isOver);
    this.#within = ExclusiveTurn.#nearest(this.#outer, (turn) => !turn.#isOver && turn.shared === shared);
  }

  /** The turn in which the current code was started, even if it has ended. */
  static on(shared: object): ExclusiveTurn | undefined {
    return ExclusiveTurn.#nearest(currentTurn.getStore(), (turn) => turn.shared === shared);
  }

  static #nearest(
    from: ExclusiveTurn | undefined,
    isWanted: (turn: ExclusiveTurn) => boolean,
  ): ExclusiveTurn | undefined {
    let turn = from;
    while (turn !== undefined && !isWanted(turn)) turn = turn.#outer;
    return turn;
  }

  /**
   * Waits until all earlier turns have ended, and starts; an abort ends the wait. `stuck`: the wait would never end.
   */
  async begin(signal: AbortSignal | undefined): Promise<'begun' | 'aborted' | 'stuck'> {
    const line = this.#within === undefined ? (lines.get(this.shared) ?? {}) : this.#within.#line;
    if (this.#within === undefined) lines.set(this.shared, line);
    const { tail: before, last } = line;
    const { promise: turn, resolve } = Promise.withResolvers<void>();
    this.#release = resolve;
    line.tail = before ? before.then(() => turn) : turn;
    line.last = this;
    this.#place = line;
    this.#previous = last;
    // Turns never fail, so a rejection is the abort, which ends the wait like the end of a turn.
    const wait = before && signal ? unlessAborted(before, signal).catch(() => {}) : before;
    if (wait !== undefined && (await this.#waitOrStick(wait))) return 'stuck';
    if (signal?.aborted) return 'aborted';
    this.#previous = undefined;
    return 'begun';
  }

  /** Waits; `true` if that would never end. Only a call within another turn can close a cycle. */
  async #waitOrStick(wait: Promise<void>): Promise<boolean> {
    /** The turns that cannot end before this turn does. */
    const holding = new Set<ExclusiveTurn>();
    for (let turn = this.#outer; turn !== undefined; turn = turn.#outer) {
      let kept: ExclusiveTurn | undefined = turn.#isOver ? undefined : turn;
      for (; kept !== undefined; kept = kept.#within) holding.add(kept);
    }
    for (const turn of holding) turn.#awaited.add(this);
    try {
      if (holding.size > 0) {
        // A body that does not wait for its call may end by then.
        const isOver = await Promise.race([wait.then(() => true), nextTurn().then(() => false)]);
        if (!isOver && this.#isInRing(holding)) return true;
      }
      await wait;
      return false;
    } finally {
      for (const turn of holding) turn.#awaited.delete(this);
    }
  }

  /** Whether a turn that this turn waits for, directly or indirectly, waits for one of those. */
  #isInRing(held: ReadonlySet<ExclusiveTurn>): boolean {
    const open = new Set([this.#previous]);
    // Items that are added during the iteration are visited, too.
    for (const turn of open) {
      if (turn === undefined) continue;
      if (held.has(turn)) return true;
      open.add(turn.#previous);
      for (const awaited of turn.#awaited) open.add(awaited.#previous);
    }
    return false;
  }

  /** Runs the work of the turn, and ends the turn afterwards. */
  async run<Value>(work: () => Value | Promise<Value>): Promise<Value> {
    try {
      return await currentTurn.run(this, () => {
        this.enter();
        return work();
      });
    } finally {
      this.end();
    }
  }

  /** Ends the turn, after those within it. */
  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { tail } = this.#line;
    if (tail === undefined) this.#leave();
    else void tail.then(() => this.#leave());
  }

  #leave(): void {
    const within = this.#within;
    if (within !== undefined && !within.#isOver) {
      try {
        within.enter();
      } catch (error) {
        within.onError(error);
      }
    }
    this.#release();
    const line = this.#place;
    // The line is empty, unless this turn's wait was cut short and earlier turns still run.
    if (line?.last !== this || this.#previous !== undefined) return;
    line.tail = undefined;
    line.last = undefined;
  }
}

const ACKNOWLEDGEMENT = asyncResult(STARTED);

/** A call whose work is a job of an engine, and its completion if this process listens for it. */
export class JobTask implements CallWork {
  /** Present if this process listens for the completion. */
  readonly #queue: TaskQueue | undefined;
  readonly #inContextOfCall = AsyncLocalStorage.snapshot();
  id: string | undefined;
  isHooked = false;

  constructor(
    private readonly call: Call,
    private readonly dispatch: JobDispatch,
  ) {
    this.#queue = call.environment.tasks;
  }

  get isOver(): boolean {
    return false;
  }

  /** Stores the job and sends it; returns the acknowledgement. Rejects if it cannot be stored. */
  async start(): Promise<ToolResult> {
    const id = await this.#send();
    this.id = id;
    const cancel = (reason: string | undefined): true => {
      this.dispatch
        .cancel(id, reason, this.call.tool.name)
        .catch((error) => logThrown(this.call, 'A job could not be cancelled', error));
      return true;
    };
    this.#queue?.enter({ id, call: this.call, isJob: true, mayRun: () => true, cancel });
    return ACKNOWLEDGEMENT;
  }

  /** Starts the job and waits for its result; `undefined` if the call is aborted meanwhile; the job then continues. */
  async complete(): Promise<ToolResult | undefined> {
    const id = await this.#send();
    const { signal } = this.call.scope;
    const ended = Promise.withResolvers<ToolResult | undefined>();
    this.#follow(id, (update) => contextOf(this.call).progress(update), ended.resolve);
    const unlisten = signal && onAbort(signal, () => ended.resolve(undefined));
    const result = await ended.promise;
    unlisten?.();
    this.dispatch.unfollow(id);
    this.isHooked = result !== undefined;
    return result;
  }

  async #send(): Promise<string> {
    const job = jobOf(this.call);
    const { background } = this.call.tool;
    const { concurrency: _, ...options } = typeof background === 'object' ? background : {};
    await this.dispatch.send(job, options, this.#onSilence);
    return job.id;
  }

  readonly #onSilence = (error: unknown): void => {
    const { logger } = this.call.environment;
    logSilence(this.dispatch.engine, { logger, error });
  };

  /** Its tool does not run here. */
  begin(): never {
    throw new TypeError(`The tool '${this.call.tool.name}' runs as a job`);
  }

  report(): void {}

  /** A stored job runs, even if the run was aborted meanwhile. */
  outlive(end: CallOutcome): CallOutcome {
    if (this.id === undefined) return end;
    return { status: 'started', result: ACKNOWLEDGEMENT, taskId: this.id };
  }

  answered({ taskId }: CallOutcome): void {
    // After the answer has reached its caller, not before.
    const queue = this.#queue;
    if (taskId !== undefined && queue !== undefined) setImmediate(() => this.#followUp(taskId, queue));
  }

  #followUp(id: string, queue: TaskQueue): void {
    const { followUntil } = this.call.environment;
    let unlisten = (): void => {};
    this.#follow(
      id,
      (update) => queue.report(id, update),
      (result) => {
        unlisten();
        const known = finalized(this.call, result, this.#inContextOfCall);
        queue.end(id, known, () => handOver(this.call, known, this.#inContextOfCall));
      },
    );
    // The job continues without the closing process.
    if (followUntil !== undefined)
      unlisten = onAbort(followUntil, () => {
        this.dispatch.unfollow(id);
        queue.leave(id);
      });
  }

  #follow(id: string, onUpdate: (update: unknown) => void, onEnd: (result: ToolResult) => void): void {
    this.dispatch.follow(id, {
      onUpdate,
      onEnd,
      onError: (error) =>
        logThrown(this.call, 'The state of a job could not be read; it is read again', error),
      onSilence: this.#onSilence,
    });
  }
}

type InContext = <Value>(run: () => Value) => Value;

/** The final form of a completion in a run, in the async context of its call. */
function finalized({ tool, environment }: Call, result: ToolResult, inContext: InContext): ToolResult {
  const { finalizeCompletion, describeError } = environment;
  if (finalizeCompletion === undefined) return result;
  try {
    return inContext(() => finalizeCompletion(tool.name, result));
  } catch (error) {
    return writeFailure(tool.name, error, describeError);
  }
}

/** Passes a completion to its listener, in the async context of its call. */
function handOver(call: Call, result: ToolResult, inContext: InContext): void {
  const { environment, log, since } = call;
  const context = contextOf(call);
  if (environment.logger !== undefined) log.completedAsync(result, performance.now() - since);
  else if (result.isError) logThrown(call, 'Async tool failed', result.error ?? result.forLLM);
  callListener(
    () => inContext(() => environment.onAsyncResult?.(context, result)),
    (error) => logThrown(call, 'A listener for async results threw', error),
  );
  void context.close();
}

function jobOf(call: Call): Job {
  const { tool, checked, transformed, request, trace, scope, standing } = call;
  const { channel, chatId, conversationId, owner } = scope;
  const idempotencyKey = keyOfEffect(call);
  const { approved: isApproved, given } = request.journal ?? {};
  let approved: Exclude<Job['approved'], undefined> = {};
  if (isApproved || standing !== undefined) {
    const by = isApproved ? given?.findLast(({ kind }) => kind === 'approval') : standing;
    approved = withoutUndefined({ answeredBy: by?.answeredBy });
    // A function that required no approval for this call has decided, if it sees all of its scope.
  } else if (approvalNeed(tool.approval) === false) approved = false;
  return withoutUndefined<Job>({
    // The same call has the same job, also if it is executed again after a crash.
    id: `task_${idempotencyKey}`,
    tool: tool.name,
    arguments: JSON.parse(JSON.stringify(checked)),
    transformed: transformed !== undefined || request.isTransformed ? true : undefined,
    scope: withoutUndefined({ channel, chatId, conversationId, owner: plainJson(owner) }),
    fingerprint: fingerprintOf(tool),
    idempotencyKey,
    callId: request.id,
    approved,
    runId: request.place?.runId,
    trace: trace?.place,
  });
}

/** Two digests of a tool's definition: of its parameters, and of everything else that JSON can represent. */
export function fingerprintOf(tool: ToolDefinition): string {
  const known = fingerprints.get(tool);
  if (known !== undefined) return known;
  const { parameters, output, background, timeoutMs, sequential, annotations } = tool;
  const options = { output, background, timeoutMs, sequential, annotations };
  const fingerprint = `${jsonDigest(parameters)}.${jsonDigest(plainJson(options))}`;
  fingerprints.set(tool, fingerprint);
  return fingerprint;
}

const fingerprints = new WeakMap<ToolDefinition, string>();
