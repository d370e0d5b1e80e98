import type { InjectionToken, ModuleMetadata, OptionalFactoryDependency, Type } from '@nestjs/common';
import { type CallScope, SCOPE, SCOPE_RULES } from '../../core/contract/call.js';
import type { Job } from '../../core/contract/job-engine.js';
import { MODEL, PROVIDER } from '../../core/contract/llm-provider.js';
import type { RunState } from '../../core/contract/run-state.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import type { ToolContextData } from '../../core/contract/tool-context.js';
import {
  type AuthorFault,
  checkOptions,
  type InvalidOption,
  InvalidOptionsError,
  invalidOptions,
  refuseOptions,
  ToolDeclarationError,
} from '../../core/errors/author-fault.js';
import { isRecord } from '../../core/kernel/json.js';
import {
  ANY_VALUE,
  BOOLEAN,
  COUNT,
  COUNT_LIMIT,
  either,
  FILLED_TEXT,
  FUNCTION,
  instanceOf,
  JSON_VALUE,
  LIST,
  MILLISECONDS,
  type OptionRule,
  objectOf,
  oneOf,
  optionTable,
  protecting,
  RECORD,
  type RulesOf,
  TEXT,
  WHOLE,
} from '../../core/kernel/options.js';
import type { RegisteredTool } from '../../run/call/registration.js';
import { REGISTRY_RULES, ToolRegistry, type ToolRegistryOptions } from '../../run/call/tool-registry.js';
import type {
  ConversationsConfig,
  ConversationsOptions,
} from '../../run/conversation/conversations-options.js';
import { LOOP_ALIASES, LOOP_RULES, type ToolLoopConfig } from '../../run/loop/options.js';
import type { ChatOptions } from '../chat/create-chat-handler.js';
import type { ListenOptions } from '../inspector/create-inspector.js';
import type { InspectorOptions } from '../inspector/options.js';

/**
 * Options of `ToolwrightModule`: those of the registry and of the loop. `provider` and `model` may be left out
 * where the application runs no loop of its own, or gives them with each run.
 */
export interface ToolwrightModuleOptions
  extends ToolRegistryOptions,
    Partial<Omit<ToolLoopConfig, 'tools' | 'signal' | keyof ToolRegistryOptions>> {
  /** A generated description that no longer fits its class is a mistake; default: a warning. */
  readonly strict?: boolean;
  /** Tools beside those of the providers. */
  readonly tools?: readonly RegisteredTool[];
  /** What the tools of a run find in `context.data`, from the request that started it. */
  readonly data?: (request: never) => ToolContextData;
  /** On whose behalf a request's runs take place: any JSON. A run goes on for its own owner only. */
  readonly owner?: (request: never) => unknown;
  /** Whether a request sees a tool, and may call it: only where this says `true`. */
  readonly visible?: (request: never, tool: ToolDefinition) => boolean | Promise<boolean>;
  /** Whether a request may answer a run of another owner: only where this says `true`. Needs `owner` and `scopeOf`. */
  readonly mayAnswer?: (request: never, run: OwnedRun) => boolean | Promise<boolean>;
  /** In what scope a run goes on that somebody else answered: its owner's, with a request that stands for the owner. */
  readonly scopeOf?: (owner: never) => OwnerScope | Promise<OwnerScope>;
  /**
   * In what scope a job runs that a call has started on `engine`, with a request that stands for its owner; channel,
   * chat, conversation and owner are the job's own. Default: what `scopeOf` says of its owner.
   */
  readonly jobScope?: (job: Job) => OwnerScope | Promise<OwnerScope>;
  /** How the turns of `ToolwrightService.conversations` are taken. */
  readonly conversations?: ConversationSettings;
  /** How `ToolwrightService.chat` answers. */
  readonly chat?: ChatSettings;
  /**
   * `true`: from its start on, the application takes turns of conversations, runs jobs and goes on with runs whose
   * process died; `false`: it does none of this, because a `toolwright worker` does. Default: it takes turns as soon as
   * `ToolwrightService.conversations` is used.
   */
  readonly worker?: boolean;
  /**
   * `true`: while the application runs, an inspector on a port of its own, for this machine alone; its address goes to
   * the standard error output. Only where `NODE_ENV` is `development` or `test`, unless `allowInProduction` is said.
   */
  readonly inspector?: boolean | InspectorSettings;
  /**
   * `true`: the model is told the message of every error. Default: of an `HttpException` below 500, of
   * `RetryToolCall` and of the framework's own errors; of any other only a reference that stands in the log beside it.
   */
  readonly exposeErrors?: boolean;
  /**
   * Milliseconds that a shutdown waits for what runs before it aborts running calls, and leaves turns and kept runs to
   * other processes; default 10,000.
   */
  readonly shutdownTimeoutMs?: number;
}

/** How the inspector of an application is served. */
interface InspectorSettings
  extends Pick<
      InspectorOptions,
      'token' | 'allowedHosts' | 'allowInProduction' | 'tests' | 'recordings' | 'answeredBy'
    >,
    ListenOptions {}

/** What of the options of `Conversations` a Nest application says. */
interface ConversationSettings
  extends Pick<ConversationsOptions, 'maxConcurrency' | 'pollMs'>,
    Pick<ConversationsConfig, 'systemPrompt'> {}

const { tools: _1, signal: _2, provider: _3, model: _4, ...LOOP } = LOOP_RULES;

/** How chats of an application are answered. Whose they are, `owner` of the module's options says. */
export type ChatSettings = Omit<ChatOptions, 'authenticate' | 'mayAnswer' | 'logger'>;

export const CHAT_RULES: RulesOf<ChatSettings> = {
  protocol: oneOf('ui-messages', 'ag-ui', 'events'),
  abortOnLeave: BOOLEAN,
  describeError: FUNCTION,
  maxRequestBytes: COUNT,
  heartbeatMs: MILLISECONDS,
};

export const MAY_ANSWER = protecting({ ...FUNCTION, fix: '(request, run) => true or false' });

/** What each of them may be. */
const MODULE_RULES: RulesOf<ToolwrightModuleOptions> = {
  ...REGISTRY_RULES,
  ...LOOP,
  provider: PROVIDER,
  model: MODEL,
  strict: BOOLEAN,
  tools: { ...LIST, fix: '[calculateTool, …]' },
  data: { ...FUNCTION, fix: '(request) => ({ userId: request.user.id })' },
  owner: protecting({ ...FUNCTION, fix: '(request) => ({ user: request.user.id })' }),
  visible: protecting({ ...FUNCTION, fix: '(request, tool) => true or false' }),
  mayAnswer: MAY_ANSWER,
  scopeOf: protecting({ ...FUNCTION, fix: '(owner) => ({ request: { user: owner.user } })' }),
  jobScope: protecting({ ...FUNCTION, fix: '(job) => ({ request: { user: job.scope.owner } })' }),
  conversations: objectOf<ConversationSettings>(
    { systemPrompt: TEXT, maxConcurrency: COUNT_LIMIT, pollMs: MILLISECONDS },
    { fix: "{ systemPrompt: 'Be brief.' }" },
  ),
  chat: objectOf<ChatSettings>(CHAT_RULES, { fix: "{ protocol: 'ag-ui' }" }),
  worker: BOOLEAN,
  inspector: either(
    BOOLEAN,
    objectOf<InspectorSettings>(
      {
        port: WHOLE,
        host: FILLED_TEXT,
        token: protecting(TEXT),
        allowedHosts: protecting(LIST),
        allowInProduction: protecting(BOOLEAN),
        tests: RECORD,
        recordings: FILLED_TEXT,
        answeredBy: protecting(JSON_VALUE),
      },
      { fix: 'true, or { port: 4711 }' },
    ),
  ),
  exposeErrors: BOOLEAN,
  shutdownTimeoutMs: {
    accepts: (value) => typeof value === 'number' && value >= 0,
    fix: 'a number, 0 or more, or Infinity',
  },
};

/** A suspended run, as far as it matters who may answer it: whose it is, and what it waits for. */
export type OwnedRun = Pick<RunState, 'owner' | 'pending'> & Partial<RunState>;

/** The scope of an owner whose run somebody else has answered. */
export interface OwnerScope extends Omit<CallScope, 'container'> {
  /** What guards and request-scoped providers find: `{ user }`, as after the owner's login. Default: no request. */
  readonly request?: object;
}

/** Makes the options: a provider for `useClass` and `useExisting`. */
export interface ToolwrightOptionsFactory {
  createToolwrightOptions(): ToolwrightModuleOptions | Promise<ToolwrightModuleOptions>;
}

/** Options that come from other providers: exactly one of `useFactory`, `useClass`, `useExisting`. */
export interface ToolwrightModuleAsyncOptions extends Pick<ModuleMetadata, 'imports'> {
  // biome-ignore lint/suspicious/noExplicitAny: a factory names the types of what it injects
  readonly useFactory?: (...injected: any[]) => ToolwrightModuleOptions | Promise<ToolwrightModuleOptions>;
  readonly inject?: (InjectionToken | OptionalFactoryDependency)[];
  readonly useClass?: Type<ToolwrightOptionsFactory>;
  readonly useExisting?: Type<ToolwrightOptionsFactory>;
}

const OPTIONS = optionTable<ToolwrightModuleOptions>('ToolwrightModule', MODULE_RULES, {
  ...LOOP_ALIASES,
  toolsets: 'providers: [ShopTools] of the module',
  isGlobal: 'nothing: it is global',
  config: 'its options here: forRoot({ provider, model })',
  signal: 'signal in the options of a run',
  mcp: 'mcp beside useFactory: forRootAsync({ useFactory, mcp: { path } })',
});

const ASYNC_OPTIONS = optionTable<ToolwrightModuleAsyncOptions & { readonly mcp?: object }>(
  'ToolwrightModule.forRootAsync',
  {
    imports: LIST,
    mcp: RECORD,
    useFactory: FUNCTION,
    inject: LIST,
    useClass: FUNCTION,
    useExisting: ANY_VALUE,
  },
);

/**
 * The options, which JavaScript and factories may have got wrong.
 *
 * @throws InvalidOptionsError with what is wrong; Nest tells of it while the application is created.
 */
export function checkModuleOptions(given: unknown): ToolwrightModuleOptions {
  if (!isRecord(given)) {
    const problem = `its options are ${String(given)}: where a factory makes them, it returns nothing`;
    const fix = 'useFactory: () => ({ provider, model }), or forRoot({ provider, model })';
    throw new InvalidOptionsError([{ where: OPTIONS.of, option: '', problem, fix }]);
  }
  const faults = invalidOptions(given, OPTIONS);
  const { mayAnswer, owner, scopeOf } = given as ToolwrightModuleOptions;
  const lacks = mayAnswer !== undefined && (owner === undefined || scopeOf === undefined);
  refuseOptions([...faults, ...(lacks ? [ANSWERS_FOR_NOBODY] : []), ...idleFaults(given)]);
  return given;
}

/** What is said of a store that is not there. */
function idleFaults(options: ToolwrightModuleOptions): readonly InvalidOption[] {
  const { worker, checkpoint = 'suspend', leaseMs, store } = options;
  if (store !== undefined) return [];
  const needs = [
    [worker === true, 'worker', 'a worker needs the store in which conversations, jobs and runs are kept'],
    [checkpoint !== 'suspend', 'checkpoint', 'checkpoint stores the steps of runs, and no store is set'],
    [leaseMs !== undefined, 'leaseMs', 'leaseMs is for stored runs and conversations, and no store is set'],
  ] as const;
  const fix = "store: new SqliteRunStore({ path: 'runs.sqlite' })";
  return needs.flatMap(([isSet, option, problem]) =>
    isSet ? [{ where: OPTIONS.of, option, problem, fix }] : [],
  );
}

export const ANSWERS_FOR_NOBODY: InvalidOption = {
  where: 'ToolwrightModule',
  option: 'mayAnswer',
  problem:
    'mayAnswer needs owner, which says whose a run is, and scopeOf, which says in what scope it goes on',
  fix: 'owner: (request) => ({ user: request.user.id }), scopeOf: ({ user }) => ({ request: { user } })',
};

/** Where the options come from: exactly one of the ways to make them; given as it is. */
export function checkAsyncOptions<Options extends ToolwrightModuleAsyncOptions>(given: Options): Options {
  checkOptions(given, ASYNC_OPTIONS);
  const ways = [given.useFactory, given.useClass, given.useExisting].filter((way) => way !== undefined);
  refuseOptions(ways.length === 1 ? [] : [ONE_WAY]);
  return given;
}

const ONE_WAY: InvalidOption = {
  where: 'ToolwrightModule.forRootAsync',
  option: 'useFactory',
  problem: 'it needs exactly one of useFactory, useClass and useExisting',
  fix: 'useFactory: (config) => ({ provider, model: config.model }), inject: [Config]',
};

/** What a class given as `useClass` or `useExisting` makes. */
export function createdOptions(factory: Partial<ToolwrightOptionsFactory>): unknown {
  if (typeof factory?.createToolwrightOptions === 'function') return factory.createToolwrightOptions();
  const fault: InvalidOption = {
    where: ASYNC_OPTIONS.of,
    option: 'useClass',
    problem: `${factory?.constructor.name ?? 'what was injected'} has no method createToolwrightOptions`,
    fix: 'a class with createToolwrightOptions() { return { provider, model }; }',
  };
  throw new InvalidOptionsError([fault]);
}

/**
 * The tools of a feature.
 *
 * @throws ToolDeclarationError where they are no list.
 */
export function checkFeature<Tool>(tools: readonly Tool[]): readonly Tool[] {
  if (Array.isArray(tools)) return tools;
  const fault: AuthorFault = {
    where: 'ToolwrightModule.forFeature',
    problem: `it was given ${tools === undefined ? 'undefined' : `a ${typeof tools}`} instead of a list of tools`,
    causes: ['files import each other in a circle, so that what was named is not there yet'],
    fix: 'forFeature([OrderTools, calculateTool])',
  };
  throw new ToolDeclarationError([fault]);
}

/** The surroundings of a run in a Nest application, and its config. */
export interface RunOptions extends CallScope {
  /**
   * The request on whose behalf the run takes place: request-scoped providers are made for it, and guards find
   * it. Default: the HTTP request whose handler calls.
   */
  readonly request?: object;
  /** What the run has otherwise than the module's options say; `tools` is a view of the application's registry. */
  readonly config?: RunConfig;
}

/** The config of the loop, of which the module's options give the rest. */
export type RunConfig = Partial<Omit<ToolLoopConfig, 'tools'>> & { readonly tools?: ToolRegistry };

/** The same for a run that goes on. */
export interface AnswerOptions extends RunOptions {
  /** Who answered, for the record; default: the owner that the request stands for. */
  readonly answeredBy?: unknown;
}

const REQUEST: OptionRule = {
  accepts: (value) => typeof value === 'object' && value !== null,
  fix: 'the request: an object',
};

const TOOLS = instanceOf(ToolRegistry, 'a view of the application’s registry: registry.view({ … })');

const RULES = {
  ...SCOPE_RULES,
  request: REQUEST,
  // The module's options give the rest.
  config: objectOf<RunConfig>(
    { ...LOOP_RULES, provider: PROVIDER, model: MODEL, tools: TOOLS },
    { fix: "{ model: 'gpt-5', … }", meant: LOOP_ALIASES },
  ),
};

const MEANT = {
  ...SCOPE.meant,
  ...Object.fromEntries(Object.keys(LOOP_RULES).map((name) => [name, `config: { ${name}: … }`])),
};

export const RUN_OPTIONS = optionTable<RunOptions>('a run of ToolwrightService', RULES, MEANT);

const ANSWER_OPTIONS = optionTable<AnswerOptions>(RUN_OPTIONS.of, { ...RULES, answeredBy: ANY_VALUE }, MEANT);

/** Who answers, apart from what the run brings along. */
export function readAnswerOptions(
  options: AnswerOptions,
): Pick<AnswerOptions, 'answeredBy'> & { readonly asking: RunOptions } {
  checkOptions(options, ANSWER_OPTIONS);
  const { answeredBy, ...asking } = options;
  return { answeredBy, asking };
}
