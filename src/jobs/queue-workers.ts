import type { ToolRegistry } from '../call/tool-registry.js';
import type { JobEngine, JobWorker, WorkOptions } from '../contract/job-engine.js';
import type { JobStore, StoredJob } from '../contract/job-store.js';
import type { Logger } from '../contract/ports.js';
import type { ToolDefinition } from '../contract/tool.js';

/** What workers do their jobs with. */
interface WorkOfQueues {
  readonly engine: JobEngine;
  readonly jobs: JobStore;
  readonly tools: ToolRegistry;
  readonly work: WorkOptions;
  readonly logger: Logger | undefined;
}

/** `undefined` is the queue of the engine. */
type QueueName = string | undefined;

const PAGE = 1_000;

/** The workers of a process: one for each queue in which jobs of its tools wait. */
export class QueueWorkers {
  readonly #given: WorkOfQueues;
  readonly #workers = new Map<QueueName, Promise<JobWorker | undefined>>();
  #isOpen = true;

  private constructor(given: WorkOfQueues) {
    this.#given = given;
  }

  /** Takes jobs of all queues that the tools name. Rejects, and takes none, if one of the queues cannot be reached. */
  static async open(given: WorkOfQueues): Promise<QueueWorkers> {
    const workers = new QueueWorkers(given);
    const queues = queuesOf(given.tools.tools());
    const opened = await Promise.allSettled(queues.map((queue) => workers.#open(queue)));
    const failed = opened.find((outcome) => outcome.status === 'rejected');
    if (failed !== undefined) {
      await workers.close();
      throw failed.reason;
    }
    if (queues.some((queue) => queue !== undefined)) void workers.#serveLeft();
    return workers;
  }

  /**
   * Takes jobs of the queue that a stored job waits in, if its tool is here: versions before may have enqueued it in
   * another queue than its tool names now.
   */
  serve({ job, options: { queue } }: StoredJob): void {
    const { tools, logger } = this.#given;
    if (!this.#isOpen || this.#workers.has(queue) || tools.offered(job.tool) === undefined) return;
    this.#open(queue).catch((error) =>
      logger?.warn('Jobs of a queue are not done in this process yet', { subject: 'queues', queue, error }),
    );
  }

  async close(): Promise<void> {
    this.#isOpen = false;
    const opened = await Promise.allSettled(this.#workers.values());
    const workers = opened.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : undefined));
    await Promise.all(workers.map((worker) => worker?.close()));
  }

  async #open(queue: QueueName): Promise<void> {
    const { engine, work } = this.#given;
    const opening = engine.work({ ...work, ...(queue === undefined ? {} : { queue }) });
    this.#workers.set(queue, opening);
    try {
      await opening;
    } catch (error) {
      this.#workers.delete(queue);
      throw error;
    }
  }

  /** What waits since before this version, so that no worker ends it meanwhile because it lacks the tool. */
  async #serveLeft(): Promise<void> {
    const { jobs, logger } = this.#given;
    try {
      for (const status of ['waiting', 'running'] as const) {
        for (let after: string | undefined; this.#isOpen; ) {
          const query = { status, limit: PAGE, ...(after === undefined ? {} : { after }) };
          const page = await jobs.listJobs(query);
          for (const stored of page.jobs) this.serve(stored);
          after = page.next;
          if (after === undefined) break;
        }
      }
    } catch (error) {
      logger?.warn('Started work could not be looked through', { error });
    }
  }
}

/** Where jobs of the tools wait: without background tools in the queue of the engine. */
function queuesOf(tools: readonly ToolDefinition[]): readonly QueueName[] {
  const queues = tools.flatMap(({ background }) => {
    if (!background) return [];
    return [typeof background === 'object' ? background.queue : undefined];
  });
  return queues.length === 0 ? [undefined] : [...new Set(queues)];
}

/** What a process does that does jobs of these tools; if they name queues, also of which queues. */
export function jobWork(tools: readonly ToolDefinition[]): string {
  const queues = queuesOf(tools);
  if (queues.every((queue) => queue === undefined)) return 'jobs';
  return `jobs (queues: ${queues.map((queue) => queue ?? 'that of the engine').join(', ')})`;
}
