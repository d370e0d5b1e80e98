import { Inject, Injectable } from '@nestjs/common';
import type { CallScope } from '../../contract/call-scope.js';
import type { Message } from '../../contract/message.js';
import type { RunState } from '../../contract/run-state.js';
import type { Answer } from '../../contract/suspension.js';
import type { ToolLoopResult } from '../../loop/loop-result.js';
import { resumeStoredRun } from '../../loop/resume-stored-run.js';
import { resumeToolLoop } from '../../loop/resume-tool-loop.js';
import { runToolLoop } from '../../loop/run-tool-loop.js';
import { streamResumedToolLoop } from '../../loop/stream-resumed-tool-loop.js';
import type { ToolLoopStream } from '../../loop/stream-run.js';
import { streamToolLoop } from '../../loop/stream-tool-loop.js';
import { ApplicationTools } from './application-tools.js';
import { type RunOptions, RunSurroundings } from './run-surroundings.js';

/**
 * The loop of a Nest application: over the application's tools, with the module's options, on behalf of the
 * request whose handler calls. Runs that are under way are waited for when the application shuts down.
 *
 * @throws ToolDeclarationError where neither the module nor the run has a provider and a model; otherwise what
 *   the function of the same job throws.
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
  readonly #surroundings: RunSurroundings;
  readonly #tools: ApplicationTools;

  constructor(
    @Inject(RunSurroundings) surroundings: RunSurroundings,
    @Inject(ApplicationTools) tools: ApplicationTools,
  ) {
    this.#surroundings = surroundings;
    this.#tools = tools;
  }

  /** `runToolLoop` over the application's tools. */
  async run(messages: readonly Message[], options: RunOptions = {}): Promise<ToolLoopResult> {
    const { config, scope } = this.#surroundings.of(options);
    return this.#surroundings.track(runToolLoop(config, messages, scope));
  }

  /** `streamToolLoop` over the application's tools. */
  stream(messages: readonly Message[], options: RunOptions = {}): ToolLoopStream {
    const { config, scope } = this.#surroundings.of(options);
    return this.#surroundings.watch(streamToolLoop(config, messages, scope));
  }

  /** `resumeToolLoop`. The run goes on on behalf of the request that brings the answers. */
  async resume(
    state: RunState | undefined,
    answers: readonly Answer[],
    options: RunOptions = {},
  ): Promise<ToolLoopResult> {
    const { config, scope } = this.#surroundings.of(options);
    return this.#surroundings.track(resumeToolLoop(config, state, answers, scope));
  }

  /** `streamResumedToolLoop`. */
  streamResumed(
    state: RunState | undefined,
    answers: readonly Answer[],
    options: RunOptions = {},
  ): ToolLoopStream {
    const { config, scope } = this.#surroundings.of(options);
    return this.#surroundings.watch(streamResumedToolLoop(config, state, answers, scope));
  }

  /** `resumeStoredRun`, out of the module's `store`. */
  async resumeStored(
    runId: string,
    answers: readonly Answer[],
    options: RunOptions = {},
  ): Promise<ToolLoopResult> {
    const { config, scope, store } = this.#surroundings.ofStored(options);
    return this.#surroundings.track(resumeStoredRun(config, { store, runId }, answers, scope));
  }

  /**
   * The scope of single calls on behalf of a request: what `registry.executeWithContext` takes. Within the
   * handler of an HTTP request it is not needed for the request itself, only for its `data`.
   */
  scopeOf(request: object, scope: CallScope = {}): CallScope {
    return this.#surroundings.scopeOf(request, scope);
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
    await this.#tools.complete();
  }
}
