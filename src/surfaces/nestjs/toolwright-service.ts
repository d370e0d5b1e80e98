import { Inject, Injectable } from '@nestjs/common';
import type { Answer, CallScope } from '../../core/contract/call.js';
import type { Message } from '../../core/contract/llm-provider.js';
import type { RunState } from '../../core/contract/run-state.js';
import { checkOptions } from '../../core/errors/author-fault.js';
import type { NameFilter } from '../../run/call/registration.js';
import type { Conversations } from '../../run/conversation/conversations.js';
import { type Drive, streamRun, type ToolLoopResult, type ToolLoopStream } from '../../run/loop/events.js';
import { checkRun, readResume } from '../../run/loop/options.js';
import { resumeWith } from '../../run/loop/resume.js';
import { driveRun, resumeToolLoop } from '../../run/loop/run.js';
import { driveStoredRun, STORED_RUN } from '../../run/loop/stored-run.js';
import { Application } from './application.js';
import type { ChatRequestOptions } from './application-fleet.js';
import type { ApplicationRuns, OwnerAnswer } from './application-runs.js';
import { type AnswerOptions, type OwnedRun, type RunOptions, readAnswerOptions } from './options.js';

/**
 * The loop of a Nest application: over the application's tools, with the module's options, on behalf of the
 * request whose handler calls. Runs that are under way are waited for when the application shuts down; those that last
 * longer are aborted, or left to other processes where their steps are kept.
 *
 * @throws ToolDeclarationError where neither the module nor the run has a provider and a model;
 *   InvalidOptionsError (521) for options that are none; otherwise what the function of the same job throws.
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

  constructor(@Inject(Application) application: Application) {
    this.#application = application;
  }

  get #runs(): ApplicationRuns {
    return this.#application.runs;
  }

  /**
   * The conversations in the module's `store`: any process prompts, answers and reads them, and those that are workers
   * take their turns, over the application's tools. A turn belongs to its owner, of whom `scopeOf` of the options knows
   * the scope. A shutdown waits for turns that run here.
   *
   * @throws ToolDeclarationError where the store keeps no conversations.
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
   * Answers a request of a chat: what `useChat` of the AI SDK sends, or a client of AG-UI. A route for it takes `POST`,
   * and `GET` and `DELETE` of `:id/stream` and `:id/messages`; guards have seen the request before, and `owner` of the
   * options says whose the chat is. Return what it gives, and Nest sends it; or give it `response`, and it is written.
   *
   * @throws ToolDeclarationError where the options have no `owner`, or no store that keeps conversations.
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
    return this.#application.fleet.chats.answer(request, options);
  }

  /** `runToolLoop` over the application's tools. */
  async run(messages: readonly Message[], options: RunOptions = {}): Promise<ToolLoopResult> {
    const { config, scope } = await this.#runs.begin(this.#runs.prepare(options));
    checkRun({ config, scope, messages });
    return this.#runs.track(driveRun(config, { messages }, { scope, left: this.#runs.leaving }));
  }

  /** `streamToolLoop` over the application's tools. */
  stream(messages: readonly Message[], options: RunOptions = {}): ToolLoopStream {
    const prepared = this.#runs.prepare(options);
    const drive: Drive = async (signal, sink) => {
      const { config, scope } = await this.#runs.begin(prepared);
      checkRun({ config, scope, messages });
      return driveRun({ ...config, signal }, { messages }, { scope, sink, left: this.#runs.leaving });
    };
    return this.#runs.watch(streamRun(() => ({ signal: prepared.config.signal, drive })));
  }

  /**
   * `resumeToolLoop`. Where the options say who owns what, a run goes on on behalf of its owner: a request of the
   * owner's, or one that may answer for the owner, which is recorded and otherwise leaves no trace.
   *
   * @throws ToolwrightError `RunNotAllowed` (523) for any other request; nothing has run.
   */
  async resume(
    state: RunState | undefined,
    answers: readonly Answer[],
    options: AnswerOptions = {},
  ): Promise<ToolLoopResult> {
    const { answeredBy, asking } = readAnswerOptions(options);
    const prepared = this.#runs.prepare(asking);
    const run = this.#runs.certain(state, prepared.config);
    const resumed = await this.#runs.resume(prepared, run, answeredBy);
    return this.#runs.track(resumeToolLoop(resumed.config, state, answers, resumed.options));
  }

  /** `streamResumedToolLoop`, for whom `resume` does it. */
  streamResumed(
    state: RunState | undefined,
    answers: readonly Answer[],
    options: AnswerOptions = {},
  ): ToolLoopStream {
    const { answeredBy, asking } = readAnswerOptions(options);
    const prepared = this.#runs.prepare(asking);
    const drive: Drive = async (signal, sink) => {
      const run = this.#runs.certain(state, prepared.config);
      const resumed = await this.#runs.resume(prepared, run, answeredBy);
      const config = { ...resumed.config, signal };
      const read = readResume(resumed);
      const record = await resumeWith(config, state, { ...read, answers });
      return driveRun(config, { record }, { scope: resumed.options.scope, sink });
    };
    return this.#runs.watch(streamRun(() => ({ signal: prepared.config.signal, drive })));
  }

  /** `resumeStoredRun`, out of the module's `store`, for whom `resume` does it. */
  async resumeStored(
    runId: string,
    answers: readonly Answer[],
    options: AnswerOptions = {},
  ): Promise<ToolLoopResult> {
    const { answeredBy, asking } = readAnswerOptions(options);
    const store = this.#runs.storeOf(asking);
    checkOptions({ store, runId }, STORED_RUN);
    const prepared = this.#runs.prepare(asking);
    const run = await this.#runs.stored(runId, store);
    const resumed = await this.#runs.resume(prepared, run, answeredBy);
    const { scope = {}, ...read } = readResume(resumed);
    const { leaseMs } = resumed.config;
    const resumption = { ...read, scope, answers };
    const deps = { scope, left: this.#runs.leaving };
    return this.#runs.track(driveStoredRun(resumed.config, { store, runId, leaseMs }, { resumption, deps }));
  }

  /**
   * Whether a request may answer a run, and in what scope the run then goes on: what `Conversation.answer` and
   * `resumeToolLoop` take. `run` says whose it is, and what it waits for.
   *
   * @throws ToolwrightError `RunNotAllowed` (523) where it may not.
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
    const { answeredBy: by, asking } = readAnswerOptions(options);
    const { owner: _, ...answer } = await this.#runs.answering(this.#runs.asker(asking), run, by);
    return answer;
  }

  /**
   * The scope of single calls on behalf of a request: what `registry.executeWithContext` takes. Within the
   * handler of an HTTP request it is not needed for the request itself, only for its `data` and its owner.
   */
  scopeOf(request: object, scope: CallScope = {}): CallScope {
    return this.#runs.scopeOf(request, scope);
  }

  /** The tools that a request sees, by the `visible` of the options: what `registry.view` and MCP's `visible` take. */
  async visibleTo(request?: object): Promise<NameFilter> {
    return { allow: await this.#runs.visibleTo(request) };
  }

  /**
   * Registers the tools of modules that were loaded lazily, because Nest tells nobody that it loaded one. What was
   * found before stays as it is.
   *
   * @throws ToolDeclarationError with every mistake in them; then nothing is registered.
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
