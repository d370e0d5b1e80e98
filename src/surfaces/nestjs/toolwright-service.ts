import { Inject, Injectable } from '@nestjs/common';
import type { Answer, CallScope } from '../../core/contract/call.js';
import { SCOPE, SCOPE_RULES } from '../../core/contract/call.js';
import type { Message } from '../../core/contract/llm-provider.js';
import { MODEL, PROVIDER } from '../../core/contract/llm-provider.js';
import type { RunState } from '../../core/contract/run-state.js';
import { checkOptions } from '../../core/errors/author-fault.js';
import { mapFields } from '../../core/kernel/json.js';
import { ANY_VALUE, instanceOf, objectOf, optionTable } from '../../core/kernel/options.js';
import type { NameFilter } from '../../run/call/tool-registry.js';
import { ToolRegistry } from '../../run/call/tool-registry.js';
import type { Conversations } from '../../run/conversation/conversations.js';
import type { ToolLoopResult, ToolLoopStream } from '../../run/loop/events.js';
import { LOOP_ALIASES, LOOP_RULES, readResume } from '../../run/loop/options.js';
import { driveStoredRun, STORED_RUN } from '../../run/loop/stored-run.js';
import { Application, type ChatRequestOptions } from './application.js';
import type { ApplicationRuns, OwnerAnswer } from './application-runs.js';
import {
  type AnswerOptions,
  type OwnedRun,
  PLATFORM_OBJECT,
  type RunConfig,
  type RunOptions,
} from './options.js';

const TOOLS = instanceOf(ToolRegistry, 'a view of the application’s registry: registry.view({ … })');

const RULES = {
  ...SCOPE_RULES,
  request: PLATFORM_OBJECT,
  // The module's options provide the rest.
  config: objectOf<RunConfig>(
    { ...LOOP_RULES, provider: PROVIDER, model: MODEL, tools: TOOLS },
    { fix: "{ model: 'gpt-5', … }", meant: LOOP_ALIASES },
  ),
};

const MEANT = {
  ...SCOPE.meant,
  ...mapFields(LOOP_RULES, (_rule, name) => `config: { ${name}: … }`),
};

const RUN_OPTIONS = optionTable<RunOptions>('a run of ToolwrightService', RULES, MEANT);

const ANSWER_OPTIONS = optionTable<AnswerOptions>(RUN_OPTIONS.of, { ...RULES, answeredBy: ANY_VALUE }, MEANT);

/**
 * The loop of a Nest application: with the application's tools and the module's options, for the request whose handler
 * makes the call. A shutdown waits for running runs; those that last longer are aborted, or left to other processes if
 * their steps are stored.
 *
 * @throws InvalidOptionsError (521) for invalid options, and if neither the module nor the run has a provider and a
 * model; otherwise the errors of the corresponding function.
 *
 * @example
 * ```ts
 * @Controller('chat')
 * class ChatController {
 *   constructor(private readonly toolwright: ToolwrightService) {}
 *
 *   @Post()
 *   async chat(@Body() body: { readonly text: string }) {
 *     const run = await this.toolwright.run([{ role: 'user', content: body.text }]);
 *     return { status: run.status, content: run.content };
 *   }
 * }
 * ```
 */
@Injectable()
export class ToolwrightService {
  readonly #application: Application;
  readonly #runs: ApplicationRuns;

  constructor(@Inject(Application) application: Application) {
    this.#application = application;
    this.#runs = application.runs;
  }

  /**
   * The conversations in the module's `store`. Any process may prompt, answer and read them; workers take their turns,
   * with the application's tools. A turn belongs to its owner; `scopeOf` in the options returns the owner's scope. A
   * shutdown waits for turns that run here.
   *
   * @throws InvalidOptionsError (521) if the store cannot store conversations.
   *
   * @example
   * ```ts
   * async function ask(toolwright: ToolwrightService, request: object, text: string) {
   *   const { owner } = toolwright.scopeOf(request);
   *   await toolwright.conversations.prompt('c1', text, { owner });
   *   return toolwright.conversations.idle('c1');
   * }
   * ```
   */
  get conversations(): Conversations {
    return this.#application.fleet.conversations;
  }

  /**
   * Answers a chat request of the AI SDK's `useChat` or of an AG-UI client. Its route must accept `POST`, and `GET` and
   * `DELETE` of `:id/stream` and `:id/messages`. Guards run before, and `owner` in the options determines the chat's
   * owner. Return the result, so that Nest sends it; or pass `response`, to which the answer is then written.
   *
   * @throws InvalidOptionsError (521) if the options have no `owner`, or no store for conversations.
   *
   * @example
   * ```ts
   * @Controller('chat')
   * class ChatController {
   *   constructor(private readonly toolwright: ToolwrightService) {}
   *
   *   @All(['', ':id/stream', ':id/messages'])
   *   chat(@Req() request: object) {
   *     return this.toolwright.chat(request);
   *   }
   * }
   * ```
   */
  chat(request: object, options: ChatRequestOptions = {}): Promise<Response | undefined> {
    return this.#application.fleet.chat(request, options);
  }

  /** `runToolLoop` with the application's tools. */
  async run(messages: readonly Message[], options: RunOptions = {}): Promise<ToolLoopResult> {
    checkOptions(options, RUN_OPTIONS);
    return this.#runs.start(this.#runs.prepare(options), messages);
  }

  /** `streamToolLoop` with the application's tools. */
  stream(messages: readonly Message[], options: RunOptions = {}): ToolLoopStream {
    checkOptions(options, RUN_OPTIONS);
    const prepared = this.#runs.prepare(options);
    return this.#runs.stream(prepared, (how) => this.#runs.start(prepared, messages, how));
  }

  /**
   * `resumeToolLoop`. If the options define owners, a run continues for its owner: the request must be the owner's, or
   * be allowed to answer for the owner. Another user's answer is recorded and has no other effect.
   *
   * @throws ToolwrightError `RunNotAllowed` (523) for other requests; nothing has run then.
   */
  async resume(
    state: RunState | undefined,
    answers: readonly Answer[],
    options: AnswerOptions = {},
  ): Promise<ToolLoopResult> {
    checkOptions(options, ANSWER_OPTIONS);
    return this.#runs.resume(this.#runs.prepare(options), { state, answers });
  }

  /** `streamResumedToolLoop`, with the rules of `resume`. */
  streamResumed(
    state: RunState | undefined,
    answers: readonly Answer[],
    options: AnswerOptions = {},
  ): ToolLoopStream {
    checkOptions(options, ANSWER_OPTIONS);
    const prepared = this.#runs.prepare(options);
    return this.#runs.stream(prepared, (how) => this.#runs.resume(prepared, { state, answers }, how));
  }

  /** `resumeStoredRun` from the module's `store`, with the rules of `resume`. */
  async resumeStored(
    runId: string,
    answers: readonly Answer[],
    options: AnswerOptions = {},
  ): Promise<ToolLoopResult> {
    checkOptions(options, ANSWER_OPTIONS);
    const store = this.#runs.storeOf(options);
    checkOptions({ store, runId }, STORED_RUN);
    const prepared = this.#runs.prepare(options);
    const resumed = await this.#runs.resumption(prepared, await this.#runs.stored(runId, store));
    const { scope = {}, ...read } = readResume(resumed);
    const { leaseMs } = resumed.config;
    const resumption = { ...read, scope, answers };
    const deps = { scope, left: this.#runs.running.leaving };
    return this.#runs.running.track(
      driveStoredRun(resumed.config, { store, runId, leaseMs }, { resumption, deps }),
    );
  }

  /**
   * Checks whether a request may answer a run, and returns the scope in which the run then continues: options for
   * `Conversation.answer` and `resumeToolLoop`. `run` contains its owner and its pending calls.
   *
   * @throws ToolwrightError `RunNotAllowed` (523) if it may not.
   *
   * @example
   * ```ts
   * async function answer(toolwright: ToolwrightService, talk: Conversation, by: { readonly request: object }) {
   *   const run = { owner: { user: 'u1' }, pending: talk.pending };
   *   return talk.answer(answers, await toolwright.answering(run, by));
   * }
   * ```
   */
  async answering(run: OwnedRun, options: AnswerOptions = {}): Promise<OwnerAnswer> {
    checkOptions(options, ANSWER_OPTIONS);
    const { owner: _, ...answer } = await this.#runs.answering(this.#runs.asker(options), run);
    return answer;
  }

  /**
   * The scope for single calls of a request, for `registry.executeWithContext`. Within the handler of an HTTP request,
   * it is only needed for `data` and the owner.
   */
  scopeOf(request: object, scope: CallScope = {}): CallScope {
    return this.#runs.scopeOf(request, scope);
  }

  /** The tools that a request sees, by `visible` in the options: a filter for `registry.view` and MCP's `visible`. */
  async visibleTo(request?: object): Promise<NameFilter> {
    return { allow: await this.#runs.visibleTo(request) };
  }

  /**
   * Registers the tools of lazily loaded modules, because Nest does not report that it loaded one. Tools that were
   * found before stay unchanged.
   *
   * @throws ToolDeclarationError with all their faults; nothing is registered then.
   *
   * @example
   * ```ts
   * import type { Type } from '@nestjs/common';
   * import type { LazyModuleLoader } from '@nestjs/core';
   *
   * class Reports {
   *   constructor(
   *     private readonly modules: LazyModuleLoader,
   *     private readonly toolwright: ToolwrightService,
   *   ) {}
   *
   *   async load(reportsModule: Type) {
   *     await this.modules.load(() => reportsModule);
   *     await this.toolwright.discover();
   *   }
   * }
   * ```
   */
  async discover(): Promise<void> {
    await this.#application.tools.complete();
  }
}
