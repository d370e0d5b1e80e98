import { AsyncLocalStorage } from 'node:async_hooks';
import type { ServerResponse } from 'node:http';
import { Inject } from '@nestjs/common';
import { ApplicationConfig, DiscoveryService, ModuleRef, ModulesContainer } from '@nestjs/core';
import type { Job, JobEngine } from '../../core/contract/job-engine.js';
import { keepsJobs } from '../../core/contract/job-store.js';
import type { Logger } from '../../core/contract/ports.js';
import { CHECKPOINT_STORE, type CheckpointStore } from '../../core/contract/run-checkpoint.js';
import { RUN_STORE } from '../../core/contract/run-state.js';
import {
  type AuthorFault,
  checkOptions,
  refuseOptions,
  ToolDeclarationError,
} from '../../core/errors/author-fault.js';
import { withoutUndefined } from '../../core/kernel/json.js';
import {
  type NodeRequest,
  rawResponseOf,
  toRequest,
  type WrappedRequest,
  type WrappedResponse,
  writeResponse,
} from '../../core/kernel/node-http.js';
import { optionTable } from '../../core/kernel/options.js';
import { createRedaction } from '../../run/call/redact.js';
import { TaskQueue } from '../../run/call/task-queue.js';
import type { ToolRegistry } from '../../run/call/tool-registry.js';
import { Conversations } from '../../run/conversation/conversations.js';
import {
  type ConversationsOptions,
  type ConversationsStore,
  keepsConversations,
  type TurnOwner,
  turnConfigOf,
} from '../../run/conversation/conversations-options.js';
import { RunRecovery } from '../../run/conversation/run-recovery.js';
import { BackgroundJobs, jobWork } from '../../run/jobs/run-jobs.js';
import { boundMethodOf } from '../../tools/discovery/discover-tools.js';
import { type ChatHandler, createChatHandler } from '../chat/create-chat-handler.js';
import type { Inspector } from '../inspector/create-inspector.js';
import { type InspectorOptions, mayInspect } from '../inspector/options.js';
import { ApplicationRuns } from './application-runs.js';
import { type ApplicationTools, createApplicationTools } from './application-tools.js';
import { asNestResponse, RequestContexts, RunningCalls } from './calls.js';
import { Enhancers } from './enhancers.js';
import {
  ANSWERS_FOR_NOBODY,
  CHAT_RULES,
  type ChatSettings,
  MAY_ANSWER,
  type OwnerScope,
  type ToolwrightModuleOptions,
} from './options.js';
import { CallPipeline, createErrorDescriber, nestLogger, ToolCaller, ToolVisibility } from './pipeline.js';

const heldBack = new AsyncLocalStorage<true>();

/** Whether the application is started for a command, and must not take work by itself. */
function isHeldBack(): boolean {
  return heldBack.getStore() === true;
}

/** Starts an application that does not take work by itself. */
export function holdingBack<Value>(start: () => Value): Value {
  return heldBack.run(true, start);
}

interface FleetParts {
  readonly options: ToolwrightModuleOptions;
  readonly registry: ToolRegistry;
  readonly runs: ApplicationRuns;
  readonly running: RunningCalls;
}

/**
 * An application's work that other processes may share: turns of conversations, jobs, and runs of crashed processes.
 */
export class ApplicationFleet {
  /** Chats of users, based on the conversations. */
  readonly chats: ApplicationChats;
  readonly #parts: FleetParts;
  readonly #ownerScopes = new WeakMap<TurnOwner, Promise<OwnerScope>>();
  #conversations: Conversations | undefined;
  /** Conversations that take turns, if the application's own do not. */
  #turns: Conversations | undefined;
  #recovery: RunRecovery | undefined;
  #jobs: BackgroundJobs | undefined;
  #logger: Logger;

  constructor(parts: FleetParts) {
    this.#parts = parts;
    const { options, runs } = parts;
    this.#logger = options.logger ?? nestLogger();
    this.chats = new ApplicationChats({ options, runs, conversations: () => this.conversations });
  }

  /**
   * The conversations in the module's store.
   *
   * @throws ToolDeclarationError if there is no store, or it cannot store conversations.
   */
  get conversations(): Conversations {
    const { store } = this.#parts.options;
    if (!keepsConversations(store)) throw new ToolDeclarationError([NO_CONVERSATIONS]);
    this.#conversations ??= this.#open(store, { takesTurns: this.#parts.options.worker !== false });
    return this.#conversations;
  }

  get engine(): JobEngine | undefined {
    return this.#parts.options.engine;
  }

  /** Starts working if the options request it. */
  begin(): void {
    if (this.#parts.options.worker === true && !isHeldBack()) this.work();
  }

  /**
   * Takes turns, runs jobs once the engine is reachable, and recovers runs, as far as the store supports it. Returns
   * what it does of these. `logger` is used if the application has no logger.
   */
  work(logger?: Logger): readonly string[] {
    const { options, registry, runs } = this.#parts;
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
      this.#recovery ??= new RunRecovery({
        store: store as CheckpointStore,
        left: runs.leaving,
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
      this.#recovery?.close(),
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
  get recovery(): Pick<ConstructorParameters<typeof RunRecovery>[0], 'config' | 'scope'> {
    const { runs } = this.#parts;
    return {
      config: async ({ state }) => {
        const { config } = await runs.apart(await this.#scopeOfOwner(state.owner));
        return { ...config, checkpoint: config.checkpoint === 'call' ? 'call' : 'step' };
      },
      scope: async ({ state }) => runs.scopeApart(await this.#scopeOfOwner(state.owner)),
    };
  }

  /** Called once per turn, so that the turn's tools and calls have the same request. */
  #scopeOfTurn(turn: TurnOwner): Promise<OwnerScope> {
    const known = this.#ownerScopes.get(turn) ?? this.#scopeOfOwner(turn.owner);
    this.#ownerScopes.set(turn, known);
    return known;
  }

  async #scopeOfOwner(owner: unknown): Promise<OwnerScope> {
    const { scopeOf } = this.#parts.options;
    return owner === undefined || scopeOf === undefined ? {} : scopeOf(owner as never);
  }
}

const NO_CONVERSATIONS: AuthorFault = {
  where: 'ToolwrightService.conversations',
  problem: 'there is no store that conversations could be kept in',
  fix: 'ToolwrightModule.forRoot({ store: new SqliteRunStore({ path }) })',
};

/** Options to answer one request of a chat. */
export interface ChatRequestOptions
  extends Pick<ChatSettings, 'protocol'>,
    Pick<ToolwrightModuleOptions, 'mayAnswer'> {
  /** The response of Express, or the reply of Fastify. The answer is then written to it, and nothing is returned. */
  readonly response?: object;
}

const REQUEST_OPTIONS = optionTable<ChatRequestOptions>('ToolwrightService.chat', {
  protocol: CHAT_RULES.protocol,
  mayAnswer: MAY_ANSWER,
  response: { accepts: (value) => typeof value === 'object' && value !== null, fix: 'the response' },
});

/** A request of a chat with its owner, and the rule for who may answer for others. */
interface AskedOfNest extends Pick<ToolwrightModuleOptions, 'mayAnswer'> {
  readonly request: object;
  readonly owner: unknown;
}

interface ChatParts {
  readonly options: ToolwrightModuleOptions;
  readonly runs: ApplicationRuns;
  readonly conversations: () => Conversations;
}

/** The chats of an application, based on its conversations, behind its guards. */
class ApplicationChats {
  readonly #parts: ChatParts;
  readonly #handlers = new Map<ChatSettings['protocol'], ChatHandler>();
  /** Information about requests that are being answered. */
  readonly #asked = new WeakMap<Request, AskedOfNest>();

  constructor(parts: ChatParts) {
    this.#parts = parts;
  }

  async answer(request: object, options: ChatRequestOptions): Promise<Response | undefined> {
    checkOptions(options, REQUEST_OPTIONS);
    const { owner, scopeOf, chat, mayAnswer: always } = this.#parts.options;
    const { protocol = chat?.protocol, mayAnswer = always, response } = options;
    if (owner === undefined) throw new ToolDeclarationError([NO_OWNER]);
    if (mayAnswer !== undefined && scopeOf === undefined) refuseOptions([ANSWERS_FOR_NOBODY]);
    const asked = toRequest(request as NodeRequest | WrappedRequest);
    this.#asked.set(asked, { request, owner: this.#parts.runs.scopeOf(request, {}).owner, mayAnswer });
    const answer = await this.#handlerOf(protocol).fetch(asked);
    if (response === undefined) return asNestResponse(answer);
    // A handler that injected the response must write it, in every version of Nest.
    const outgoing = rawResponseOf(response as ServerResponse | WrappedResponse);
    await writeResponse(answer, outgoing).catch(() => {});
    return undefined;
  }

  #handlerOf(protocol: ChatSettings['protocol']): ChatHandler {
    const known = this.#handlers.get(protocol);
    if (known !== undefined) return known;
    const { options, conversations } = this.#parts;
    const { logger = nestLogger(), chat } = options;
    const handler = createChatHandler({
      ...chat,
      protocol,
      logger,
      conversations: conversations(),
      authenticate: (asked) => this.#asked.get(asked)?.owner,
      mayAnswer: (asked, run) => {
        const { request, mayAnswer } = this.#asked.get(asked) ?? {};
        return mayAnswer?.(request as never, run) ?? false;
      },
    });
    this.#handlers.set(protocol, handler);
    return handler;
  }
}

const NO_OWNER: AuthorFault = {
  where: 'ToolwrightService.chat',
  problem: 'nobody says whose a chat is, so that everybody could read it',
  fix: 'ToolwrightModule.forRoot({ owner: (request) => ({ user: request.user.id }) })',
};

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

  constructor({ options, tasks, requests, modules, config, discovery, moduleRef }: ApplicationParts) {
    const running = new RunningCalls(tasks);
    const visibility = new ToolVisibility(options);
    const enhancers = new Enhancers(modules, config);
    const pipeline = new CallPipeline(
      enhancers,
      createErrorDescriber(options),
      createRedaction(options.redact),
    );
    const caller = new ToolCaller({ enhancers, requests, running, pipeline, visibility });
    this.tools = createApplicationTools({ options, caller, tasks, discovery, moduleRef, modules });
    const { registry } = this.tools;
    this.runs = new ApplicationRuns({ options, registry, requests, running, modules: moduleRef, visibility });
    this.fleet = new ApplicationFleet({ options, registry, runs: this.runs, running });
    this.inspector = new ApplicationInspector({ options, registry, runs: this.runs, enhancers });
  }
}

interface InspectorParts {
  readonly options: ToolwrightModuleOptions;
  readonly registry: ToolRegistry;
  readonly runs: ApplicationRuns;
  readonly enhancers: Enhancers;
}

/** The inspector of an application, if its options request one. */
class ApplicationInspector {
  readonly #parts: InspectorParts;
  #inspector: Inspector | undefined;

  constructor(parts: InspectorParts) {
    this.#parts = parts;
  }

  /** Starts the inspector unless it is forbidden: the same module runs in production. */
  async begin(): Promise<void> {
    const { inspector, logger = nestLogger() } = this.#parts.options;
    if (inspector === undefined || inspector === false || isHeldBack()) return;
    const { port, host, ...settings } = inspector === true ? {} : inspector;
    if (!mayInspect(settings)) {
      const place = process.env.NODE_ENV || 'not set';
      logger.warn(
        `There is no inspector, as NODE_ENV is ${place}: NODE_ENV=development, or inspector: { allowInProduction: true }`,
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
