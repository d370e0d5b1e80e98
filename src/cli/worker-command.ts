import { parseArgs } from 'node:util';
import { keepsJobs } from '../contract/job-store.js';
import { CHECKPOINT_STORE, type CheckpointStore } from '../contract/run-checkpoint.js';
import { Conversations } from '../conversation/conversations.js';
import {
  type ConversationsOptions,
  keepsConversations,
  turnConfigOf,
} from '../conversation/conversations-options.js';
import { RunRecovery } from '../conversation/run-recovery.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { type JobRunner, type RunJobsOptions, runJobs } from '../jobs/run-jobs.js';
import type { ToolLoopConfig } from '../loop/options.js';
import { type Command, type CommandSurroundings, UserFault } from './command.js';
import { configOfModule, type OpenModule, openModule, registryOfModule } from './open-module.js';
import { openStore } from './open-store.js';

/** What a worker does, and its end. */
interface Work {
  readonly what: readonly string[];
  /** Begins with nothing new, and resolves when what is under way has ended. */
  drain(): Promise<void>;
}

/** Longer than any timer of Node's is not possible. */
const KEEP_ALIVE_MS = 2 ** 30;

/** `toolwright worker <module>`: does what is kept for workers until it is told to end. */
export const workerCommand: Command = {
  async run(args, surroundings) {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: { store: { type: 'string' } },
      allowPositionals: true,
    });
    const [name, second] = positionals;
    if (name === undefined || second !== undefined)
      throw new UserFault('worker takes one module: toolwright worker dist/app.module.js');
    const { what, drain } = await beginWork({ name, store: values.store }, surroundings);
    // Before the line: whoever reads it may send a signal at once.
    const ended = endAsked(surroundings);
    surroundings.error(`toolwright: worker of ${name}: ${what.join(', ')}\n`);
    surroundings.error(`toolwright: ${await ended}: no new work, what is under way is waited for\n`);
    await drain();
    surroundings.error('toolwright: drained\n');
    return 0;
  },
};

/** What asked for the end; until then the process stays. A second signal ends it as if nobody listened. */
export async function endAsked({ signal }: CommandSurroundings): Promise<string> {
  const alive = setInterval(() => {}, KEEP_ALIVE_MS);
  try {
    return await new Promise((resolve) => {
      for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => resolve(name));
      signal?.addEventListener('abort', () => resolve('aborted'));
    });
  } finally {
    clearInterval(alive);
  }
}

/** Which module works, and what was said of its store. */
interface NamedModule {
  readonly name: string;
  readonly store: string | undefined;
}

async function beginWork(named: NamedModule, surroundings: CommandSurroundings): Promise<Work> {
  const { name, store } = named;
  try {
    const module = await openModule(name, surroundings.folder);
    if (module.work === undefined) return await workOfModule(module, named, surroundings);
    if (store === undefined) return await workOfApplication(name, { ...module, work: module.work });
    await module.close();
  } catch (error) {
    if (!ToolwrightError.is(error)) throw error;
    throw new UserFault(error.message, 1);
  }
  throw new UserFault('--store: the store of an application is that of its ToolwrightModule.forRoot');
}

async function workOfApplication(
  name: string,
  { work, close }: Required<Pick<OpenModule, 'work' | 'close'>>,
): Promise<Work> {
  const what = await work();
  if (what.length > 0) return { what, drain: close };
  await close();
  throw new UserFault(`${name} keeps nothing for a worker: ToolwrightModule.forRoot({ store })`, 1);
}

/** The parts of a module's work. */
interface WorkParts {
  readonly exports: OpenModule['exports'];
  readonly config: ToolLoopConfig;
  readonly store: unknown;
}

async function workOfModule(
  { exports }: OpenModule,
  { name, store: named }: NamedModule,
  surroundings: CommandSurroundings,
): Promise<Work> {
  const { conversations: own } = exports;
  const isOpen = own instanceof Conversations;
  if (isOpen && exports.config === undefined) return { what: ['conversations'], drain: () => own.close() };
  const config = configOfModule(name, exports);
  const opened =
    named === undefined && exports.store !== undefined
      ? undefined
      : await openStore(named, surroundings, 'worker');
  const store = opened ?? exports.store;
  const parts = { exports, config, store };
  const conversations = isOpen ? own : openConversations(parts);
  const jobs = await openJobs(parts);
  const recovery = isCheckpointStore(store) ? recover({ ...parts, store }) : undefined;
  return {
    what: [
      ...(conversations ? ['conversations'] : []),
      ...(jobs ? ['jobs'] : []),
      ...(recovery ? ['runs'] : []),
    ],
    drain: async () => {
      await Promise.all([conversations?.close(), jobs?.close(), recovery?.close()]);
      await opened?.close();
    },
  };
}

function isCheckpointStore(store: unknown): store is CheckpointStore {
  return CHECKPOINT_STORE.accepts(store);
}

function openConversations({ exports, config, store }: WorkParts): Conversations | undefined {
  if (!keepsConversations(store)) return undefined;
  const { engine, leaseMs } = config;
  return new Conversations({
    store,
    config: turnConfigOf(config),
    // Jobs are done beside them: each in the scope that the module says.
    ...(engine === undefined ? {} : { engine, jobConcurrency: 0 }),
    ...onUnknownOf(exports),
    ...(leaseMs === undefined ? {} : { leaseMs }),
  });
}

/** As the module exports it; a wrong one is refused by whoever takes it. */
function onUnknownOf({ onUnknown }: OpenModule['exports']): Pick<ConversationsOptions, 'onUnknown'> {
  return onUnknown === undefined ? {} : { onUnknown: onUnknown as ConversationsOptions['onUnknown'] };
}

async function openJobs({ exports, config, store }: WorkParts): Promise<JobRunner | undefined> {
  const { engine = config.engine, jobScope, jobConcurrency } = exports;
  if (engine === undefined || !keepsJobs(store)) return undefined;
  return runJobs({
    engine: engine as RunJobsOptions['engine'],
    store,
    tools: config.tools ?? registryOfModule(exports) ?? [],
    ...(jobConcurrency === undefined ? {} : { concurrency: jobConcurrency as number }),
    ...(jobScope === undefined ? {} : { jobScope: jobScope as NonNullable<RunJobsOptions['jobScope']> }),
  });
}

function recover({
  exports,
  config: given,
  store,
}: WorkParts & { readonly store: CheckpointStore }): RunRecovery {
  const checkpoint = given.checkpoint === 'call' ? 'call' : 'step';
  const config = { ...given, store, checkpoint } as const;
  return new RunRecovery({
    store,
    ...onUnknownOf(exports),
    ...(given.leaseMs === undefined ? {} : { leaseMs: given.leaseMs }),
    config: () => config,
    scope: () => ({}),
  });
}
