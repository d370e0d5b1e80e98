import type { CallScope } from '../../core/contract/call.js';
import type { Logger } from '../../core/contract/ports.js';
import type { BackgroundTask, TaskEvent, TaskListener } from '../../core/contract/tool-context.js';
import type { ToolResult } from '../../core/contract/tool-result.js';
import { checkArguments, checkOptions } from '../../core/errors/author-fault.js';
import { withoutUndefined } from '../../core/kernel/json.js';
import { Listeners } from '../../core/kernel/listeners.js';
import { COUNT_LIMIT, FUNCTION, optionTable } from '../../core/kernel/options.js';
import { logFailure } from './failure-log.js';

/** Options of a {@link TaskQueue}. */
export interface TaskQueueOptions {
  /** The most tasks that run at the same time; default: no limit. */
  readonly maxRunning?: number;
}

const OPTIONS = optionTable<TaskQueueOptions>('TaskQueue', { maxRunning: COUNT_LIMIT });

/** A queue's information about a task. For the framework. */
interface QueuedWork {
  readonly id: string;
  readonly call: {
    readonly request: { readonly id: string };
    readonly environment: { readonly logger?: Logger | undefined };
    readonly tool: { readonly name: string };
    readonly scope: CallScope;
  };
  /** Starts the work. Absent for work that is already running: it is only listed, and takes no slot. */
  readonly run?: () => void;
  /** A job of an engine: it continues without this process. */
  readonly isJob?: boolean;
  /** Whether it may start now; if it may no longer start, ends it. */
  mayRun(): boolean;
  /** Cancels the work; returns whether it had no result yet. */
  cancel(reason: string | undefined): boolean;
}

interface Entry {
  readonly work: QueuedWork;
  /** The line of the task; lines are served in turn. */
  readonly line: string;
  status: BackgroundTask['status'];
  /** It has its result, which may not be delivered yet. */
  isSettled: boolean;
}

/**
 * The work that calls have started: `context.background`, `@Tool({ background: true })` and tools with `setCallback`.
 * The queue lists waiting and running work, cancels it, and limits how much runs at the same time. Slots are given to
 * the conversations in turn (`conversationId`, otherwise `channel` and `chatId`; tasks without them share a line), so
 * that a conversation with 1,000 tasks does not delay another. A tool with `setCallback` starts its work outside the
 * queue: it is listed and can be cancelled, but takes no slot. Work that waits for another task of the same limited
 * queue may wait forever.
 *
 * @example
 * ```ts
 * const tasks = new TaskQueue({ maxRunning: 4 });
 * const end = tasks.subscribe((event) => console.log(event.type, event.task.tool));
 * await runToolLoop({ provider, model, tools, tasks, onAsyncResult: console.log }, messages, {
 *   conversationId: 'c1',
 * });
 * for (const { id } of tasks.tasks) tasks.cancel(id, 'the shop is closing');
 * await tasks.idle();
 * end();
 * ```
 *
 * @throws InvalidOptionsError (521) if `maxRunning` is neither a whole number of at least 1 nor `Infinity`.
 */
export class TaskQueue {
  readonly #maxRunning: number;
  readonly #entries = new Map<string, Entry>();
  /** Waiting work by line; the first line is served next. */
  readonly #lines = new Map<string, Set<Entry>>();
  readonly #listeners = new Listeners<TaskEvent>();
  #idlers: (() => void)[] = [];
  #running = 0;
  #isServing = false;
  #listsJobs = true;

  constructor(options: TaskQueueOptions = {}) {
    checkOptions(options, OPTIONS);
    this.#maxRunning = options.maxRunning ?? Infinity;
  }

  /** All waiting and running work, in the order in which it was started. */
  get tasks(): readonly BackgroundTask[] {
    return Array.from(this.#entries.values(), taskOf);
  }

  /**
   * Cancels a task: its call completes with the error `TaskCancelled` (519), its `context.signal` is aborted. The
   * model receives `reason`. Returns `false` if there is no such task, or if it already has its result.
   */
  cancel(taskId: string, reason?: string): boolean {
    return this.#entries.get(taskId)?.work.cancel(reason) ?? false;
  }

  /** Calls a listener for every later event of every task; the returned function ends the subscription. */
  subscribe(listener: TaskListener): () => void {
    checkArguments({ of: 'TaskQueue.subscribe', given: { listener }, rules: { listener: FUNCTION } });
    return this.#listeners.add(listener);
  }

  /** Resolves when no task waits or runs and all completions are delivered; immediately if there are no tasks. */
  idle(): Promise<void> {
    if (this.#entries.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idlers.push(resolve));
  }

  /** Adds work and runs it when its turn comes, possibly immediately. For the framework. */
  enter(work: QueuedWork): void {
    const entry: Entry = { work, line: lineOf(work.call.scope), status: 'waiting', isSettled: false };
    if (work.isJob && !this.#listsJobs) return;
    this.#entries.set(work.id, entry);
    if (work.run === undefined) {
      this.#start(entry);
      return;
    }
    const line = this.#lines.get(entry.line);
    if (line === undefined) this.#lines.set(entry.line, new Set([entry]));
    else line.add(entry);
    this.#serve();
  }

  /** Reports progress of a task. For the framework. */
  report(taskId: string, update: unknown): void {
    const entry = this.#entries.get(taskId);
    if (entry?.status === 'running')
      this.#emit(entry, { type: 'task-progress', task: taskOf(entry), update });
  }

  /**
   * The work has its result, which cannot be delivered yet: its slot is free, even if it still runs. For the
   * framework.
   */
  settle(taskId: string): void {
    const entry = this.#entries.get(taskId);
    if (entry !== undefined) this.#free(entry);
  }

  /** Removes a task, has its completion delivered, reports it, and serves the next. For the framework. */
  end(taskId: string, result: ToolResult, deliver: () => void): void {
    const entry = this.#entries.get(taskId);
    this.#entries.delete(taskId);
    deliver();
    if (entry !== undefined) {
      this.#emit(entry, { type: 'task-end', task: taskOf(entry), result });
      this.#free(entry);
    }
    this.#notifyIdlers();
  }

  /** Stops listing jobs of engines: a process that ends neither waits for them nor ends them. For the framework. */
  leaveJobs(): void {
    this.#listsJobs = false;
    for (const [id, { work }] of this.#entries) if (work.isJob) this.leave(id);
  }

  /** Stops listing a job that continues elsewhere. For the framework. */
  leave(jobId: string): void {
    this.#entries.delete(jobId);
    this.#notifyIdlers();
  }

  #notifyIdlers(): void {
    if (this.#entries.size > 0) return;
    const idlers = this.#idlers;
    this.#idlers = [];
    for (const resolve of idlers) resolve();
  }

  #free(entry: Entry): void {
    if (entry.isSettled) return;
    entry.isSettled = true;
    if (entry.status === 'waiting') this.#leaveLine(entry);
    else if (entry.work.run !== undefined) this.#running -= 1;
    this.#serve();
  }

  /** Gives the free slots to the lines in turn. Work may end immediately and call this again. */
  #serve(): void {
    if (this.#isServing) return;
    this.#isServing = true;
    try {
      while (this.#running < this.#maxRunning) {
        const [next] = this.#lines;
        const [entry] = next?.[1] ?? [];
        if (next === undefined || entry === undefined) break;
        const [name, line] = next;
        this.#leaveLine(entry);
        // The line moves behind the others.
        if (this.#lines.delete(name)) this.#lines.set(name, line);
        if (!entry.work.mayRun()) continue;
        this.#running += 1;
        this.#start(entry);
        // A listener may have cancelled it.
        if (!entry.isSettled) entry.work.run?.();
      }
    } finally {
      this.#isServing = false;
    }
  }

  #leaveLine(entry: Entry): void {
    const line = this.#lines.get(entry.line);
    line?.delete(entry);
    if (line?.size === 0) this.#lines.delete(entry.line);
  }

  #start(entry: Entry): void {
    entry.status = 'running';
    this.#emit(entry, { type: 'task-start', task: taskOf(entry) });
  }

  #emit(entry: Entry, event: TaskEvent): void {
    const { request, tool, environment } = entry.work.call;
    const at = { tool: tool.name, callId: request.id };
    this.#listeners.notify(event, (error) =>
      logFailure(environment.logger, { what: 'A listener for tasks threw', error, at }),
    );
  }
}

function taskOf({ work: { id, call }, status }: Entry): BackgroundTask {
  const { request, tool, scope } = call;
  const { conversationId } = scope;
  return withoutUndefined({ id, callId: request.id, tool: tool.name, conversationId, status });
}

/** The line in which the work of a call waits: that of its conversation. */
function lineOf({ conversationId, channel, chatId }: CallScope): string {
  if (conversationId !== undefined) return `conversation ${conversationId}`;
  return channel === undefined && chatId === undefined ? '' : JSON.stringify([channel, chatId]);
}
