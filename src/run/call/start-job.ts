import { AsyncLocalStorage } from 'node:async_hooks';
import type { Job } from '../../core/contract/job-engine.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { asyncResult, type ToolResult } from '../../core/contract/tool-result.js';
import { callListener, onAbort } from '../../core/kernel/async.js';
import { plainJson, withoutUndefined } from '../../core/kernel/json.js';
import { logThrown } from './call-log.js';
import { type Call, type CallWork, contextOf, keyOfEffect } from './context.js';
import { jsonDigest } from './effect-key.js';
import { logSilence } from './failure-log.js';
import type { CallOutcome } from './invocation.js';
import type { JobDispatch } from './job-dispatch.js';
import { writeFailure } from './result-text.js';
import { TaskQueue } from './task-queue.js';
import { approvalNeed } from './waits.js';

const ACKNOWLEDGEMENT = asyncResult('Started; the result will follow.');

/** A call whose work is a job of an engine, and its completion if this process listens for it. */
export class JobTask implements CallWork {
  readonly #call: Call;
  readonly #dispatch: JobDispatch;
  readonly #queue: TaskQueue;
  readonly #inContextOfCall = AsyncLocalStorage.snapshot();
  #id: string | undefined;
  isHooked = false;

  constructor(call: Call, dispatch: JobDispatch) {
    this.#call = call;
    this.#dispatch = dispatch;
    this.#queue = call.environment.tasks ?? new TaskQueue();
  }

  get id(): string | undefined {
    return this.#id;
  }

  get isOver(): boolean {
    return false;
  }

  /** Stores the job and sends it; returns the acknowledgement. Rejects if it cannot be stored. */
  async start(): Promise<ToolResult> {
    const { tool, environment } = this.#call;
    const job = jobOf(this.#call);
    const { id } = job;
    const { concurrency: _, ...options } = typeof tool.background === 'object' ? tool.background : {};
    const { logger } = environment;
    await this.#dispatch.send(job, options, (error) => logSilence(this.#dispatch.engine, { logger, error }));
    this.#id = id;
    const cancel = (reason: string | undefined): true => {
      this.#dispatch
        .cancel(id, reason, tool.name)
        .catch((error) => logThrown(this.#call, 'A job could not be cancelled', error));
      return true;
    };
    if (this.#hasListener)
      this.#queue.enter({ id, call: this.#call, isJob: true, mayRun: () => true, cancel });
    return ACKNOWLEDGEMENT;
  }

  /** Starts the job and waits for its result; `undefined` if the call is aborted meanwhile; the job then continues. */
  async complete(): Promise<ToolResult | undefined> {
    await this.start();
    const id = this.#id;
    this.#id = undefined;
    if (id === undefined) return undefined;
    const { signal } = this.#call.scope;
    const ended = Promise.withResolvers<ToolResult | undefined>();
    this.#follow(id, (update) => contextOf(this.#call).progress(update), ended.resolve);
    const unlisten = signal && onAbort(signal, () => ended.resolve(undefined));
    const result = await ended.promise;
    unlisten?.();
    this.#dispatch.unfollow(id);
    this.isHooked = result !== undefined;
    return result;
  }

  /** Its tool does not run here. */
  begin(): never {
    throw new TypeError(`The tool '${this.#call.tool.name}' runs as a job`);
  }

  report(): void {}

  /** A stored job runs, even if the run was aborted meanwhile. */
  outlive(end: CallOutcome): CallOutcome {
    if (this.#id === undefined) return end;
    return { status: 'started', result: ACKNOWLEDGEMENT, taskId: this.#id };
  }

  answered({ taskId }: CallOutcome): void {
    // After the answer has reached its caller, not before.
    if (taskId !== undefined && this.#hasListener) setImmediate(() => this.#followUp(taskId));
  }

  get #hasListener(): boolean {
    return this.#call.environment.onAsyncResult !== undefined;
  }

  #followUp(id: string): void {
    const { followUntil } = this.#call.environment;
    let unlisten = (): void => {};
    this.#follow(
      id,
      (update) => this.#queue.report(id, update),
      (result) => {
        unlisten();
        const known = finalized(this.#call, result, this.#inContextOfCall);
        this.#queue.end(id, known, () => handOver(this.#call, known, this.#inContextOfCall));
      },
    );
    // The job continues without the closing process.
    if (followUntil !== undefined)
      unlisten = onAbort(followUntil, () => {
        this.#dispatch.unfollow(id);
        this.#queue.leave(id);
      });
  }

  #follow(id: string, onUpdate: (update: unknown) => void, onEnd: (result: ToolResult) => void): void {
    const { logger } = this.#call.environment;
    this.#dispatch.follow(id, {
      onUpdate,
      onEnd,
      onError: (error) => logThrown(this.#call, 'A job could not be followed; it is looked at again', error),
      onSilence: (error) => logSilence(this.#dispatch.engine, { logger, error }),
    });
  }
}

type InContext = <Value>(run: () => Value) => Value;

/** The final form of a completion in a run, in the async context of its call. */
export function finalized({ tool, environment }: Call, result: ToolResult, inContext: InContext): ToolResult {
  const { finalizeCompletion, describeError } = environment;
  if (finalizeCompletion === undefined) return result;
  try {
    return inContext(() => finalizeCompletion(tool.name, result));
  } catch (error) {
    return writeFailure(tool.name, error, describeError);
  }
}

/** Passes a completion to its listener, in the async context of its call. */
export function handOver(call: Call, result: ToolResult, inContext: InContext): void {
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
  const { tool, checked, transformed, request, trace, scope } = call;
  const { channel, chatId, conversationId, owner } = scope;
  const idempotencyKey = keyOfEffect(call);
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
    approved: approvalOf(call),
    runId: request.place?.runId,
    trace: trace?.place,
  });
}

function approvalOf({ request, standing, tool }: Call): Exclude<Job['approved'], undefined> {
  const { approved, given } = request.journal ?? {};
  // A function that required no approval for this call has decided, if it sees all of its scope.
  if (!approved && standing === undefined) return approvalNeed(tool.approval) === false ? false : {};
  const by = approved ? given?.findLast(({ kind }) => kind === 'approval') : standing;
  return withoutUndefined({ answeredBy: by?.answeredBy });
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
