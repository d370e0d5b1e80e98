import { AsyncLocalStorage } from 'node:async_hooks';
import type { ServerResponse } from 'node:http';
import { type DynamicModule, Inject, type Type } from '@nestjs/common';
import { ApplicationConfig, DiscoveryService, ModuleRef, ModulesContainer, NestFactory } from '@nestjs/core';
import type { PolicyDecision, PolicyRequest } from '../../core/contract/call.js';
import type { ClassType } from '../../core/contract/declaration.js';
import type { Job, JobEngine } from '../../core/contract/job-engine.js';
import { keepsJobs } from '../../core/contract/job-store.js';
import type { Logger } from '../../core/contract/ports.js';
import { CHECKPOINT_STORE, type CheckpointStore } from '../../core/contract/run-checkpoint.js';
import { RUN_STORE } from '../../core/contract/run-state.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import {
  type AuthorFault,
  checkOptions,
  InvalidOptionsError,
  refuseOptions,
  ToolDeclarationError,
  warnAuthor,
} from '../../core/errors/author-fault.js';
import { andThen } from '../../core/kernel/async.js';
import { cached } from '../../core/kernel/cached.js';
import { filterFields, isObject, withoutUndefined } from '../../core/kernel/json.js';
import {
  type NodeRequest,
  respond,
  toRequest,
  type WrappedRequest,
  type WrappedResponse,
} from '../../core/kernel/node-http.js';
import { optionTable } from '../../core/kernel/options.js';
import {
  type DeclaredKind,
  lineage,
  loadedToolClasses,
  toolMethods,
} from '../../core/metadata/class-record.js';
import type { ToolEntry } from '../../run/call/plan.js';
import { createRedaction } from '../../run/call/redact.js';
import { TaskQueue } from '../../run/call/task-queue.js';
import {
  REGISTRY_RULES,
  type RegisteredTool,
  readTool,
  SERVED_KINDS,
  ToolRegistry,
  WritableToolTable,
} from '../../run/call/tool-registry.js';
import { Conversations } from '../../run/conversation/conversations.js';
import {
  type ConversationsOptions,
  type ConversationsStore,
  keepsConversations,
  type TurnOwner,
  turnConfigOf,
} from '../../run/conversation/conversations-options.js';
import { BackgroundJobs, jobWork } from '../../run/jobs/run-jobs.js';
import { type RunRecoveryOptions, recoverPeriodically } from '../../run/loop/stored-run.js';
import { boundMethodOf, methodPlace } from '../../tools/discovery/bound-method.js';
import { toolOfMethod } from '../../tools/discovery/discover-tools.js';
import { NAMING } from '../../tools/discovery/plan-toolset.js';
import { CHAT_RULES, createChatHandler } from '../chat/create-chat-handler.js';
import type { Inspector } from '../inspector/create-inspector.js';
import { type InspectorOptions, mayInspect } from '../inspector/options.js';
import { ApplicationRuns } from './application-runs.js';
import { asNestResponse, RequestContainer, RequestContexts, RunningCalls } from './calls.js';
import {
  type CallTarget,
  type PlannedHandler,
  planProvider,
  providerTarget,
  RegisteredTools,
  registeredTarget,
} from './handlers.js';
import { hostOf, type InstanceWrapper, injectedParameters, isMade, type ToolHost } from './nest-internals.js';
import {
  ANSWERS_FOR_NOBODY,
  type ChatSettings,
  NO_CONVERSATIONS,
  NO_OWNER,
  type OwnerScope,
  PLATFORM_OBJECT,
  type ToolwrightModuleOptions,
} from './options.js';
import {
  CallPipeline,
  createErrorDescriber,
  Enhancers,
  nestLogger,
  ToolCaller,
  ToolVisibility,
} from './pipeline.js';

/** Set while an application is started for a command, and must not take work by itself. */
const heldBack = new AsyncLocalStorage<true>();

/** What the work of an application, its chats and its inspector share. */
interface SharedParts {
  readonly options: ToolwrightModuleOptions;
  readonly registry: ToolRegistry;
  readonly runs: ApplicationRuns;
  readonly running: RunningCalls;
  readonly enhancers: Enhancers;
}

/**
 * An application's chats, and its work that other processes may share: turns of conversations, jobs, and runs of
 * crashed processes.
 */
export class ApplicationFleet {
  readonly #parts: SharedParts;
  readonly #ownerScopes = new WeakMap<TurnOwner, Promise<OwnerScope>>();
  #conversations: Conversations | undefined;
  /** Conversations that take turns, if the application's own do not. */
  #turns: Conversations | undefined;
  #stopRecovery: (() => Promise<void>) | undefined;
  #jobs: BackgroundJobs | undefined;
  #logger: Logger;

  constructor(parts: SharedParts) {
    this.#parts = parts;
    this.#logger = parts.options.logger ?? nestLogger();
  }

  /**
   * The conversations in the module's store.
   *
   * @throws InvalidOptionsError (521) if there is no store, or it cannot store conversations.
   */
  get conversations(): Conversations {
    const { store } = this.#parts.options;
    if (!keepsConversations(store)) throw new InvalidOptionsError([NO_CONVERSATIONS]);
    this.#conversations ??= this.#open(store, { takesTurns: this.#parts.options.worker !== false });
    return this.#conversations;
  }

  get engine(): JobEngine | undefined {
    return this.#parts.options.engine;
  }

  /** Starts working if the options request it. */
  begin(): void {
    if (this.#parts.options.worker === true && !heldBack.getStore()) this.work();
  }

  /**
   * Takes turns, runs jobs once the engine is reachable, and recovers runs, as far as the store supports it. Returns
   * what it does of these. `logger` is used if the application has no logger.
   */
  work(logger?: Logger): readonly string[] {
    const { options, registry, runs, running } = this.#parts;
    const { store, engine, worker, leaseMs, logger: own } = options;
    this.#logger = own ?? logger ?? this.#logger;
    const works: string[] = [];
    if (keepsConversations(store)) {
      this.#turns ??= worker === false ? this.#open(store, { takesTurns: true }) : this.conversations;
      works.push('conversations');
    }
    if (engine !== undefined && keepsJobs(store)) {
      const { jobScope = ({ scope }: Job) => this.#scopeOfOwner(scope.owner) } = options;
      this.#jobs ??= new BackgroundJobs({
        engine,
        store,
        logger: this.#logger,
        tools: registry,
        jobScope: async (job) => runs.scopeApart(await jobScope(job)),
      });
      works.push(jobWork(registry.tools()));
    }
    if (CHECKPOINT_STORE.accepts(store)) {
      this.#stopRecovery ??= recoverPeriodically({
        store: store as CheckpointStore,
        left: running.leaving,
        logger: this.#logger,
        leaseMs,
        ...this.recovery,
      });
      works.push('runs');
    }
    return works;
  }

  /**
   * Takes no new work and waits for running work. After `limitMs`, turns and jobs are left to other processes, and
   * everything else that still runs is aborted.
   */
  async end(limitMs: number): Promise<void> {
    const { running } = this.#parts;
    running.leaving.addEventListener('abort', () => this.#jobs?.leave());
    const closed = Promise.all([
      this.#conversations?.close({ timeoutMs: limitMs }),
      this.#turns?.close({ timeoutMs: limitMs }),
      this.#stopRecovery?.(),
      this.#jobs?.close(),
    ]);
    running.track(closed).catch(() => {});
    await running.end(limitMs);
  }

  #open(store: ConversationsStore, given: Pick<ConversationsOptions, 'takesTurns'>): Conversations {
    const { options, runs } = this.#parts;
    const { conversations: { systemPrompt, ...settings } = {}, leaseMs, engine } = options;
    const prompt = withoutUndefined({ systemPrompt });
    return new Conversations({
      store,
      logger: this.#logger,
      ...given,
      ...settings,
      leaseMs,
      // The application runs its jobs itself, each in the scope that `jobScope` returns.
      engine,
      jobConcurrency: engine && 0,
      config: async (turn) => {
        const { config } = await runs.apart(await this.#scopeOfTurn(turn));
        return { ...turnConfigOf(config), ...prompt };
      },
      scope: async (turn) => (await runs.apart(await this.#scopeOfTurn(turn))).scope,
    });
  }

  /** The config and scope of runs without a holder: those of their owners. */
  get recovery(): Pick<RunRecoveryOptions, 'config' | 'scope'> {
    const { runs } = this.#parts;
    return {
      config: async ({ state }) => {
        const { config } = await runs.apart(await this.#scopeOfOwner(state.owner));
        return { ...config, checkpoint: config.checkpoint === 'call' ? 'call' : 'step' };
      },
      scope: async ({ state }) => runs.scopeApart(await this.#scopeOfOwner(state.owner)),
    };
  }

  /** Answers a request of a chat, whose owner is that of the request. */
  async chat(request: object, given: ChatRequestOptions): Promise<Response | undefined> {
    checkOptions(given, REQUEST_OPTIONS);
    const { options, runs } = this.#parts;
    const { protocol = options.chat?.protocol, mayAnswer = options.mayAnswer, response } = given;
    if (options.owner === undefined) refuseOptions([NO_OWNER]);
    if (mayAnswer !== undefined && options.scopeOf === undefined) refuseOptions([ANSWERS_FOR_NOBODY]);
    const asked = toRequest(request as NodeRequest | WrappedRequest);
    const { owner } = runs.scopeOf(request, {});
    const handler = createChatHandler({
      ...options.chat,
      protocol,
      logger: this.#logger,
      conversations: this.conversations,
      authenticate: () => owner,
      mayAnswer: (_asked, run) => mayAnswer?.(request as never, run) ?? false,
    });
    if (response === undefined) return asNestResponse(await handler.fetch(asked));
    // A handler that injected the response must write it, in every version of Nest.
    const answer = () => handler.fetch(asked);
    await respond(request as NodeRequest, response as ServerResponse | WrappedResponse, answer);
    return undefined;
  }

  /** Called once per turn, so that the turn's tools and calls have the same request. */
  #scopeOfTurn(turn: TurnOwner): Promise<OwnerScope> {
    return cached(this.#ownerScopes, turn, ({ owner }) => {
      const scope = this.#scopeOfOwner(owner);
      // The turn asks again after a failure.
      scope.catch(() => this.#ownerScopes.delete(turn));
      return scope;
    });
  }

  async #scopeOfOwner(owner: unknown): Promise<OwnerScope> {
    const { scopeOf } = this.#parts.options;
    return owner === undefined || scopeOf === undefined ? {} : scopeOf(owner as never);
  }
}

/** Options to answer one request of a chat. */
export interface ChatRequestOptions
  extends Pick<ChatSettings, 'protocol'>,
    Pick<ToolwrightModuleOptions, 'mayAnswer'> {
  /** The response of Express, or the reply of Fastify. The answer is then written to it, and nothing is returned. */
  readonly response?: object;
}

const REQUEST_OPTIONS = optionTable<ChatRequestOptions>('ToolwrightService.chat', {
  protocol: CHAT_RULES.protocol,
  mayAnswer: CHAT_RULES.mayAnswer,
  response: { ...PLATFORM_OBJECT, fix: 'the response' },
});

/** Token of the checked options of an application's `ToolwrightModule`. */
export const MODULE_OPTIONS = Symbol('toolwright.module-options');

/** Injected by Nest. */
export class ApplicationParts {
  @Inject(MODULE_OPTIONS) readonly options!: ToolwrightModuleOptions;
  @Inject(TaskQueue) readonly tasks!: TaskQueue;
  @Inject(RequestContexts) readonly requests!: RequestContexts;
  @Inject(ModulesContainer) readonly modules!: ModulesContainer;
  @Inject(ApplicationConfig) readonly config!: ApplicationConfig;
  @Inject(DiscoveryService) readonly discovery!: DiscoveryService;
  @Inject(ModuleRef) readonly moduleRef!: ModuleRef;
}

/** What exists once per application: its tools, their caller, and its runs. */
export class Application {
  readonly tools: ApplicationTools;
  readonly runs: ApplicationRuns;
  readonly fleet: ApplicationFleet;
  readonly inspector: ApplicationInspector;
  readonly enhancers: Enhancers;

  constructor(@Inject(ApplicationParts) given: ApplicationParts) {
    const { options, tasks, requests, modules, config, moduleRef } = given;
    const running = new RunningCalls(tasks);
    const visibility = new ToolVisibility(options);
    const enhancers = new Enhancers(modules, config);
    this.enhancers = enhancers;
    const pipeline = new CallPipeline(
      enhancers,
      createErrorDescriber(options),
      createRedaction(options.redact),
    );
    const caller = new ToolCaller({ enhancers, requests, running, pipeline, visibility });
    this.tools = new ApplicationTools(given, caller);
    const { registry } = this.tools;
    this.runs = new ApplicationRuns({ options, registry, requests, running, modules: moduleRef, visibility });
    const parts = { options, registry, runs: this.runs, running, enhancers };
    this.fleet = new ApplicationFleet(parts);
    this.inspector = new ApplicationInspector(parts);
  }
}

/** The inspector of an application, if its options request one. */
class ApplicationInspector {
  readonly #parts: SharedParts;
  #inspector: Inspector | undefined;

  constructor(parts: SharedParts) {
    this.#parts = parts;
  }

  /** Starts the inspector unless it is forbidden: the same module runs in production. */
  async begin(): Promise<void> {
    const { inspector, logger = nestLogger() } = this.#parts.options;
    if (inspector === undefined || inspector === false || heldBack.getStore()) return;
    const { port, host, ...settings } = inspector === true ? {} : inspector;
    if (!mayInspect(settings)) {
      const place = process.env.NODE_ENV || 'not set';
      logger.warn(
        `The inspector is off, because NODE_ENV is ${place}: set NODE_ENV=development, or inspector: { allowInProduction: true }`,
      );
      return;
    }
    const { createInspector } = await import('../inspector/create-inspector.js');
    this.#inspector = createInspector(this.#parts.registry, { ...this.inspection(), ...settings });
    const { url } = await this.#inspector.listen({ port, host });
    // The URL grants access, so it is printed for the terminal and never logged.
    process.stderr.write(`Toolwright inspector: ${url}\n`);
  }

  async end(): Promise<void> {
    await this.#inspector?.close();
    this.#inspector = undefined;
  }

  /** Inspector options for this application. */
  inspection(): InspectorOptions {
    const { options, runs, enhancers } = this.#parts;
    const { provider, model, store, stateSecret, scopeOf, conversations } = options;
    return withoutUndefined<InspectorOptions>({
      provider,
      model,
      stateSecret,
      systemPrompt: conversations?.systemPrompt,
      // The module also accepts stores that have only jobs.
      store: RUN_STORE.accepts(store) ? (store as InspectorOptions['store']) : undefined,
      surroundings: (tool) => {
        const bound = boundMethodOf(tool);
        if (bound === undefined) return enhancers.namesAround([]);
        const handler: unknown = Reflect.get(bound.class.prototype, bound.key);
        return enhancers.namesAround([bound.class, ...(typeof handler === 'function' ? [handler] : [])]);
      },
      scope: ({ request, ...chosen }) => runs.scopeOf(request, chosen),
      scopeOf: scopeOf && (async (owner) => runs.scopeApart(await scopeOf(owner as never))),
    });
  }
}

/** The tools that were found, and all their faults. */
interface FoundTools {
  readonly handlers: (PlannedHandler & { readonly host: ToolHost })[];
  /** Tools without a class. */
  readonly given: RegisteredTool[];
  readonly faults: AuthorFault[];
  /** Probable mistakes that do not prevent the tools from working. */
  readonly warnings: AuthorFault[];
}

/** Finds the tools of the application's providers and controllers, each once. */
class ToolFinder {
  readonly #discovery: DiscoveryService;
  readonly #seen = new Set<InstanceWrapper>();
  /** Tool name → where it was declared. */
  readonly #places = new Map<string, string>();
  /** Classes of providers, and their base classes. */
  readonly #classes = new Set<ClassType>();

  /** Whether a generated description that no longer matches its class is a fault, not a warning. */
  readonly #isStrict: boolean;

  constructor(discovery: DiscoveryService, isStrict: boolean) {
    this.#discovery = discovery;
    this.#isStrict = isStrict;
  }

  /**
   * Tools that were not found before. The result of a factory is known only once it exists: `isEverythingMade` states
   * that it does, except for request-scoped providers and lazily loaded modules. Before that, all factories are
   * skipped, so that the order of the tools does not depend on their speed.
   */
  find(isEverythingMade: boolean): FoundTools {
    const found: FoundTools = { handlers: [], given: [], faults: [], warnings: [] };
    for (const wrapper of [...this.#discovery.getProviders(), ...this.#discovery.getControllers()]) {
      const isKnowable = isEverythingMade ? isMade(wrapper) : !(wrapper.isFactory || wrapper.async);
      if (isKnowable && !wrapper.isAlias && !this.#seen.has(wrapper)) this.#read(wrapper, found);
    }
    return found;
  }

  /** Checks tools without a class as the tools of providers are checked. */
  check(given: readonly RegisteredTool[], giver: string): readonly AuthorFault[] {
    return given.flatMap((tool) => {
      const read = readTool(tool);
      if ('faults' in read) return read.faults;
      return this.#claim(read.entry.offered.served?.kind ?? 'tool', read.name, giver);
    });
  }

  /** Loaded classes with tool methods that no provider has. */
  unprovided(): readonly ClassType[] {
    return loadedToolClasses().filter((declaring) => !this.#classes.has(declaring));
  }

  #read(wrapper: InstanceWrapper, found: FoundTools): void {
    this.#seen.add(wrapper);
    const { host: module, instance } = wrapper;
    if (module === undefined) return;
    if (instance instanceof FeatureTools) {
      found.given.push(...instance.tools);
      found.faults.push(...this.check(instance.tools, 'ToolwrightModule.forFeature'));
      return;
    }
    // A mock may have another shape than the class that its provider replaces.
    const toolClass = [ownClass(wrapper), wrapper.token].find(declaresTools);
    if (toolClass === undefined) return;
    for (const ancestor of lineage(toolClass))
      this.#classes.add((ancestor.prototype?.constructor ?? ancestor) as ClassType);
    const { handlers, faults, misfits, warnings } = planProvider(toolClass);
    found.handlers.push(...handlers.map((handler) => ({ ...handler, host: { wrapper, module } })));
    if (this.#isStrict) found.faults.push(...misfits);
    else found.warnings.push(...misfits);
    found.warnings.push(...warnings);
    found.faults.push(...faults, ...injectionFaults(toolClass, wrapper));
    for (const { planned } of handlers) {
      const place = `${methodPlace(planned)} (in ${module.name})`;
      found.faults.push(...this.#claim(planned.served?.kind ?? 'tool', planned.name, place));
    }
  }

  #claim(kind: DeclaredKind, name: string, place: string): readonly AuthorFault[] {
    const key = `${kind} ${name}`;
    const other = this.#places.get(key);
    this.#places.set(key, other ?? place);
    if (other === undefined) return [];
    return [
      {
        where: place,
        problem: `its name "${name}" is also the name of ${other}`,
        fix: `${NAMING[kind]} on one of them; if several modules need the class, provide it in one module and export it`,
      },
    ];
  }
}

/** Holds the tools without a class of a module: `forFeature` provides it for the discovery. */
export class FeatureTools {
  readonly tools: readonly RegisteredTool[];

  constructor(tools: readonly RegisteredTool[]) {
    this.tools = tools;
  }
}

/** The class of a provider, or of a factory's result, even behind a proxy. */
function ownClass(wrapper: InstanceWrapper): unknown {
  if (!wrapper.isNotMetatype) return wrapper.metatype;
  const { instance, token }: { readonly instance: unknown; readonly token: unknown } = wrapper;
  if (!isObject(instance)) return undefined;
  const prototype: unknown = Object.getPrototypeOf(instance);
  // If a class decorator returns a proxy, the prototype's constructor is the inner class.
  if (typeof token === 'function' && token.prototype === prototype) return token;
  return Object(prototype).constructor;
}

function declaresTools(candidate: unknown): candidate is ClassType {
  return typeof candidate === 'function' && toolMethods(candidate as ClassType).length > 0;
}

/**
 * Faults of a class whose constructor parameters Nest cannot inject. Without a class decorator, the compiler emits no
 * parameter types, and they would be `undefined`.
 */
function injectionFaults(toolClass: ClassType, wrapper: InstanceWrapper): readonly AuthorFault[] {
  if (wrapper.isNotMetatype || wrapper.metatype !== toolClass) return [];
  // Counts parameters without defaults; a class without a constructor inherits its base's.
  const wanted = lineage(toolClass).findLast(declaresConstructor)?.length ?? 0;
  if (injectedParameters(toolClass) >= wanted) return [];
  return [
    {
      where: toolClass.name,
      problem: `its constructor takes ${wanted === 1 ? 'a parameter' : `${wanted} parameters`}, and Nest cannot know what to inject, so that it would be undefined`,
      causes: [
        'it has no class decorator, and the compiler records the types of a constructor only for decorated classes',
        'the build tool emits no decorator metadata (esbuild, tsx)',
      ],
      fix: '@Injectable() before the class; or @Inject(OrderService) before each parameter; an optional parameter needs a default',
    },
  ];
}

function declaresConstructor(target: ClassType): boolean {
  return target.length > 0 || /\bconstructor\s*\(/.test(Function.prototype.toString.call(target));
}

/** The most classes named in a warning. */
const MOST_NAMES = 5;

/** The registry of an application: all its tools are called through Nest's pipeline. */
class ApplicationTools {
  readonly registry: ToolRegistry;
  readonly #caller: ToolCaller;
  readonly #options: ToolwrightModuleOptions;
  readonly #logger: Logger;
  readonly #modules: ModulesContainer;
  readonly #container: RequestContainer;
  readonly #finder: ToolFinder;
  /** The call target of each registered tool. */
  readonly #targets = new WeakMap<ToolDefinition, CallTarget>();
  /** The method that declares a provider's tool. */
  readonly #declared = new WeakMap<ToolDefinition, string>();
  /** The wrapper in the registry for each tool that was registered. */
  readonly #adopted = new WeakMap<ToolDefinition, ToolDefinition>();
  /** Classes, with their bases, of registered tools that `discoverTools` made. */
  readonly #bound = new WeakSet<ClassType>();
  #isComplete = false;

  /**
   * Creates the registry with the tools that are known before the providers exist, so that mistakes are reported while
   * the application is created, as with Nest's own.
   */
  constructor({ options, tasks, discovery, moduleRef, modules }: ApplicationParts, caller: ToolCaller) {
    this.#caller = caller;
    this.#options = options;
    this.#logger = options.logger ?? nestLogger();
    this.#modules = modules;
    this.#container = new RequestContainer(moduleRef);
    this.#finder = new ToolFinder(discovery, options.strict === true);
    this.registry = new ToolRegistry(
      {
        // Nest's own logger prints all levels by default.
        logArguments: false,
        ...filterFields({ ...withoutUndefined(options) }, (name) => Object.hasOwn(REGISTRY_RULES, name)),
        logger: this.#logger,
        describeError: createErrorDescriber(options),
        tasks,
        policy: (request) => this.#decide(request),
      },
      new ApplicationToolTable(
        (tool) => this.#adopt(tool),
        (before, now) => this.#warnOfReplaced(before, now),
      ),
    );
    this.discover(false, options.tools);
  }

  /**
   * Registers the given tools and those of the application's providers.
   *
   * @throws ToolDeclarationError with all faults of all providers; nothing is registered then.
   */
  discover(isEverythingMade: boolean, given: readonly RegisteredTool[] = []): void {
    const givenFaults = this.#finder.check(given, 'ToolwrightModule.forRoot');
    const found = this.#finder.find(isEverythingMade);
    const faults = [...givenFaults, ...found.faults];
    if (faults.length > 0) throw new ToolDeclarationError(faults);
    for (const warning of found.warnings) warnAuthor(warning, this.#logger);
    const bound = found.handlers.map((handler) => {
      const { planned, host } = handler;
      const target = providerTarget(handler, host);
      const tool: ToolDefinition = toolOfMethod(planned, {
        container: this.#container,
        withInstance: (context, use) => this.#caller.withInstance(target, context, use),
        execute: (args, context) => this.#caller.perform(target, { tool, arguments: args, context }),
      });
      this.#targets.set(tool, target);
      this.#declared.set(tool, methodPlace(planned));
      return tool;
    });
    this.registry.register(...given, ...found.given, ...bound);
  }

  /** Registers later tools, and prepares the enhancers of all tools, so that no call waits for this. */
  async complete(): Promise<void> {
    this.discover(true);
    this.#warnOfUnprovided();
    const parts = [this.registry, ...SERVED_KINDS.map((kind) => this.registry.part(kind))];
    const targets = parts.flatMap((part) => part.tools()).flatMap((tool) => this.#targets.get(tool) ?? []);
    await Promise.all(targets.map((target) => this.#caller.prepare(target)));
  }

  /** Warns once: lazily loaded modules may provide classes later. */
  #warnOfUnprovided(): void {
    if (this.#isComplete) return;
    this.#isComplete = true;
    const classes = this.#finder.unprovided().filter((declaring) => !this.#bound.has(declaring));
    const all = [...new Set(classes.map(({ name }) => name))];
    const names = all.slice(0, MOST_NAMES);
    if (names.length === 0) return;
    const others = all.length > names.length ? ` and ${all.length - names.length} more` : '';
    const fault = {
      where: `${names.join(', ')}${others}`,
      problem:
        'loaded and with @Tool methods, but no module provides them, so their tools are not offered to the model',
      fix: `providers: [${names[0]}] in a module, or ToolwrightModule.forFeature`,
    };
    warnAuthor(fault, this.#logger);
  }

  /** Warns that a tool registered by hand replaces a provider's tool of the same name. */
  #warnOfReplaced(before: ToolDefinition, now: ToolDefinition): void {
    const declared = this.#declared.get(before);
    if (declared === undefined || this.#declared.has(now)) return;
    const fault = {
      where: `register("${now.name}")`,
      problem: `it replaces the tool of ${declared}, a provider of the application`,
      fix: `another name, or registry.unregister("${now.name}") first`,
    };
    warnAuthor(fault, this.#logger);
  }

  #adopt(tool: ToolDefinition): ToolDefinition {
    if (this.#targets.has(tool)) return tool;
    const known = this.#adopted.get(tool);
    if (known !== undefined) return known;
    const bound = boundMethodOf(tool)?.class;
    for (const ancestor of bound ? lineage(bound) : []) this.#bound.add(ancestor);
    const target = registeredTarget(tool, hostOf(this.#modules, RegisteredTools));
    const adopted = withExecute(tool, (args, context) =>
      this.#caller.perform(target, { tool: adopted, arguments: args, context }),
    );
    this.#adopted.set(tool, adopted);
    this.#targets.set(adopted, target);
    return adopted;
  }

  /** Guards are asked before the application's own policy. */
  #decide(request: PolicyRequest): PolicyDecision | Promise<PolicyDecision> {
    const target = this.#targets.get(request.tool);
    if (target === undefined) return { allow: false, reason: 'it is not a tool of this application' };
    const decide = (reason: string | undefined): PolicyDecision | Promise<PolicyDecision> => {
      if (reason !== undefined) return { allow: false, reason };
      const { policy } = this.#options;
      return policy ? policy(request) : true;
    };
    return andThen(this.#caller.refusal(target, request), decide);
  }
}

/**
 * The table of an application's registry. It wraps every tool when it is added, in whatever way (registered, merged,
 * created for each call). So views and lists contain only wrapped tools.
 */
class ApplicationToolTable extends WritableToolTable {
  readonly #adopt: (tool: ToolDefinition) => ToolDefinition;
  readonly #onReplace: (before: ToolDefinition, now: ToolDefinition) => void;

  constructor(
    adopt: (tool: ToolDefinition) => ToolDefinition,
    onReplace: (before: ToolDefinition, now: ToolDefinition) => void,
  ) {
    super();
    this.#adopt = adopt;
    this.#onReplace = onReplace;
  }

  override set(name: string, { open, offered }: ToolEntry): ToolEntry | undefined {
    const adopted = this.#adopt(offered);
    const replaced = super.set(name, { open: () => this.#adopt(open()), offered: adopted });
    if (replaced !== undefined && replaced.offered !== adopted) this.#onReplace(replaced.offered, adopted);
    return replaced;
  }
}

/**
 * A tool with another `execute`. Custom tools may have private state, so all other properties are read from the
 * original object.
 */
function withExecute(tool: ToolDefinition, execute: ToolDefinition['execute']): ToolDefinition {
  // The proxy's target is empty: with a frozen target, `execute` could not be replaced.
  return new Proxy({} as ToolDefinition, {
    get(_target, key) {
      if (key === 'execute') return execute;
      // The pipeline always needs a context.
      if (key === 'ignoresContext') return undefined;
      const value: unknown = Reflect.get(tool, key, tool);
      return typeof value === 'function' ? value.bind(tool) : value;
    },
    has: (_target, key) => Reflect.has(tool, key),
    ownKeys: () => Reflect.ownKeys(tool),
    getOwnPropertyDescriptor(_target, key) {
      const own = Reflect.getOwnPropertyDescriptor(tool, key);
      return own && { ...own, configurable: true };
    },
  });
}

/** The root module of an application. */
export type NestModule = Type | DynamicModule;

/** The tools of a running application. */
interface OpenApplication {
  readonly registry: ToolRegistry;
  readonly engine: JobEngine | undefined;
  /** Inspector options for it. */
  readonly inspection: InspectorOptions;
  /**
   * Takes turns of conversations, runs jobs and recovers runs until it is closed; returns which of these its store
   * allows. `logger` is used if the application has no logger.
   */
  work(logger: Logger): readonly string[];
  /** The config and scope of runs without a holder. */
  readonly recovery: ApplicationFleet['recovery'];
  close(): Promise<void>;
}

/** Starts a module's application without a server, for its tools or its work. Only errors are logged. */
export async function openApplication(module: NestModule): Promise<OpenApplication> {
  const application = await heldBack.run(true, () =>
    NestFactory.createApplicationContext(module, { logger: ['error', 'fatal'], abortOnError: false }),
  );
  try {
    const { tools, fleet, inspector } = application.get(Application, { strict: false });
    return {
      registry: tools.registry,
      engine: fleet.engine,
      inspection: inspector.inspection(),
      recovery: fleet.recovery,
      work: (logger) => fleet.work(logger),
      close: () => application.close(),
    };
  } catch {
    await application.close();
    throw new Error(
      'it has no tools; imports: [ToolwrightModule.forRoot()] creates a registry with the tools of its providers',
    );
  }
}
