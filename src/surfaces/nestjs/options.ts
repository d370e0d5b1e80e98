import type { InjectionToken, ModuleMetadata, OptionalFactoryDependency, Type } from '@nestjs/common';
import { type CallScope } from '../../core/contract/call.js';
import type { Job } from '../../core/contract/job-engine.js';
import { MODEL, PROVIDER } from '../../core/contract/llm-provider.js';
import type { RunState } from '../../core/contract/run-state.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import type { ToolContextData } from '../../core/contract/tool-context.js';
import {
  type InvalidOption,
  InvalidOptionsError,
  invalidOptions,
  refuseOptions,
} from '../../core/errors/author-fault.js';
import { isObject, isRecord } from '../../core/kernel/json.js';
import {
  BOOLEAN,
  COUNT_LIMIT,
  either,
  FILLED_TEXT,
  FUNCTION,
  JSON_VALUE,
  LIST,
  MILLISECONDS,
  type OptionRule,
  objectOf,
  optionTable,
  protecting,
  RECORD,
  type RulesOf,
  TEXT,
  WHOLE,
} from '../../core/kernel/options.js';
import {
  REGISTRY_RULES,
  type RegisteredTool,
  ToolRegistry,
  type ToolRegistryOptions,
} from '../../run/call/tool-registry.js';
import {
  type ConversationsConfig,
  type ConversationsOptions,
} from '../../run/conversation/conversations-options.js';
import { LOOP_ALIASES, LOOP_RULES, type ToolLoopConfig } from '../../run/loop/options.js';
import { CHAT_RULES, type ChatOptions } from '../chat/create-chat-handler.js';
import type { ListenOptions } from '../inspector/create-inspector.js';
import type { InspectorOptions } from '../inspector/options.js';

/**
 * Options of `ToolwrightModule`: those of the registry and of the loop. `provider` and `model` may be omitted if the
 * application runs no loop, or passes them with each run.
 */
export interface ToolwrightModuleOptions
  extends ToolRegistryOptions,
    Partial<Omit<ToolLoopConfig, 'tools' | 'signal' | keyof ToolRegistryOptions>> {
  /** Makes a generated description that no longer matches its class an error; default: a warning. */
  readonly strict?: boolean;
  /** Tools in addition to those of the providers. */
  readonly tools?: readonly RegisteredTool[];
  /** Returns `context.data` for the runs of a request. */
  readonly data?: (request: never) => ToolContextData;
  /** Returns the owner of a request's runs: any JSON. Only its owner can continue a run. */
  readonly owner?: (request: never) => unknown;
  /** Whether a request sees a tool and may call it. Only `true` permits it. */
  readonly visible?: (request: never, tool: ToolDefinition) => boolean | Promise<boolean>;
  /** Whether a request may answer a run of another owner. Only `true` permits it. Needs `owner` and `scopeOf`. */
  readonly mayAnswer?: (request: never, run: OwnedRun) => boolean | Promise<boolean>;
  /** The owner's scope, in which a run continues after another user's answer. */
  readonly scopeOf?: (owner: never) => OwnerScope | Promise<OwnerScope>;
  /**
   * The scope of a job, with a request that stands for its owner. Channel, chat, conversation and owner are the job's
   * own. Default: `scopeOf` for its owner.
   */
  readonly jobScope?: (job: Job) => OwnerScope | Promise<OwnerScope>;
  /** Settings of `ToolwrightService.conversations`. */
  readonly conversations?: ConversationSettings;
  /** Settings of `ToolwrightService.chat`. */
  readonly chat?: ChatSettings;
  /**
   * `true`: takes turns, runs jobs and recovers runs from its start. `false`: it does none of this, because a
   * `toolwright worker` does. Default: once `ToolwrightService.conversations` is used.
   */
  readonly worker?: boolean;
  /**
   * `true`: serves an inspector for this machine on its own port. Only if `NODE_ENV` is `development` or `test`,
   * unless `allowInProduction` is set.
   */
  readonly inspector?: boolean | InspectorSettings;
  /**
   * `true`: the model receives the message of every error. Default: only messages that are meant for it, otherwise a
   * reference to the log. Messages of an `HttpException` below 500, of `RetryToolCall` and of the
   * framework's own errors are meant for it.
   */
  readonly exposeErrors?: boolean;
  /**
   * Milliseconds that a shutdown waits for running work; default 10,000. Then it aborts running calls, and leaves turns
   * and stored runs to other processes.
   */
  readonly shutdownTimeoutMs?: number;
}

/** Settings of an application's inspector. */
export interface InspectorSettings
  extends Pick<
      InspectorOptions,
      'token' | 'allowedHosts' | 'allowInProduction' | 'tests' | 'recordings' | 'answeredBy'
    >,
    ListenOptions {}

/** The options of `Conversations` that a Nest application may set. */
export interface ConversationSettings
  extends Pick<ConversationsOptions, 'maxConcurrency' | 'pollMs'>,
    Pick<ConversationsConfig, 'systemPrompt'> {}

const { tools: _1, signal: _2, provider: _3, model: _4, ...LOOP } = LOOP_RULES;

/** Settings of an application's chats. Their owner comes from `owner` of the module's options. */
export interface ChatSettings extends Omit<ChatOptions, 'authenticate' | 'mayAnswer' | 'logger'> {}

const { authenticate: _5, logger: _6, mayAnswer: _7, ...CHAT } = CHAT_RULES;

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
  mayAnswer: CHAT_RULES.mayAnswer,
  scopeOf: protecting({ ...FUNCTION, fix: '(owner) => ({ request: { user: owner.user } })' }),
  jobScope: protecting({ ...FUNCTION, fix: '(job) => ({ request: { user: job.scope.owner } })' }),
  conversations: objectOf<ConversationSettings>(
    { systemPrompt: TEXT, maxConcurrency: COUNT_LIMIT, pollMs: MILLISECONDS },
    { fix: "{ systemPrompt: 'Be brief.' }" },
  ),
  chat: objectOf<ChatSettings>(CHAT, { fix: "{ protocol: 'ag-ui' }" }),
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

/** The owner and the pending calls of a suspended run, to decide who may answer it. */
export type OwnedRun = Pick<RunState, 'owner' | 'pending'> & Partial<RunState>;

/** The scope of an owner whose run another user has answered. */
export interface OwnerScope extends Omit<CallScope, 'container'> {
  /** The request for guards and request-scoped providers: `{ user }`, as after the owner's login. Default: none. */
  readonly request?: object;
}

/** Creates the options: a provider for `useClass` and `useExisting`. */
export interface ToolwrightOptionsFactory {
  createToolwrightOptions(): ToolwrightModuleOptions | Promise<ToolwrightModuleOptions>;
}

/** Options from other providers: exactly one of `useFactory`, `useClass`, `useExisting`. */
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
  isGlobal: 'nothing: the module is global',
  config: 'set its options here: forRoot({ provider, model })',
  signal: 'signal in the options of a run',
  mcp: 'mcp beside useFactory: forRootAsync({ useFactory, mcp: { path } })',
});

/**
 * Validates the options, which may come from JavaScript or a factory. `scopeOf` of the result throws if it returns no
 * scope.
 *
 * @throws InvalidOptionsError with all faults; Nest reports it while the application is created.
 */
export function checkModuleOptions(given: unknown): ToolwrightModuleOptions {
  if (!isRecord(given)) {
    const problem = `its options are ${String(given)}: a factory, if there is one, returned nothing`;
    const fix = 'useFactory: () => ({ provider, model }), or forRoot({ provider, model })';
    throw new InvalidOptionsError([{ where: OPTIONS.of, option: '', problem, fix }]);
  }
  const faults = [...invalidOptions(given, OPTIONS)];
  const options: ToolwrightModuleOptions = given;
  const { mayAnswer, owner, scopeOf, worker, checkpoint = 'suspend', leaseMs, store } = options;
  if (mayAnswer !== undefined && (owner === undefined || scopeOf === undefined))
    faults.push(ANSWERS_FOR_NOBODY);
  const needStore = [
    [worker === true, 'worker', 'a worker needs the store of the conversations, jobs and runs'],
    [checkpoint !== 'suspend', 'checkpoint', 'checkpoint stores the steps of runs, but no store is set'],
    [leaseMs !== undefined, 'leaseMs', 'leaseMs is for stored runs and conversations, but no store is set'],
  ] as const;
  const fix = "store: new SqliteRunStore({ path: 'runs.sqlite' })";
  for (const [isSet, option, problem] of needStore)
    if (isSet && store === undefined) faults.push({ where: OPTIONS.of, option, problem, fix });
  refuseOptions(faults);
  if (scopeOf === undefined) return given;
  return { ...given, scopeOf: async (owner: never) => knownScope(await scopeOf(owner)) };
}

/** The scope of an owner. A lookup that finds no user often returns `undefined` or `null`. */
function knownScope(scope: unknown): OwnerScope {
  if (isRecord(scope)) return scope;
  const given = scope === null ? 'null' : `a value of type ${typeof scope}`;
  throw new TypeError(
    `scopeOf of ToolwrightModule returned ${given} for the owner of a run; it has to return a scope: ({ user }) => ({ request: { user } })`,
  );
}

export const NO_OWNER: InvalidOption = {
  where: 'ToolwrightService.chat',
  option: 'owner',
  problem: 'the option owner is missing, so any user could read every chat',
  fix: 'ToolwrightModule.forRoot({ owner: (request) => ({ user: request.user.id }) })',
};

export const NO_CONVERSATIONS: InvalidOption = {
  where: 'ToolwrightService.conversations',
  option: 'store',
  problem: 'there is no store for conversations',
  fix: 'ToolwrightModule.forRoot({ store: new SqliteRunStore({ path }) })',
};

export const ANSWERS_FOR_NOBODY: InvalidOption = {
  where: 'ToolwrightModule',
  option: 'mayAnswer',
  problem:
    'mayAnswer needs owner, which returns the owner of a run, and scopeOf, which returns the scope in which it continues',
  fix: 'owner: (request) => ({ user: request.user.id }), scopeOf: ({ user }) => ({ request: { user } })',
};

/** Scope and config of a run in a Nest application. */
export interface RunOptions extends CallScope {
  /**
   * The request that the run belongs to, for guards and request-scoped providers. Default: the HTTP request whose
   * handler makes the call.
   */
  readonly request?: object;
  /** Overrides of the module's options for this run. `tools` is a view of the application's registry. */
  readonly config?: RunConfig;
}

/** The config of the loop; the module's options are the defaults. */
export type RunConfig = Partial<Omit<ToolLoopConfig, 'tools'>> & { readonly tools?: ToolRegistry };

/** Options for a run that is resumed. */
export interface AnswerOptions extends RunOptions {
  /** Who answered, for the record; default: the owner of the request. */
  readonly answeredBy?: unknown;
}

/** A request or a response of any platform. */
export const PLATFORM_OBJECT: OptionRule = {
  accepts: isObject,
  fix: 'the request: an object',
};
