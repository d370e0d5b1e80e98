import type { CallScope } from '../contract/call-scope.js';
import type { InjectionToken, ScopedResolver } from '../contract/instance-resolver.js';
import type { Logger } from '../contract/logger.js';
import type { Message } from '../contract/message.js';
import type { SchemaSource, ValueOf } from '../contract/standard-schema.js';
import {
  type ProgressUpdate,
  type Question,
  ToolContext,
  type ToolContextData,
} from '../contract/tool-context.js';
import type { ToolDefinition } from '../contract/tool-definition.js';
import type { ToolResult } from '../contract/tool-result.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { onAbort } from '../kernel/on-abort.js';
import { callListener } from './call-listener.js';
import type { CallLog } from './call-log.js';
import { heardLogger } from './heard-logger.js';
import type { CallEnvironment, CallRequest } from './invocation.js';
import { Replay } from './replay.js';
import { settleWork } from './settle-work.js';
import { silentLogger } from './silent-logger.js';

const NO_DATA: ToolContextData = Object.freeze({});
const NO_MESSAGES: readonly Message[] = Object.freeze([]);

/** What the context of a call is made from. */
export interface ContextParts {
  readonly call: CallRequest;
  readonly tool: ToolDefinition;
  readonly environment: CallEnvironment;
  readonly log: CallLog;
  /** The arguments as they were sent: what the tool does to its own does not show here. */
  readonly sent: unknown;
  /** What outlives the reply; absent where nobody hears of its end, so that it is waited for. */
  readonly task?: BackgroundWork;
}

/** The work of a call that outlives its reply. */
export interface BackgroundWork {
  /** None as long as nothing was started. */
  readonly id: string | undefined;
  /** It has ended; nothing more is heard of it. */
  readonly isOver: boolean;
  begin(work: () => unknown, acknowledgement: string | undefined): ToolResult | Promise<ToolResult>;
  report(update: ProgressUpdate): void;
}

/** Hears why a call was stopped. */
export type StopListener = (reason: unknown) => void;

/** The context of one call. Whatever costs something is built when the tool first asks for it. */
export class CallContext extends ToolContext {
  readonly #parts: ContextParts;
  #controller: AbortController | undefined;
  #signal: AbortSignal | undefined;
  #container: ScopedResolver | undefined;
  #messages: readonly Message[] | undefined;
  #stopped: { readonly reason: unknown } | undefined;
  #stopListeners: Set<StopListener> | undefined;
  #unfollow: (() => void) | undefined;
  #isOver = false;
  #replay: Replay | undefined;

  constructor(parts: ContextParts) {
    super();
    this.#parts = parts;
  }

  get #scope(): CallScope {
    return this.#parts.environment.scope;
  }

  get callId(): string {
    return this.#parts.call.id;
  }

  get toolName(): string {
    return this.#parts.call.name;
  }

  get channel(): string | undefined {
    return this.#scope.channel;
  }

  get chatId(): string | undefined {
    return this.#scope.chatId;
  }

  get conversationId(): string | undefined {
    return this.#scope.conversationId;
  }

  get messages(): readonly Message[] {
    this.#messages ??= Object.isFrozen(this.#scope.messages)
      ? this.#scope.messages
      : Object.freeze([...(this.#scope.messages ?? NO_MESSAGES)]);
    return this.#messages ?? NO_MESSAGES;
  }

  get data(): ToolContextData {
    return this.#scope.data ?? NO_DATA;
  }

  get attempt(): number {
    return this.#parts.environment.attempt ?? 1;
  }

  get taskId(): string | undefined {
    return this.#parts.task?.id;
  }

  get rawArguments(): unknown {
    return this.#parts.sent;
  }

  get logger(): Logger {
    const logger = this.#parts.environment.logger ?? silentLogger;
    const { onLog } = this.#scope;
    return onLog
      ? heardLogger(logger, (entry) => onLog(entry, { callId: this.callId, tool: this.toolName }))
      : logger;
  }

  get signal(): AbortSignal {
    this.#signal ??= this.#openSignal();
    return this.#signal;
  }

  // Not `AbortSignal.any`: Node keeps what that makes for ever, once a tool has left a listener on it.
  #openSignal(): AbortSignal {
    const controller = new AbortController();
    this.#controller = controller;
    const { signal: outer } = this.#scope;
    const follow = (): void => controller.abort(outer?.reason);
    if (this.#stopped !== undefined) controller.abort(this.#stopped.reason);
    else if (outer?.aborted) follow();
    else if (outer !== undefined && !this.#isOver) this.#unfollow = onAbort(outer, follow);
    return controller.signal;
  }

  /** Whether the call was answered before its tool had ended. For the framework. */
  get isStopped(): boolean {
    return this.#stopped !== undefined;
  }

  progress(update: ProgressUpdate): void {
    const { task, log } = this.#parts;
    // The call has been answered as timed out or aborted, or has completed: nothing is left to hear of it.
    if (this.isStopped || task?.isOver) return;
    callListener(
      () => this.#scope.onUpdate?.(update, { callId: this.callId, tool: this.toolName }),
      (error) => log.ignored('A listener for tool progress threw', { error }),
    );
    task?.report(update);
  }

  resolve<Instance>(token: InjectionToken<Instance>): Instance {
    const { scope } = this.#parts.environment;
    if (scope.container !== undefined) return scope.container.resolve(token);
    const { container } = this.#parts.tool;
    if (container === undefined) {
      throw new ToolwrightError(
        'ToolExecutionFailed',
        `context.resolve: the tool '${this.toolName}' came without a container; give one in the scope: { container }.`,
      );
    }
    this.#container ??= container.createScope?.();
    return (this.#container ?? container).resolve(token);
  }

  background(work: () => unknown, acknowledgement?: string): ToolResult | Promise<ToolResult> {
    if (typeof work !== 'function') throw new TypeError('context.background: its work is a function');
    const { task, tool, environment } = this.#parts;
    return task ? task.begin(work, acknowledgement) : settleWork({ tool, environment, context: this }, work);
  }

  async ask<Source extends SchemaSource>(question: Question<Source>): Promise<ValueOf<Source>> {
    // Not noted as a refusal, which would be the call's own result: that is the acknowledgement.
    if (this.taskId !== undefined) throw new ToolwrightError('NotExecutableHere', this.#tooLateToAsk);
    return (await this.#replaying().ask(question)) as ValueOf<Source>;
  }

  async once<Value>(key: string, work: () => Value | Promise<Value>): Promise<Value> {
    return this.#replaying().once(key, work);
  }

  /** What was asked and done once, where the method asked or did anything so. For the framework. */
  get replay(): Replay | undefined {
    return this.#replay;
  }

  #replaying(): Replay {
    this.#replay ??= new Replay({
      tool: this.toolName,
      journal: this.#parts.call.journal,
      refusal: () => this.#cannotAsk(),
    });
    return this.#replay;
  }

  #cannotAsk(): string | undefined {
    if (this.isStopped) return this.#tooLateToAsk;
    if (this.#parts.environment.canSuspend) return undefined;
    return `The tool '${this.toolName}' asks a question, and nobody can answer here.`;
  }

  get #tooLateToAsk(): string {
    return `The tool '${this.toolName}' asks a question, and its call has been answered already.`;
  }

  /** Tells the tool to stop, if it listens. For the framework. */
  stop(reason: unknown): void {
    this.#stopped = { reason };
    this.#controller?.abort(reason);
    for (const listener of this.#stopListeners ?? []) listener(reason);
  }

  /** Tells of `stop`, which costs less than a signal; gives what ends the listening. For the framework. */
  onStop(listener: StopListener): () => void {
    if (this.#stopped !== undefined) listener(this.#stopped.reason);
    this.#stopListeners ??= new Set();
    this.#stopListeners.add(listener);
    return () => void this.#stopListeners?.delete(listener);
  }

  /** Whether something was opened that has to be closed. For the framework. */
  get isOpen(): boolean {
    return this.#container !== undefined;
  }

  /** Takes no more notice of the run, once the call has completed. For the framework. */
  unfollow(): void {
    this.#isOver = true;
    this.#unfollow?.();
  }

  /** Closes what the call opened, once it has completed; a failure concerns nobody else. For the framework. */
  async close(): Promise<void> {
    this.unfollow();
    const container = this.#container;
    this.#container = undefined;
    try {
      await container?.dispose();
    } catch (error) {
      this.#parts.log.ignored('A call’s container could not be disposed', { error });
    }
  }
}
