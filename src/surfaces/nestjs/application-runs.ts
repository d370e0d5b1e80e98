import { AsyncLocalStorage } from 'node:async_hooks';
import type { ModuleRef } from '@nestjs/core';
import type { CallScope } from '../../core/contract/call.js';
import type { RunState, RunStore } from '../../core/contract/run-state.js';
import {
  type AuthorFault,
  checkOptions,
  InvalidOptionsError,
  ToolDeclarationError,
} from '../../core/errors/author-fault.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { anySignal } from '../../core/kernel/async.js';
import { canonicalJson } from '../../core/kernel/json.js';
import { ToolRegistry } from '../../run/call/tool-registry.js';
import type { LoopEvent, ToolLoopStream } from '../../run/loop/events.js';
import { LOOP_RULES, type ToolLoopConfig } from '../../run/loop/options.js';
import { savesSteps } from '../../run/loop/run.js';
import { ownerOf } from '../../run/loop/run-owner.js';
import { isSignedWith, validateState } from '../../run/loop/suspend.js';
import type { RunningCalls } from './calls.js';
import {
  type OwnedRun,
  type OwnerScope,
  RUN_OPTIONS,
  type RunConfig,
  type RunOptions,
  type ToolwrightModuleOptions,
} from './options.js';
import { RequestContainer, type RequestContexts } from './requests.js';
import type { ToolVisibility } from './tool-caller.js';

/** Who asks for a run. */
interface Asker {
  readonly request: object | undefined;
  readonly scope: CallScope;
}

/** A run before it is known which tools it may see. */
interface PreparedRun extends Asker {
  readonly config: ToolLoopConfig;
}

/** What the functions of the loop take. */
type RunParts = Pick<PreparedRun, 'config' | 'scope'>;

/** In what scope a run goes on, and who answered. */
export interface OwnerAnswer {
  readonly scope: CallScope;
  readonly answeredBy?: unknown;
}

/** What the functions of the loop take to let a run go on. */
interface ResumeParts {
  readonly config: ToolLoopConfig;
  readonly options: OwnerAnswer;
}

/** The same, and the request that stands for the owner where somebody else has answered. */
interface Answering extends OwnerAnswer {
  readonly owner?: { readonly request: object | undefined };
}

/** What the runs of an application have in common. */
interface RunsParts {
  readonly options: ToolwrightModuleOptions;
  readonly registry: ToolRegistry;
  readonly requests: RequestContexts;
  readonly running: RunningCalls;
  readonly modules: ModuleRef;
  readonly visibility: ToolVisibility;
}

/** Puts a run into its application: the options, the request and its owner, the shutdown. */
export class ApplicationRuns {
  readonly #parts: RunsParts;
  readonly #owners: RunOwners;

  constructor(parts: RunsParts) {
    this.#parts = parts;
    this.#owners = new RunOwners(parts.options);
  }

  /** Who asks: the given request, or the one whose handler is running. */
  asker(options: RunOptions): Asker {
    checkOptions(options, RUN_OPTIONS);
    const { config: _, request: given, ...scope } = options;
    const request = given ?? this.#parts.requests.current();
    return { request, scope: this.scopeOf(request, scope) };
  }

  /** The module's options under those of the run, ended by a shutdown, for its request. */
  prepare(options: RunOptions): PreparedRun {
    checkOptions(options, RUN_OPTIONS);
    return { config: this.#config(options.config ?? {}), ...this.asker(options) };
  }

  /** What the loop takes to begin a run: over the tools that its request sees. */
  async begin({ config, scope, request }: PreparedRun): Promise<RunParts> {
    // The lease of the module is that of its claims and its conversations, too.
    const { leaseMs: _leaseMs, ...unkept } = config;
    return { config: await this.#limited(savesSteps(config) ? config : unkept, request), scope };
  }

  /** What the loop takes to let a run go on, as {@link answering} has it. */
  async resume(prepared: PreparedRun, run: OwnedRun | undefined, answeredBy: unknown): Promise<ResumeParts> {
    const { config } = prepared;
    const { owner, ...options } = await this.answering(prepared, run, answeredBy);
    if (owner === undefined) return { config: await this.#limited(config, prepared.request), options };
    if (owner.request !== undefined) return { config: await this.#limited(config, owner.request), options };
    return { config: { ...config, tools: this.#offeredBefore(config, run) }, options };
  }

  /**
   * In what scope a run goes on after an answer, and who answered; with `owner` where that is somebody else.
   *
   * @throws ToolwrightError `RunNotAllowed` (523) where the asker may not answer.
   */
  async answering(asker: Asker, run: OwnedRun | undefined, answeredBy: unknown): Promise<Answering> {
    const { request, scope } = asker;
    const answerer = { request, owner: scope.owner };
    const recorded = answeredBy ?? answerer.owner;
    const by = recorded === undefined ? {} : { answeredBy: recorded };
    if (run === undefined || this.#owners.isOwn(run, answerer)) return { scope, ...by };
    const { request: ownerRequest, ...own } = await this.#owners.scopeFor(run, answerer);
    const { signal, onUpdate, onLog } = scope;
    const ears = { ...(signal && { signal }), ...(onUpdate && { onUpdate }), ...(onLog && { onLog }) };
    const container = new RequestContainer(this.#parts.modules, { request: ownerRequest, isForOther: true });
    const onBehalf = { owner: run.owner, ...ears, ...this.#withData(ownerRequest, own), container };
    return { scope: onBehalf, ...by, owner: { request: ownerRequest } };
  }

  /** What the loop takes for work that nobody's request has begun here: it belongs to the given request, or to none. */
  async apart(own: OwnerScope): Promise<RunParts> {
    return { config: await this.#limited(this.#config({}), own.request), scope: this.scopeApart(own) };
  }

  /** The scope of such work; nothing of a request that is being handled is found in it. */
  scopeApart({ request, ...own }: OwnerScope): CallScope {
    const { modules, running } = this.#parts;
    const container = new RequestContainer(modules, { request, isForOther: true });
    return { signal: running.signal, ...this.#withData(request, own), container };
  }

  /** The run of a state, where nobody can have changed whose it is; otherwise the loop itself will refuse it. */
  certain(state: unknown, { stateSecret }: ToolLoopConfig): RunState | undefined {
    if (!this.#owners.areKnown) return undefined;
    const run = validateState(state, stateSecret).state;
    return isSignedWith(run, stateSecret) ? run : undefined;
  }

  /** A run in the store. */
  async stored(runId: string, store: RunStore): Promise<RunState | undefined> {
    return this.#owners.areKnown ? store.load(runId) : undefined;
  }

  /** A scope with the container, the data and the owner of the given request, or of the one whose handler is running. */
  scopeOf(given: object | undefined, scope: CallScope): CallScope {
    const { requests, modules } = this.#parts;
    const request = given ?? requests.current();
    const owner = this.#owners.of(request, scope);
    const owned = owner === undefined ? scope : { ...scope, owner };
    if (request === undefined) return owned;
    return { container: new RequestContainer(modules, { request }), ...this.#withData(request, owned) };
  }

  /** The names of the tools that a request sees. */
  async visibleTo(given: object | undefined): Promise<readonly string[]> {
    const { registry, requests, visibility } = this.#parts;
    const hidden = new Set(await visibility.hidden(given ?? requests.current(), registry));
    return registry.list().filter((name) => !hidden.has(name));
  }

  /** The store of a run out of one. */
  storeOf(options: RunOptions): RunStore {
    const { store } = this.#merged(options.config);
    if (store === undefined) throw new ToolDeclarationError([...this.#modelFaults(options.config), NO_STORE]);
    return store;
  }

  /** Aborted where a shutdown leaves runs whose steps are kept to others. */
  get leaving(): AbortSignal {
    return this.#parts.running.leaving;
  }

  track<Value>(running: Promise<Value>): Promise<Value> {
    return this.#parts.running.track(running);
  }

  /**
   * A stream whose run stays in the asynchronous context of whoever asked for it. It begins with its reader,
   * which may be the HTTP server's, where the context of the handler is gone.
   */
  watch(stream: ToolLoopStream): ToolLoopStream {
    const inContext = AsyncLocalStorage.snapshot();
    const { running } = this.#parts;
    const result = (): ToolLoopStream['result'] => running.track(inContext(() => stream.result));
    return {
      get result() {
        return result();
      },
      [Symbol.asyncIterator]() {
        const events = stream[Symbol.asyncIterator]();
        let isTracked = false;
        return {
          next() {
            const next = inContext(() => events.next());
            // From the first read on the run is under way, also while its reader takes its time.
            if (!isTracked) result().catch(() => {});
            isTracked = true;
            return next;
          },
          return: () =>
            inContext(async (): Promise<IteratorResult<LoopEvent>> => {
              const left = await events.return?.();
              return left ?? { value: undefined, done: true };
            }),
        };
      },
    };
  }

  #withData(request: object | undefined, scope: CallScope): CallScope {
    const { data } = this.#parts.options;
    if (data === undefined || request === undefined) return scope;
    return { ...scope, data: { ...data(request as never), ...scope.data } };
  }

  /** What is registered while the run goes on is offered to it, and asked about when it is called. */
  async #limited(config: ToolLoopConfig, request: object | undefined): Promise<ToolLoopConfig> {
    const { registry, visibility } = this.#parts;
    const tools = config.tools instanceof ToolRegistry ? config.tools : registry;
    const deny = await visibility.hidden(request, tools);
    return deny.length === 0 ? config : { ...config, tools: tools.view({ deny }) };
  }

  /** Without a request nobody can be asked about tools: such a run keeps those that it was offered. */
  #offeredBefore({ tools }: ToolLoopConfig, run: OwnedRun | undefined): ToolLoopConfig['tools'] {
    const { registry, visibility } = this.#parts;
    if (!visibility.isLimited) return tools;
    return (tools instanceof ToolRegistry ? tools : registry).view({ allow: run?.tools ?? [] });
  }

  #config(own: RunConfig): ToolLoopConfig {
    const { registry, running } = this.#parts;
    const { provider, model, ...others } = this.#merged(own);
    if (provider === undefined || model === undefined) throw new ToolDeclarationError([NO_MODEL]);
    return { tools: registry, ...others, provider, model, signal: anySignal(own.signal, running.signal) };
  }

  #modelFaults(own: RunConfig | undefined): readonly AuthorFault[] {
    const { provider, model } = this.#merged(own);
    return provider === undefined || model === undefined ? [NO_MODEL] : [];
  }

  #merged(own: RunConfig | undefined): Partial<ToolLoopConfig> {
    return { ...loopOptions(this.#parts.options), ...own };
  }
}

/** What the loop takes of the module's options. The registry brings its policy and hooks; a run would ask them again. */
function loopOptions(options: ToolwrightModuleOptions): Partial<ToolLoopConfig> {
  const { tools: _1, policy: _2, hooks: _3, ...others } = options;
  return Object.fromEntries(Object.entries(others).filter(([name]) => Object.hasOwn(LOOP_RULES, name)));
}

const NO_MODEL: AuthorFault = {
  where: 'ToolwrightService',
  problem: 'a run needs a provider and a model, and it has none',
  fix: 'ToolwrightModule.forRoot({ provider, model }), or config: { provider, model } in the options of the run',
};

const NO_STORE: AuthorFault = {
  where: 'ToolwrightService.resumeStored',
  problem: 'there is no store that a run could be resumed from',
  fix: 'ToolwrightModule.forRoot({ store: new SqliteRunStore({ path }) })',
};

/** What the options say of owners. */
type OwnerOptions = Pick<ToolwrightModuleOptions, 'owner' | 'mayAnswer' | 'scopeOf'>;

/** Somebody who answers a run. */
interface Answerer {
  readonly request: object | undefined;
  readonly owner: unknown;
}

/** On whose behalf runs take place, and who may answer for whom. */
class RunOwners {
  readonly #options: OwnerOptions;

  constructor(options: OwnerOptions) {
    this.#options = options;
  }

  /** Whether the application has said who owns what. */
  get areKnown(): boolean {
    return this.#options.owner !== undefined;
  }

  /** The owner that a request stands for: what its scope names, or what `owner` says of it. */
  of(request: object | undefined, scope: Pick<CallScope, 'owner'>): unknown {
    if (scope.owner !== undefined) return ownerOf(scope);
    const { owner: ownerOfRequest } = this.#options;
    if (ownerOfRequest === undefined || request === undefined) return undefined;
    const owner = ownerOfRequest(request as never);
    // As JSON, every promise would be the same owner.
    if (owner instanceof Promise) {
      owner.catch(() => {});
      throw new InvalidOptionsError([PROMISED]);
    }
    return ownerOf({ owner });
  }

  /** Whether a run is the answerer's own. A missing owner is the same as no other one. */
  isOwn(run: OwnedRun, { owner }: Answerer): boolean {
    if (run.owner === undefined || owner === undefined) return run.owner === owner;
    return canonicalJson(run.owner) === canonicalJson(owner);
  }

  /**
   * The scope of the owner of a run which somebody else answers.
   *
   * @throws ToolwrightError `RunNotAllowed` (523) unless `mayAnswer` says exactly `true`.
   */
  async scopeFor(run: OwnedRun, { request }: Answerer): Promise<OwnerScope> {
    const { mayAnswer, scopeOf } = this.#options;
    if (mayAnswer === undefined || scopeOf === undefined) throw notAllowed();
    let isAllowed: unknown;
    try {
      isAllowed = await mayAnswer(request as never, run);
    } catch (cause) {
      throw notAllowed(cause);
    }
    if (isAllowed !== true) throw notAllowed();
    return scopeOf(run.owner as never);
  }
}

function notAllowed(cause?: unknown): ToolwrightError {
  const message =
    'The run was not resumed. It has another owner, for whom this request may not answer. Nothing has run.';
  return new ToolwrightError('RunNotAllowed', message, cause === undefined ? undefined : { cause });
}

const PROMISED = {
  where: 'ToolwrightModule',
  option: 'owner',
  problem: 'owner returns a promise',
  fix: 'owner: (request) => ({ user: request.user.id }), from what a guard has put there',
};
