import { JOB_ENGINE, type JobEngine } from '../../core/contract/job-engine.js';
import { keepsJobs } from '../../core/contract/job-store.js';
import type { LogFields, Logger } from '../../core/contract/ports.js';
import { CHECKPOINT_STORE, type CheckpointStore } from '../../core/contract/run-checkpoint.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import {
  COUNT,
  FUNCTION,
  instanceOf,
  LOGGER,
  mistakenNames,
  oneOf,
  optionTable,
  protecting,
  RECORD,
  wrongValues,
} from '../../core/kernel/options.js';
import { visibleLine } from '../../core/kernel/visible-text.js';
import { registryOf } from '../../run/call/tool-registry.js';
import { Conversations } from '../../run/conversation/conversations.js';
import {
  type ConversationsOptions,
  keepsConversations,
  turnConfigOf,
} from '../../run/conversation/conversations-options.js';
import { BackgroundJobs, jobWork, type RunJobsOptions } from '../../run/jobs/run-jobs.js';
import type { ToolLoopConfig } from '../../run/loop/options.js';
import { recoverPeriodically } from '../../run/loop/stored-run.js';
import { type Command, type CommandEnvironment, onEnd, readLine, STRING, UserFault } from './command.js';
import { configOfModule, type ModuleExports, openModule, registryOfModule } from './open-module.js';
import { openStore } from './open-store.js';

/** The largest interval of a timer in Node. */
const KEEP_ALIVE_MS = 2 ** 30;

/** `toolwright worker <module>`: processes waiting work until it is stopped. */
export const command: Command = async (args, environment) => {
  const { name, values } = readLine(
    args,
    { store: STRING },
    'worker takes one module: toolwright worker dist/app.module.js',
  );
  const over = new AbortController();
  const { signal = over.signal } = environment;
  // Listen to signals before the worker starts, because turns run as soon as it does.
  const ended = endAsked({ signal: AbortSignal.any([signal, over.signal]) });
  try {
    const { what, drain } = await beginWork(name, values.store, environment);
    environment.error(`toolwright: worker of ${name}: ${what.join(', ')}\n`);
    environment.error(`toolwright: ${await ended}: no new work is started; waiting for the running work\n`);
    await drain();
  } finally {
    over.abort();
  }
  environment.error('toolwright: drained\n');
  return 0;
};

/** Resolves with what requested the end; keeps the process alive until then. A second signal ends it immediately. */
export async function endAsked(environment: Pick<CommandEnvironment, 'signal'>): Promise<string> {
  const alive = setInterval(() => {}, KEEP_ALIVE_MS);
  const { promise, resolve } = Promise.withResolvers<string>();
  const stop = onEnd(environment, resolve);
  return await promise.finally(() => {
    stop();
    clearInterval(alive);
  });
}

/** What a worker processes, and how to stop it. */
interface Work {
  readonly what: readonly string[];
  /** Takes no new work; resolves when running work has ended. */
  drain(): Promise<void>;
}

async function beginWork(
  name: string,
  store: string | undefined,
  environment: CommandEnvironment,
): Promise<Work> {
  const module = await openModule(name, environment.folder);
  if (module.work === undefined) return await workOfModule(module.exports, { name, store }, environment);
  if (store === undefined) {
    const what = module.work(loggerOf(environment));
    if (what.length > 0) return { what, drain: module.close };
  }
  await module.close();
  if (store !== undefined)
    throw new UserFault(
      '--store cannot be used with an application: ToolwrightModule.forRoot sets its store',
    );
  throw new UserFault(
    `${name} has no work for a worker: set a store with ToolwrightModule.forRoot({ store })`,
    1,
  );
}

/** The exports of a module that a worker uses; others are ignored. */
interface WorkerExports {
  readonly config?: unknown;
  readonly conversations?: Conversations;
  readonly store?: unknown;
  readonly engine?: JobEngine;
  readonly jobScope?: NonNullable<RunJobsOptions['jobScope']>;
  readonly jobConcurrency?: number;
  readonly onUnknown?: NonNullable<ConversationsOptions['onUnknown']>;
  readonly logger?: Logger;
}

const EXPORTS = optionTable<WorkerExports>('a worker’s module', {
  config: RECORD,
  conversations: instanceOf(Conversations, 'new Conversations({ … })'),
  store: {
    accepts: (store) => keepsConversations(store) || keepsJobs(store) || isCheckpointStore(store),
    fix: "new SqliteRunStore({ path: 'runs.sqlite' })",
  },
  engine: JOB_ENGINE,
  jobScope: protecting(FUNCTION),
  jobConcurrency: COUNT,
  onUnknown: oneOf('ask', 'error', 'rerun'),
  logger: LOGGER,
});

/** Writes warnings and errors, one line each, with the call and the reason unless the message states them. */
function loggerOf({ error: say }: CommandEnvironment): Logger {
  const write = (message: string, fields: LogFields = {}): void => {
    const { tool, callId, runId, reason, faults, sent, error } = fields;
    const place = runId === undefined ? callId : `${callId} of ${runId}`;
    const call = callId === undefined ? tool : `${tool} (${place})`;
    const why = String(error === undefined ? (reason ?? faults ?? sent ?? '') : errorMessage(error));
    const details = [
      ...(tool === undefined ? [] : [call]),
      ...(message.includes(visibleLine(why)) ? [] : [why]),
    ];
    say(`toolwright: ${visibleLine([message, ...details].join(': '))}\n`);
  };
  const isLevelEnabled = (level: string) => level === 'warn' || level === 'error';
  return { debug: () => {}, info: () => {}, warn: write, error: write, isLevelEnabled };
}

async function workOfModule(
  given: ModuleExports,
  { name, store: named }: { readonly name: string; readonly store: string | undefined },
  environment: CommandEnvironment,
): Promise<Work> {
  const { store: configured } = Object(given.config) as Partial<ToolLoopConfig>;
  const exports: WorkerExports = { ...(configured && { store: configured }), ...given };
  const faults = [...wrongValues(exports, EXPORTS), ...mistakenNames(exports, EXPORTS)];
  const mistakes = faults.map(({ problem, fix }) => `${problem}: write ${fix}`);
  if (mistakes.length > 0) throw new UserFault(`${name}: ${mistakes.join('; ')}`, 1);
  const { conversations: own, jobScope, jobConcurrency: concurrency, onUnknown } = exports;
  if (own !== undefined && exports.config === undefined)
    return { what: ['conversations'], drain: () => own.close() };
  const config = configOfModule(name, given);
  const { logger = config.logger ?? loggerOf(environment), engine = config.engine } = exports;
  const tools = registryOf(config.tools ?? registryOfModule(given) ?? []);
  const isNamed = named !== undefined || exports.store === undefined;
  const opened = isNamed ? await openStore(named, environment, 'worker') : undefined;
  const store = opened ?? exports.store;
  const { leaseMs } = config;
  const shared = { logger, onUnknown, leaseMs };
  // The worker runs the jobs itself, each in the scope that the module returns.
  const turns = { config: turnConfigOf(config), engine: config.engine, jobConcurrency: config.engine && 0 };
  const conversations =
    own ?? (keepsConversations(store) ? new Conversations({ store, ...shared, ...turns }) : undefined);
  // Starts once the engine is reachable; other work does not wait for it.
  const jobs =
    engine !== undefined && keepsJobs(store)
      ? new BackgroundJobs({ engine, store, tools, logger, concurrency, ...(jobScope && { jobScope }) })
      : undefined;
  let stopRecovery: (() => Promise<void>) | undefined;
  if (isCheckpointStore(store)) {
    const checkpoint = config.checkpoint === 'call' ? 'call' : 'step';
    const recovered = { logger, ...config, store, checkpoint } as const;
    stopRecovery = recoverPeriodically({ store, ...shared, config: () => recovered, scope: () => ({}) });
  }
  return {
    what: [
      ...(conversations ? ['conversations'] : []),
      ...(jobs ? [jobWork(tools.tools())] : []),
      ...(stopRecovery ? ['runs'] : []),
    ],
    drain: async () => {
      await Promise.all([conversations?.close(), jobs?.close(), stopRecovery?.()]);
      await opened?.close();
    },
  };
}

function isCheckpointStore(store: unknown): store is CheckpointStore {
  return CHECKPOINT_STORE.accepts(store);
}
