import { createHash, randomBytes } from 'node:crypto';
import {
  type InputRequiredResult,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
} from '@modelcontextprotocol/server';
import type { Answer, CallRecord, Suspension } from '../../../core/contract/call.js';
import { keepsJobs } from '../../../core/contract/job-store.js';
import type { JsonObject } from '../../../core/contract/json-schema.js';
import type { CheckpointStore, KeptRun } from '../../../core/contract/run-checkpoint.js';
import type { RunClaim, RunState, StoredCall } from '../../../core/contract/run-state.js';
import type { AsyncCallback, ToolDefinition } from '../../../core/contract/tool.js';
import type { ToolResult } from '../../../core/contract/tool-result.js';
import { ToolwrightError } from '../../../core/errors/toolwright-error.js';
import { onAbort } from '../../../core/kernel/async.js';
import { copyOfJson, type Fields, isRecord, withoutUndefined } from '../../../core/kernel/json.js';
import { createNameFilter } from '../../../run/call/tool-registry.js';
import { isExpired } from '../../../run/call/waits.js';
import { ClaimedRun, DEFAULT_LEASE_MS, seizeRun } from '../../../run/loop/claimed-run.js';
import { foldRun } from '../../../run/loop/fold-run.js';
import { NO_USAGE } from '../../../run/loop/loop-run.js';
import { isSameOwner, ownerOf } from '../../../run/loop/run-owner.js';
import { answerStoredRun, cancelRun, driveSeizedRun } from '../../../run/loop/stored-run.js';
import { openWaits, restoredRecord, storedRecord } from '../../../run/loop/suspend.js';
import { TASKS_EXTENSION } from '../record-message.js';
import { pendingRequests, readResponse, STATELESS } from './ask-client.js';
import { sentResult } from './call-result.js';
import type { McpCaller } from './options.js';
import { type CallerRights, callScopeOf, type McpRequest, rightsOf } from './request.js';
import type { McpTaskOptions } from './settings.js';

/** The methods of the extension. */
export const TASK_METHODS = {
  'tasks/get': 'get',
  'tasks/update': 'update',
  'tasks/cancel': 'cancel',
} as const;

const POLL_MS = 1_000;
const CALL_ID = 'call';

/** A call that becomes a task. */
interface TaskCall extends McpRequest, CallerRights {
  readonly tool: ToolDefinition;
  readonly wanted: { readonly arguments: Fields };
}

/** Work that may go on after its call has an answer. */
export interface StartedWork {
  readonly completion: PromiseWithResolvers<ToolResult>;
  readonly cancelled: AbortController;
}

/** A task of the caller. */
interface FoundTask extends McpRequest, CallerRights {
  readonly run: KeptRun;
}

const NO_MODEL = { chat: () => Promise.reject(new Error('A task sends no requests to a model.')) };

type CallState =
  | { readonly status: 'held' }
  | { readonly status: 'begun' }
  | ({ readonly status: 'waiting' } & Suspension);

/** The state of a run with one call. */
function newState({ principal, scope, tool, wanted }: TaskCall, call: CallState): RunState {
  // An id that cannot be guessed, with a digest that binds it to its caller.
  const random = randomBytes(RANDOM_BYTES).toString('base64url');
  const runId = `task_${random}_${bindingOf(random, principal)}`;
  const owner = ownerOf(scope);
  const sent = { id: CALL_ID, name: tool.name, arguments: copyOfJson(wanted.arguments) as JsonObject };
  const open = { content: '', calls: [{ ...sent, ...call } as StoredCall] };
  return {
    version: 7,
    isOneCall: true,
    runId,
    revision: 1,
    ...withoutUndefined({ owner }),
    tools: [tool.name],
    model: 'mcp',
    messages: [],
    open,
    pending: openWaits({ runId, iterations: 1, open }).map(({ pending }) => pending),
    toolCalls: [],
    iterations: 1,
    usage: NO_USAGE,
    retries: { byTool: [], unknown: 0 },
  };
}

/**
 * Calls that are answered later. A task is a stored run of one call, so that any process with the store can report,
 * answer, cancel and continue it. A task whose process crashed is continued by the next process that is asked for it,
 * or by a worker.
 */
export class Tasks {
  readonly #store: CheckpointStore;
  readonly #leaseMs: number;
  readonly #isRequired: (name: string) => boolean;
  /** Tasks that this process works on. */
  readonly #running = new Map<
    string,
    { readonly cancelled: AbortController; readonly ended: Promise<void> }
  >();
  readonly #started = new WeakMap<McpCaller, StartedWork>();
  readonly #closed = new AbortController();

  constructor({ store, leaseMs = DEFAULT_LEASE_MS, required = [] }: McpTaskOptions) {
    this.#store = store;
    this.#leaseMs = leaseMs;
    this.#isRequired = createNameFilter({ allow: required });
  }

  /** Stops the running tasks. Other processes continue them at once; started work ends with an error. */
  async close(): Promise<void> {
    const reason = new DOMException('The server was closed', 'AbortError');
    this.#closed.abort(reason);
    await Promise.all(Array.from(this.#running.values(), ({ ended }) => ended));
  }

  #track(runId: string, cancelled: AbortController, work: Promise<void>): void {
    const ended = work.finally(() => this.#running.delete(runId));
    this.#running.set(runId, { cancelled, ended });
  }

  /**
   * Whether calls of a caller may become tasks.
   *
   * @throws MissingRequiredClientCapabilityError if the tool only runs as a task.
   */
  accepts({ name }: ToolDefinition, caller: McpCaller): boolean {
    if (supportsTasks(caller)) return true;
    if (this.#isRequired(name)) throw lacksTasks();
    return false;
  }

  /** Stores the call as a task, and begins it unless it waits for an approval. */
  async begin(call: TaskCall, suspension: Suspension | undefined): Promise<InputRequiredResult> {
    const state = newState(call, suspension ? { status: 'waiting', ...suspension } : { status: 'held' });
    await this.#store.save(state);
    return this.#created(call, state.runId);
  }

  async #created(call: TaskCall, runId: string): Promise<InputRequiredResult> {
    const run = await this.#store.read(runId);
    if (run === undefined)
      throw new ProtocolError(ProtocolErrorCode.InternalError, 'The task was not stored');
    const task = { ...call, run };
    this.#continue(task);
    const { inputRequests: _, ...created } = await this.#describe(task);
    // The types of the SDK have no tasks; it sends the result unchanged.
    return { ...created, resultType: 'task' } as unknown as InputRequiredResult;
  }

  /** Follows the work that a call may start, so that the call can become a task. */
  follow(caller: McpCaller): StartedWork {
    const work = { completion: Promise.withResolvers<ToolResult>(), cancelled: new AbortController() };
    this.#started.set(caller, work);
    return work;
  }

  /** Receives the completions of followed work. */
  readonly onAsyncResult: AsyncCallback = (context, result) => {
    const caller = context?.data.mcp;
    if (caller !== undefined) this.#started.get(caller)?.completion.resolve(result);
  };

  /** Stores a call whose work goes on in this process as a task, and its result when the work has ended. */
  async beginStarted(call: TaskCall, record: CallRecord, work: StartedWork): Promise<InputRequiredResult> {
    const { pending: _, ...state } = newState(call, { status: 'begun' });
    const { runId } = state;
    const claimed = new ClaimedRun({ store: this.#store, runId, leaseMs: this.#leaseMs });
    const since = performance.now();
    try {
      await this.#store.begin({ ...claimed.claim, leaseMs: this.#leaseMs }, { ...state, status: 'running' });
    } catch (error) {
      // No client could ask for the result.
      work.cancelled.abort(error);
      throw error;
    }
    claimed.hold(since);
    const { cancelled } = work;
    for (const signal of [claimed.lost, this.#closed.signal])
      onAbort(signal, () => cancelled.abort(signal.reason));
    const ended = work.completion.promise.then((result) => this.#end(claimed, { ...record, result }));
    const { onError } = call.served.options;
    this.#track(
      runId,
      cancelled,
      ended.catch((error) => onError?.(error)),
    );
    return this.#created(call, runId);
  }

  async #end(claimed: ClaimedRun, { taskId: _, ...record }: CallRecord): Promise<void> {
    const { isError } = record.result;
    const settled = storedRecord({ ...record, status: isError ? 'error' : 'success' });
    const call = { status: 'settled', record: settled } as const;
    const end = { status: 'completed', content: '', iterations: 1, usage: NO_USAGE, messages: [] } as const;
    const write = (claim: RunClaim) =>
      this.#store.end(claim, [
        { type: 'calls', calls: [{ index: 0, call }] },
        { type: 'end', ...end },
      ]);
    try {
      await claimed.write(write);
    } catch (error) {
      if (!isClaimedElsewhere(error)) throw error;
    }
    claimed.leave();
  }

  /** The tools of the caller's tasks that the messages of a request refer to: its token needs their scopes. */
  async toolsOf(messages: readonly unknown[], principal: string): Promise<readonly string[]> {
    const runs = messages.filter(isRecord).map(({ method, params }) => {
      const id = Object.hasOwn(TASK_METHODS, String(method)) && isRecord(params) ? params.taskId : undefined;
      return this.#read(id, principal);
    });
    return (await Promise.all(runs)).flatMap((run) => run?.state.tools ?? []);
  }

  /** The stored run of a task; for other callers it does not exist. */
  async #read(taskId: unknown, principal: string): Promise<KeptRun | undefined> {
    return belongsTo(taskId, principal) ? this.#store.read(taskId) : undefined;
  }

  /** Handles a method of tasks. Errors of the store are reported, but not sent to the client. */
  async serve(
    method: keyof typeof TASK_METHODS,
    request: McpRequest,
    taskId: unknown,
  ): Promise<Record<string, unknown>> {
    try {
      return (await this[TASK_METHODS[method]](request, taskId)) ?? {};
    } catch (error) {
      if (error instanceof ProtocolError) throw error;
      request.served.options.onError?.(error);
      throw new ProtocolError(ProtocolErrorCode.InternalError, 'The task could not be read or changed');
    }
  }

  async get(request: McpRequest, taskId: unknown): Promise<Fields> {
    const task = await this.#find(request, taskId);
    this.#continue(task);
    return this.#describe(task);
  }

  /** Responses to unknown and to answered requests are ignored. */
  async update(request: McpRequest, taskId: unknown): Promise<void> {
    const { run, tools, scope } = await this.#find(request, taskId);
    if (run.status !== 'suspended') return;
    const { runId, pending } = run.state as RunState;
    // The SDK moves them out of the parameters.
    const responses = request.context.mcpReq.inputResponses;
    const answers = pending.flatMap((wait): readonly Answer[] => {
      const answer = readResponse(wait, wait.id, responses);
      return answer === undefined ? [] : [{ ...answer, id: wait.id } as Answer];
    });
    if (answers.length === 0) return;
    const as = withoutUndefined({ owner: scope.owner, tools });
    try {
      await answerStoredRun({ store: this.#store, runId }, answers, as);
    } catch (error) {
      const { name } = ToolwrightError.is(error) ? error : {};
      // Somebody else has answered meanwhile.
      if (name === 'RunNotSuspended') return;
      if (name === 'RunClaimed')
        throw new ProtocolError(
          ProtocolErrorCode.InternalError,
          'Another server process is changing this task; send the answer again',
        );
      if (name !== 'InvalidAnswer' && name !== 'RunNotAllowed' && name !== 'DefinitionChanged') throw error;
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, (error as ToolwrightError).message);
    }
    this.#continue(await this.#find(request, taskId));
  }

  async cancel(request: McpRequest, taskId: unknown): Promise<void> {
    const { run, tools } = await this.#find(request, taskId);
    const { runId } = run;
    const reason = 'the client has cancelled the task';
    await cancelRun({ store: this.#store, runId, reason });
    this.#running.get(runId)?.cancelled.abort(new DOMException(reason, 'AbortError'));
    const [record] = foldRun(run).toolCalls;
    if (record?.taskId !== undefined) await tools.jobs?.cancel(record.taskId, reason, record.name);
  }

  /** The task of a caller; for others it does not exist. */
  async #find(request: McpRequest, taskId: unknown): Promise<FoundTask> {
    if (!supportsTasks(request.caller)) throw lacksTasks();
    const rights = await rightsOf(request);
    const run = await this.#read(taskId, rights.principal);
    if (run === undefined || !isSameOwner(run.state.owner, rights.scope.owner))
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'Task not found');
    return { ...request, ...rights, run };
  }

  /** Works on a task, unless it waits for answers, has ended, or another process works on it. */
  #continue(task: FoundTask): void {
    const { runId, status, leaseEnd = 0, state } = task.run;
    const waits = 'pending' in state ? state.pending : [];
    const isReady =
      status === 'suspended'
        ? waits.length === 0 || waits.some((wait) => isExpired(wait))
        : status === 'running' && leaseEnd < Date.now();
    // During a deployment, another process may still have the tool.
    const hasTool = state.tools?.every((name) => task.tools.offered(name) !== undefined);
    if (!isReady || !hasTool || this.#running.has(runId) || this.#closed.signal.aborted) return;
    const cancelled = new AbortController();
    const work = this.#drive(task, cancelled.signal).catch((error) => {
      if (!isClaimedElsewhere(error)) task.served.options.onError?.(error);
    });
    this.#track(runId, cancelled, work);
  }

  async #drive({ caller, served, tools, scope, run }: FoundTask, signal: AbortSignal): Promise<void> {
    const { runId } = run;
    const { policy, toolTimeoutMs, telemetry } = served.options;
    const seized = await seizeRun({ store: this.#store, runId, leaseMs: this.#leaseMs, from: 'nobody' });
    if (seized.run.status === 'ended') {
      await seized.claimed.giveBack();
      return;
    }
    const config = {
      provider: NO_MODEL,
      tools,
      checkpoint: 'step',
      loopGuard: false,
      signal,
      ...withoutUndefined({ policy, toolTimeoutMs, telemetry }),
    } as const;
    const { signal: _, onUpdate: __, onLog: ___, ...lasting } = scope;
    const { closeStream: ____, ...mcp } = caller;
    const left = this.#closed.signal;
    const deps = { scope: callScopeOf(lasting, mcp), onUnknown: 'error', left } as const;
    try {
      await driveSeizedRun(config, seized, { store: this.#store, deps });
    } catch (error) {
      if (!this.#closed.signal.aborted || error !== this.#closed.signal.reason) throw error;
      // The call has stopped, so that no other process need wait for the end of the lease.
      await seized.claimed.giveBack();
    }
  }

  /** A task as its client receives it. */
  async #describe(found: FoundTask): Promise<Fields> {
    const { server, tools, run } = found;
    const { runId: taskId, status, createdAt, changedAt, state } = run;
    const task = {
      taskId,
      createdAt: new Date(createdAt).toISOString(),
      lastUpdatedAt: new Date(changedAt).toISOString(),
      ttlMs: null,
      pollIntervalMs: POLL_MS,
    };
    if (status !== 'ended') {
      const missing = state.tools?.find((name) => tools.offered(name) === undefined);
      if (missing !== undefined)
        return {
          ...task,
          status: 'working',
          statusMessage: `Waiting for a server process with the tool '${missing}'`,
        };
      const pending = status === 'suspended' ? (state as RunState).pending : [];
      const inputRequests = pendingRequests(pending, found);
      if (Object.keys(inputRequests).length > 0) return { ...task, status: 'input_required', inputRequests };
      const waits = { statusMessage: 'Waiting for an approval in another application' };
      return { ...task, status: 'working', ...(pending.length > 0 && waits) };
    }
    const { end, toolCalls } = foldRun(run);
    const [record] = toolCalls;
    if (end?.status === 'aborted') return { ...task, status: 'cancelled' };
    if (end?.status !== 'completed' || record === undefined) {
      const message = end?.error?.message ?? 'The task has ended without a result';
      return { ...task, status: 'failed', error: { code: ProtocolErrorCode.InternalError, message } };
    }
    const isJob = record.taskId !== undefined && keepsJobs(this.#store);
    const job = isJob ? await this.#store.jobs.job(record.taskId) : undefined;
    if (job !== undefined && job.result === undefined) return { ...task, status: 'working' };
    const settled = restoredRecord(job?.result === undefined ? record : { ...record, result: job.result });
    const result = sentResult(server, settled, tools.offered(record.name));
    return { ...task, status: 'completed', result };
  }
}

/** Another process works on the run, or has ended it. */
function isClaimedElsewhere(error: unknown): boolean {
  return ToolwrightError.is(error) && ['RunClaimed', 'RunNotFound'].includes(error.name);
}

function supportsTasks({ capabilities, protocolVersion }: McpCaller): boolean {
  const { extensions } = capabilities as { readonly extensions?: Fields };
  const isDeclared = extensions !== undefined && Object.hasOwn(extensions, TASKS_EXTENSION);
  return isDeclared && protocolVersion === STATELESS;
}

function lacksTasks(): MissingRequiredClientCapabilityError {
  const requiredCapabilities = { extensions: { [TASKS_EXTENSION]: {} } };
  return new MissingRequiredClientCapabilityError({ requiredCapabilities });
}

const RANDOM_BYTES = 18;
const RANDOM_LENGTH = (RANDOM_BYTES * 4) / 3;
const TASK_ID = new RegExp(`^task_([\\w-]{${RANDOM_LENGTH}})_([\\w-]{22})$`);

function belongsTo(taskId: unknown, principal: string): taskId is string {
  const [, random, binding] = typeof taskId === 'string' ? (TASK_ID.exec(taskId) ?? []) : [];
  return random !== undefined && binding === bindingOf(random, principal);
}

function bindingOf(random: string, principal: string): string {
  return createHash('sha256')
    .update(JSON.stringify([random, principal]))
    .digest('base64url')
    .slice(0, 22);
}
