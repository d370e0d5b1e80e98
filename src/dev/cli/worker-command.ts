import { JOB_ENGINE, type JobEngine } from '../../core/contract/job-engine.js';
import { keepsJobs } from '../../core/contract/job-store.js';
import type { LogFields, Logger } from '../../core/contract/ports.js';
import { CHECKPOINT_STORE, type CheckpointStore } from '../../core/contract/run-checkpoint.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
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
import { registryOf, type ToolRegistry } from '../../run/call/tool-registry.js';
import { Conversations } from '../../run/conversation/conversations.js';
import {
  type ConversationsOptions,
  keepsConversations,
  turnConfigOf,
} from '../../run/conversation/conversations-options.js';
import { recoverPeriodically } from '../../run/conversation/run-recovery.js';
import { BackgroundJobs, jobWork, type RunJobsOptions } from '../../run/jobs/run-jobs.js';
import type { ToolLoopConfig } from '../../run/loop/options.js';
import { type Command, type CommandEnvironment, onEnd, readLine, STRING, UserFault } from './command.js';
import {
  configOfModule,
  type ModuleExports,
  type OpenModule,
  openModule,
  registryOfModule,
} from './open-module.js';
import { openStore } from './open-store.js';

/** What a worker processes, and how to stop it. */
interface Work {
  readonly what: readonly string[];
  /** Takes no new work; resolves when running work has ended. */
  drain(): Promise<void>;
}

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
    const { what, drain } = await beginWork({ name, store: values.store }, environment);
    environment.error(`toolwright: worker of ${name}: ${what.join(', ')}\n`);
    environment.error(`toolwright: ${await ended}: no new work, what is under way is waited for\n`);
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

/** The module, and the store from the command line. */
interface NamedModule {
  readonly name: string;
  readonly store: string | undefined;
}

async function beginWork(named: NamedModule, environment: CommandEnvironment): Promise<Work> {
  const { name, store } = named;
  try {
    const module = await openModule(name, environment.folder);
    if (module.work === undefined) return await workOfModule(module, named, environment);
    if (store === undefined)
      return await workOfApplication(name, { ...module, work: module.work }, environment);
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
  environment: CommandEnvironment,
): Promise<Work> {
  const what = work(loggerOf(environment));
  if (what.length > 0) return { what, drain: close };
  await close();
  throw new UserFault(`${name} keeps nothing for a worker: ToolwrightModule.forRoot({ store })`, 1);
}

/** The parts of a module's work. */
interface WorkParts {
  readonly exports: WorkerExports;
  readonly config: ToolLoopConfig;
  readonly store: unknown;
  readonly logger: Logger;
  readonly tools: ToolRegistry;
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

/** The exports for a worker; faults are reported in one line. */
function exportsOf(name: string, exports: ModuleExports): WorkerExports {
  const faults = [...wrongValues(exports, EXPORTS), ...mistakenNames(exports, EXPORTS)];
  if (faults.length === 0) return exports;
  const mistakes = faults.map(({ problem, fix }) => `${problem}: write ${fix}`);
  throw new UserFault(`${name}: ${mistakes.join('; ')}`, 1);
}

/** Writes warnings and errors, one line each. */
function loggerOf({ error }: CommandEnvironment): Logger {
  const write = (message: string, fields: LogFields = {}): void =>
    error(`toolwright: ${visibleLine([message, ...detailsIn(fields, message)].join(': '))}\n`);
  const isLevelEnabled = (level: string) => level === 'warn' || level === 'error';
  return { debug: () => {}, info: () => {}, warn: write, error: write, isLevelEnabled };
}

/** Identifies the call and the reason, unless the message states them. */
function detailsIn({ tool, callId, runId, reason, faults, sent, error }: LogFields, message: string) {
  const place = runId === undefined ? callId : `${callId} of ${runId}`;
  const call = tool === undefined ? [] : [callId === undefined ? tool : `${tool} (${place})`];
  const why = String(error === undefined ? (reason ?? faults ?? sent ?? '') : errorMessage(error));
  return message.includes(visibleLine(why)) ? call : [...call, why];
}

async function workOfModule(
  { exports: given }: OpenModule,
  { name, store: named }: NamedModule,
  environment: CommandEnvironment,
): Promise<Work> {
  const { store: configured } = Object(given.config) as Partial<ToolLoopConfig>;
  const exports = exportsOf(name, { ...(configured && { store: configured }), ...given });
  const { conversations: own } = exports;
  if (own !== undefined && exports.config === undefined)
    return { what: ['conversations'], drain: () => own.close() };
  const config = configOfModule(name, given);
  const { logger = config.logger ?? loggerOf(environment) } = exports;
  const tools = registryOf(config.tools ?? registryOfModule(given) ?? []);
  const opened =
    named === undefined && exports.store !== undefined
      ? undefined
      : await openStore(named, environment, 'worker');
  const store = opened ?? exports.store;
  const parts = { exports, config, store, logger, tools };
  const conversations = own ?? openConversations(parts);
  const jobs = openJobs(parts);
  const stopRecovery = isCheckpointStore(store) ? recover({ ...parts, store }) : undefined;
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

function openConversations({ exports, config, store, logger }: WorkParts): Conversations | undefined {
  if (!keepsConversations(store)) return undefined;
  const { engine, leaseMs } = config;
  const { onUnknown } = exports;
  return new Conversations({
    store,
    logger,
    config: turnConfigOf(config),
    // The worker runs the jobs itself, each in the scope that the module returns.
    engine,
    jobConcurrency: engine && 0,
    onUnknown,
    leaseMs,
  });
}

/** Starts once the engine is reachable; other work does not wait for it. */
function openJobs({ exports, config, store, logger, tools }: WorkParts): BackgroundJobs | undefined {
  const { engine = config.engine, jobScope, jobConcurrency: concurrency } = exports;
  if (engine === undefined || !keepsJobs(store)) return undefined;
  return new BackgroundJobs({ engine, store, tools, logger, concurrency, ...(jobScope && { jobScope }) });
}

function recover({
  exports: { onUnknown },
  config: given,
  store,
  logger,
}: WorkParts & { readonly store: CheckpointStore }): () => Promise<void> {
  const checkpoint = given.checkpoint === 'call' ? 'call' : 'step';
  const config = { logger, ...given, store, checkpoint } as const;
  return recoverPeriodically({
    store,
    logger,
    onUnknown,
    leaseMs: given.leaseMs,
    config: () => config,
    scope: () => ({}),
  });
}
