import { AsyncLocalStorage } from 'node:async_hooks';
import type { ModuleRef } from '@nestjs/core';
import { type Answer, type CallScope, scopeFields } from '../../core/contract/call.js';
import type { LLMProvider, Message } from '../../core/contract/llm-provider.js';
import { RUN_ID, type RunState, type RunStore } from '../../core/contract/run-state.js';
import { type InvalidOption, InvalidOptionsError } from '../../core/errors/author-fault.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { anySignal } from '../../core/kernel/async.js';
import { type Fields, filterFields, isRecord, withoutUndefined } from '../../core/kernel/json.js';
import { SERVED_KINDS, ToolRegistry } from '../../run/call/tool-registry.js';
import {
  type EventSink,
  streamRun,
  type ToolLoopResult,
  type ToolLoopStream,
} from '../../run/loop/events.js';
import { checkRun, LOOP_RULES, readResume, type ToolLoopConfig } from '../../run/loop/options.js';
import { resumeWith } from '../../run/loop/resume.js';
import { driveRun, savesSteps } from '../../run/loop/run.js';
import { isSameOwner, ownerOf } from '../../run/loop/run-owner.js';
import { isSignedWith, validateState } from '../../run/loop/suspend.js';
import { grantOf } from '../mcp/server/settings.js';
import { RequestContainer, type RequestContexts, type RunningCalls } from './calls.js';
import type {
  AnswerOptions,
  OwnedRun,
  OwnerScope,
  RunConfig,
  RunOptions,
  ToolwrightModuleOptions,
} from './options.js';
import type { ToolVisibility } from './pipeline.js';

/** The caller of a run. */
interface Asker {
  readonly request: object | undefined;
  readonly scope: CallScope;
  /** Who answers, if it is not the owner of the request. */
  readonly answeredBy: unknown;
}

/** A run before its visible tools are determined. */
interface PreparedRun extends Asker {
  readonly config: ToolLoopConfig;
}

/** A streamed run: where its events go, and what aborts it. */
interface Streaming {
  readonly signal?: AbortSignal;
  readonly sink?: EventSink;
}

interface GivenAnswers {
  readonly state: RunState | undefined;
  readonly answers: readonly Answer[];
}

/** Arguments for the functions of the loop. */
type RunParts = Pick<PreparedRun, 'config' | 'scope'>;

/** The scope in which a run continues, and who answered. */
export interface OwnerAnswer {
  readonly scope: CallScope;
  readonly answeredBy?: unknown;
}

interface RunsParts {
  readonly options: ToolwrightModuleOptions;
  readonly registry: ToolRegistry;
  readonly requests: RequestContexts;
  readonly running: RunningCalls;
  readonly modules: ModuleRef;
  readonly visibility: ToolVisibility;
}

/** Adds to a run what the application provides: options, request, owner and shutdown. */
export class ApplicationRuns {
  /** The runs of the application, which a shutdown waits for. */
  readonly running: RunningCalls;
  readonly #parts: RunsParts;

  constructor(parts: RunsParts) {
    this.running = parts.running;
    this.#parts = parts;
  }

  /** The caller: the given request, or the one whose handler is running. */
  asker(options: AnswerOptions): Asker {
    const { config: _, request: given, answeredBy, ...scope } = scopeFields(options) as AnswerOptions;
    const request = given ?? this.#parts.requests.current();
    return { request, scope: this.scopeOf(request, scope), answeredBy };
  }

  /** Merges the module's options with those of the run, and adds the shutdown signal and the caller. */
  prepare(options: AnswerOptions): PreparedRun {
    return { config: this.#config(options.config ?? {}), ...this.asker(options) };
  }

  /** Starts a run with the tools that its request sees; with a sink, it is streamed. */
  start(prepared: PreparedRun, messages: readonly Message[], how: Streaming = {}): Promise<ToolLoopResult> {
    return this.running.track(this.#start(prepared, messages, how));
  }

  async #start(
    { config, scope: own, request }: PreparedRun,
    messages: readonly Message[],
    { signal = config.signal, sink }: Streaming,
  ): Promise<ToolLoopResult> {
    const scope = await this.#withOwnScopes(own);
    // A run that is not stored has no lease; the module's `leaseMs` is also for claims and conversations.
    const { leaseMs: _leaseMs, ...unkept } = config;
    const limited = await this.#limited(savesSteps(config) ? config : unkept, request);
    checkRun({ config: limited, scope, messages });
    return driveRun({ ...limited, signal }, { messages }, { scope, sink, left: this.running.leaving });
  }

  /** Resumes a run; with a sink, it is streamed. */
  resume(prepared: PreparedRun, given: GivenAnswers, how: Streaming = {}): Promise<ToolLoopResult> {
    return this.running.track(this.#resume(prepared, given, how));
  }

  async #resume(
    prepared: PreparedRun,
    { state, answers }: GivenAnswers,
    { signal = prepared.config.signal, sink }: Streaming,
  ): Promise<ToolLoopResult> {
    const resumed = await this.resumption(prepared, this.#certain(state, prepared.config));
    const { scope = {}, ...read } = readResume(resumed);
    const config = { ...resumed.config, signal };
    const record = await resumeWith(config, state, { ...read, scope, answers });
    return driveRun(config, { record }, { scope, sink });
  }

  /** Streams a run. It starts with its reader, which may be outside of the caller's asynchronous context. */
  stream({ config }: PreparedRun, drive: (how: Streaming) => Promise<ToolLoopResult>): ToolLoopStream {
    const inContext = AsyncLocalStorage.snapshot();
    return streamRun(() => ({
      signal: config.signal,
      drive: (signal, sink) => inContext(() => drive({ signal, sink })),
    }));
  }

  /** Arguments to resume a run after {@link answering}. */
  async resumption(prepared: PreparedRun, run: OwnedRun | undefined) {
    const { config } = prepared;
    // Without another owner, the run belongs to the caller.
    const { owner = prepared, ...options } = await this.answering(prepared, run);
    if (owner === prepared || owner.request !== undefined)
      return { config: await this.#limited(config, owner.request), options };
    // Without a request, visibility cannot be checked: such a run keeps the tools that it was offered.
    const { registry, visibility } = this.#parts;
    const all = config.tools instanceof ToolRegistry ? config.tools : registry;
    const tools = visibility.isLimited ? all.view({ allow: run?.tools ?? [] }) : config.tools;
    return { config: { ...config, tools }, options };
  }

  /**
   * The scope in which a run continues after an answer, and who answered; if another user answered, `owner` has the
   * request that stands for the owner.
   *
   * @throws ToolwrightError `RunNotAllowed` (523) if the caller may not answer.
   */
  async answering(
    { request, scope, answeredBy }: Asker,
    run: OwnedRun | undefined,
  ): Promise<OwnerAnswer & { readonly owner?: { readonly request: object | undefined } }> {
    const by = withoutUndefined({ answeredBy: answeredBy ?? scope.owner });
    if (run === undefined || isSameOwner(run.owner, scope.owner))
      return { scope: await this.#withOwnScopes(scope), ...by };
    // Another user answers: the run continues in its owner's scope.
    const { mayAnswer, scopeOf } = this.#parts.options;
    if (mayAnswer === undefined || scopeOf === undefined) throw notAllowed();
    let isAllowed: unknown;
    try {
      isAllowed = await mayAnswer(request as never, run);
    } catch (cause) {
      throw notAllowed(cause);
    }
    if (isAllowed !== true) throw notAllowed();
    const { request: ownerRequest, ...own } = await scopeOf(run.owner as never);
    const { signal, onUpdate, onLog } = scope;
    const listeners = withoutUndefined({ signal, onUpdate, onLog });
    const container = new RequestContainer(this.#parts.modules, { request: ownerRequest, isForOther: true });
    const onBehalf = { owner: run.owner, ...listeners, ...this.#withCaller(ownerRequest, own), container };
    return { scope: onBehalf, ...by, owner: { request: ownerRequest } };
  }

  /** Arguments for work that no current request started: it belongs to the given request, or to none. */
  async apart(own: OwnerScope): Promise<RunParts> {
    return { config: await this.#limited(this.#config({}), own.request), scope: this.scopeApart(own) };
  }

  /** The scope of such work; it contains nothing of the request that is being handled. */
  scopeApart({ request, ...own }: OwnerScope): CallScope {
    const { modules, running } = this.#parts;
    const container = new RequestContainer(modules, { request, isForOther: true });
    return { signal: running.signal, ...this.#withCaller(request, own), container };
  }

  /** The run of a state with an authentic owner; `undefined` for other states, which the loop itself refuses. */
  #certain(state: unknown, { stateSecret }: ToolLoopConfig): RunState | undefined {
    if (this.#parts.options.owner === undefined) return undefined;
    const run = validateState(state, stateSecret).state;
    return isSignedWith(run, stateSecret) ? run : undefined;
  }

  /** A stored run; loaded only if runs have owners. */
  async stored(runId: string, store: RunStore): Promise<RunState | undefined> {
    // Clients choose ids, and databases refuse some texts.
    const isPossible = this.#parts.options.owner !== undefined && RUN_ID.accepts(runId);
    return isPossible ? store.load(runId) : undefined;
  }

  /** A scope with the container, data and owner of the given request, or of the one whose handler is running. */
  scopeOf(given: object | undefined, scope: CallScope): CallScope {
    const { requests, modules } = this.#parts;
    const request = given ?? requests.current();
    const owned = { ...scopeFields(scope), ...withoutUndefined({ owner: this.#ownerOf(request, scope) }) };
    if (request === undefined) return owned;
    return { container: new RequestContainer(modules, { request }), ...this.#withCaller(request, owned) };
  }

  /** The owner of a request: that of its scope, or what the option `owner` returns. */
  #ownerOf(request: object | undefined, scope: CallScope): unknown {
    const { owner: ownerOfRequest } = this.#parts.options;
    if (scope.owner !== undefined) return ownerOf(scope);
    if (ownerOfRequest === undefined || request === undefined) return undefined;
    const owner = ownerOfRequest(request as never);
    // As JSON, all promises would be the same owner.
    if (owner instanceof Promise) {
      owner.catch(() => {});
      throw new InvalidOptionsError([PROMISED]);
    }
    return ownerOf({ owner });
  }

  /** The names of the tools, and of the MCP prompts and resources, that a request sees. */
  async visibleTo(given: object | undefined): Promise<readonly string[]> {
    const { registry, requests, visibility } = this.#parts;
    const request = given ?? requests.current();
    const parts = [registry, ...SERVED_KINDS.map((kind) => registry.part(kind))];
    const shown = parts.map(async (part) => {
      const hidden = new Set(await visibility.hidden(request, part));
      return part.list().filter((name) => !hidden.has(name));
    });
    return (await Promise.all(shown)).flat();
  }

  /** The store for resuming a run. */
  storeOf(options: RunOptions): RunStore {
    const { store, provider, model } = this.#merged(options.config);
    if (store !== undefined) return store;
    const hasModel = provider !== undefined && model !== undefined;
    throw new InvalidOptionsError(hasModel ? [NO_STORE] : [noModel(provider), NO_STORE]);
  }

  /** Adds the data and the OAuth scopes of a request. */
  #withCaller(request: object | undefined, own: CallScope): CallScope {
    if (request === undefined) return own;
    const { data } = this.#parts.options;
    const { user } = request as { readonly user?: unknown };
    const scope = { ...own, ...withoutUndefined({ scopes: own.scopes ?? scopesOfUser(user) }) };
    return data === undefined ? scope : { ...scope, data: { ...data(request as never), ...scope.data } };
  }

  /** A user without OAuth scopes has those that `scopeOf` returns for the owner, as in the owner's chats. */
  async #withOwnScopes(scope: CallScope): Promise<CallScope> {
    const { options, registry } = this.#parts;
    const isComplete = scope.scopes !== undefined || scope.owner === undefined;
    if (isComplete || options.scopeOf === undefined) return scope;
    if (!registry.tools().some(({ scopes = [] }) => scopes.length > 0)) return scope;
    const { request, ...own } = await options.scopeOf(scope.owner as never);
    const { user } = (request ?? {}) as { readonly user?: unknown };
    return { ...scope, ...withoutUndefined({ scopes: own.scopes ?? scopesOfUser(user) }) };
  }

  /** Hides tools that the request does not see. Tools that are registered later are checked when they are called. */
  async #limited(config: ToolLoopConfig, request: object | undefined): Promise<ToolLoopConfig> {
    const { registry, visibility } = this.#parts;
    const tools = config.tools instanceof ToolRegistry ? config.tools : registry;
    const deny = await visibility.hidden(request, tools);
    return deny.length === 0 ? config : { ...config, tools: tools.view({ deny }) };
  }

  #config(own: RunConfig): ToolLoopConfig {
    const { registry, running } = this.#parts;
    const { provider, model, ...others } = this.#merged(own);
    if (provider === undefined || model === undefined) throw new InvalidOptionsError([noModel(provider)]);
    return { tools: registry, ...others, provider, model, signal: anySignal(own.signal, running.signal) };
  }

  #merged(own: RunConfig | undefined): Partial<ToolLoopConfig> {
    // The registry applies its policy and hooks; in the run's config they would apply twice.
    const { tools: _1, policy: _2, hooks: _3, ...others } = this.#parts.options;
    return { ...filterFields({ ...others }, (name) => Object.hasOwn(LOOP_RULES, name)), ...own };
  }
}

function noModel(provider: LLMProvider | undefined): InvalidOption {
  return {
    where: 'ToolwrightService',
    option: provider === undefined ? 'provider' : 'model',
    problem: 'the run has no provider or no model',
    fix: 'ToolwrightModule.forRoot({ provider, model }), or config: { provider, model } in the options of the run',
  };
}

const NO_STORE: InvalidOption = {
  where: 'ToolwrightService.resumeStored',
  option: 'store',
  problem: 'there is no store from which a run could be resumed',
  fix: 'ToolwrightModule.forRoot({ store: new SqliteRunStore({ path }) })',
};

/** The OAuth scopes of a user, as a list or as a text with spaces; `undefined` if the user has none of these fields. */
export function scopesOfUser(user: unknown): string[] | undefined {
  const { scopes, scope, scp }: Fields = isRecord(user) ? user : {};
  const granted = scopes ?? scope ?? scp;
  return granted === undefined || granted === null ? undefined : grantOf({}, granted).scopes;
}

function notAllowed(cause?: unknown): ToolwrightError {
  const message =
    'The run was not resumed. It has another owner, and this request may not answer for that owner. Nothing has run.';
  return new ToolwrightError('RunNotAllowed', message, cause === undefined ? undefined : { cause });
}

const PROMISED = {
  where: 'ToolwrightModule',
  option: 'owner',
  problem: 'owner returns a promise',
  fix: 'owner: (request) => ({ user: request.user.id }), where a guard has set request.user',
};
