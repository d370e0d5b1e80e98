import type { JobEngine } from '../../contract/job-engine.js';
import { checkOptions } from '../../errors/author-fault.js';
import { FUNCTION, MILLISECONDS, optionTable, required } from '../../kernel/options.js';
import { ATTEMPT_CASES, CANCEL_CASES } from './attempt-cases.js';
import { DELIVERY_CASES } from './delivery-cases.js';
import { EngineBench, type EngineCase, type JobEngineBackend } from './engine-bench.js';

const BACKEND = optionTable<JobEngineBackend>('jobEngineConformance', {
  open: required(FUNCTION),
  startWorker: FUNCTION,
  patienceMs: MILLISECONDS,
});

/** One case, for any test runner. */
export interface JobEngineCase {
  readonly title: string;
  /** Resolves where the engine does what the contract says, and rejects with what it does instead. */
  run(): Promise<void>;
}

/**
 * What every `JobEngine` has to do, as cases for any test runner.
 *
 * @example
 * ```ts
 * const connection = { host: '127.0.0.1', port: 6379 };
 * const cases = jobEngineConformance({ open: (queue) => bullmqEngine({ connection, queue }) });
 * for (const { run } of cases) await run();
 * ```
 */
export function jobEngineConformance(backend: JobEngineBackend): readonly JobEngineCase[] {
  checkOptions(backend, BACKEND);
  return [...DELIVERY_CASES, ...ATTEMPT_CASES, ...CANCEL_CASES]
    .filter(({ needsProcess }) => !needsProcess || backend.startWorker !== undefined)
    .map((draft) => ({ title: draft.title, run: () => runCase(backend, draft) }));
}

async function runCase(backend: JobEngineBackend, draft: EngineCase): Promise<void> {
  const bench = new EngineBench(backend);
  try {
    await draft.run(bench);
  } finally {
    await bench.close();
  }
}

/**
 * What a worker process of {@link JobEngineBackend} does: takes jobs, tells that it has them, and never ends them.
 *
 * @example
 * ```ts
 * const connection = { host: '127.0.0.1', port: 6379 };
 * await holdJobs(bullmqEngine({ connection, queue: process.argv[2] ?? '' }));
 * process.send?.('ready');
 * ```
 */
export async function holdJobs(engine: JobEngine): Promise<void> {
  await engine.work({
    concurrency: 5,
    handle: async ({ id }) => {
      await engine.publish({ type: 'progress', jobId: id, update: 'held' });
      await new Promise(() => {});
    },
  });
}
