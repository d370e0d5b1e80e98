/** How a batch of tasks is to be run. */
interface BatchOptions<Task, Outcome> {
  readonly tasks: readonly Task[];
  readonly run: (task: Task) => Outcome | Promise<Outcome>;
  /** Runs alone: after all tasks before it have ended, and before any after it begins. */
  readonly isSequential: (task: Task) => boolean;
  readonly maxConcurrency: number;
  /** The outcome of a task that has to wait: those before it have not all ended, or it may not overtake one. */
  readonly hold: (task: Task) => Outcome;
  /** Whether a task has ended for now without being done, so that no barrier after it is passed. */
  readonly isOpen: (outcome: Outcome) => boolean;
}

/** Runs tasks in parallel up to a limit, and gives their outcomes in the order of the tasks. */
export function runInOrder<Task, Outcome>(
  options: BatchOptions<Task, Outcome>,
): readonly Outcome[] | Promise<readonly Outcome[]> {
  const { tasks, isSequential } = options;
  const isOrdered = tasks.length > 1 && tasks.some(isSequential);
  return isOrdered ? runWithBarriers(options) : runParallel(tasks, options);
}

/** The tasks that begin at once, by their indices: of those that are in nobody's way, as many as may run together. */
export function beginningTasks<Task>({
  tasks,
  isSequential,
  maxConcurrency,
}: Pick<BatchOptions<Task, unknown>, 'tasks' | 'isSequential' | 'maxConcurrency'>): readonly number[] {
  const barrier = tasks.length > 1 ? tasks.findIndex(isSequential) : -1;
  const free = barrier < 0 ? tasks.length : Math.max(1, barrier);
  return Array.from({ length: Math.min(free, maxConcurrency) }, (_, index) => index);
}

async function runWithBarriers<Task, Outcome>(
  options: BatchOptions<Task, Outcome>,
): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const group of groupsOf(options)) {
    const isBarred = outcomes.some(options.isOpen);
    outcomes.push(...(isBarred ? group.map(options.hold) : await runParallel(group, options)));
  }
  return outcomes;
}

/** Tasks that may run side by side; a sequential one is a group of its own. */
function groupsOf<Task, Outcome>({ tasks, isSequential }: BatchOptions<Task, Outcome>): readonly Task[][] {
  const groups: Task[][] = [];
  let parallel: Task[] | undefined;
  for (const task of tasks) {
    if (isSequential(task)) {
      groups.push([task]);
      parallel = undefined;
    } else if (parallel === undefined) {
      parallel = [task];
      groups.push(parallel);
    } else parallel.push(task);
  }
  return groups;
}

function runParallel<Task, Outcome>(
  tasks: readonly Task[],
  { run, maxConcurrency }: BatchOptions<Task, Outcome>,
): readonly Outcome[] | Promise<readonly Outcome[]> {
  if (tasks.length > maxConcurrency) return runLimited(tasks, { run, maxConcurrency });
  const outcomes = tasks.map(run);
  const isLater = outcomes.some((outcome) => outcome instanceof Promise);
  return isLater ? Promise.all(outcomes) : (outcomes as Outcome[]);
}

async function runLimited<Task, Outcome>(
  tasks: readonly Task[],
  { run, maxConcurrency }: Pick<BatchOptions<Task, Outcome>, 'run' | 'maxConcurrency'>,
): Promise<readonly Outcome[]> {
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
