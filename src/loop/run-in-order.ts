/** How a batch of tasks is to be run. */
export interface BatchOptions<Task, Outcome> {
  readonly tasks: readonly Task[];
  readonly run: (task: Task) => Outcome | Promise<Outcome>;
  /** Runs alone: after all tasks before it have ended, and before any after it begins. */
  readonly isSequential: (task: Task) => boolean;
  readonly maxConcurrency: number;
}

/** Runs tasks in parallel up to a limit, and gives their outcomes in the order of the tasks. */
export function runInOrder<Task, Outcome>(options: BatchOptions<Task, Outcome>): Promise<readonly Outcome[]> {
  const { tasks, run, isSequential } = options;
  // The most common batch by far, and the only one whose calls cannot get in each other's way.
  if (tasks.length === 1) return Promise.resolve(run(tasks[0] as Task)).then((outcome) => [outcome]);
  return tasks.some(isSequential) ? runWithBarriers(options) : runParallel(tasks, options);
}

async function runWithBarriers<Task, Outcome>(
  options: BatchOptions<Task, Outcome>,
): Promise<readonly Outcome[]> {
  const { tasks, run, isSequential } = options;
  const outcomes: Outcome[] = [];
  let parallel: Task[] = [];
  const flush = async (): Promise<void> => {
    outcomes.push(...(await runParallel(parallel, options)));
    parallel = [];
  };
  for (const task of tasks) {
    if (!isSequential(task)) {
      parallel.push(task);
      continue;
    }
    await flush();
    outcomes.push(await run(task));
  }
  await flush();
  return outcomes;
}

async function runParallel<Task, Outcome>(
  tasks: readonly Task[],
  { run, maxConcurrency }: BatchOptions<Task, Outcome>,
): Promise<readonly Outcome[]> {
  if (tasks.length <= maxConcurrency) return Promise.all(tasks.map(run));
  const outcomes = new Array<Outcome>(tasks.length);
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < tasks.length) {
      const index = next;
      next += 1;
      outcomes[index] = await run(tasks[index] as Task);
    }
  };
  await Promise.all(Array.from({ length: maxConcurrency }, worker));
  return outcomes;
}
