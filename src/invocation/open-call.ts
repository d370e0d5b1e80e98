import type { AsyncCallback, AsyncTool, ContextualTool } from '../contract/tool.js';
import type { ToolContext } from '../contract/tool-context.js';
import type { ToolDefinition } from '../contract/tool-definition.js';
import type { ToolResult } from '../contract/tool-result.js';
import { nextTurn } from '../kernel/next-turn.js';
import { CallContext } from './call-context.js';
import { CallTask } from './call-task.js';
import { ExclusiveTurn } from './exclusive-turn.js';
import { failedResult } from './failed-result.js';
import type { PerformedCall } from './performed-call.js';
import type { PermittedCall } from './permitted-call.js';

/**
 * What a running call holds: its context, and the work that may outlive it. Everything is given back when the call
 * has completed, which for started work is after its answer; a turn on a shared object ends with the body.
 */
export class OpenCall {
  readonly context: CallContext;
  readonly #permitted: PermittedCall;
  /** Absent where nobody hears of completions. */
  readonly #task: CallTask | undefined;

  constructor(permitted: PermittedCall) {
    this.#permitted = permitted;
    const { tool, call, environment, log, sent } = permitted;
    const listener = environment.onAsyncResult;
    this.#task =
      listener &&
      new CallTask({
        permitted,
        listener,
        context: () => this.context,
        onDelivered: () => void this.close(),
      });
    this.context = new CallContext({ call, tool, environment, log, task: this.#task, sent });
    if (this.#task !== undefined) tasksByContext.set(this.context, this.#task);
  }

  /** Whether the whole method is work that outlives its answer. */
  get isBackground(): boolean {
    return this.#permitted.tool.background === true && this.#task !== undefined;
  }

  /**
   * Runs the body. A shared object has its turn for that, and is told of this call first; `undefined` where an
   * abort ended the wait for it, and an error where that would never have ended.
   */
  inTurn<Value>(body: () => Value | Promise<Value>): Value | Promise<Value | ToolResult | undefined> {
    const { tool } = this.#permitted;
    return isContextual(tool) || isAsync(tool) ? this.#inTurnOn(tool, body) : body();
  }

  async #inTurnOn<Value>(
    shared: ToolDefinition,
    body: () => Value | Promise<Value>,
  ): Promise<Value | ToolResult | undefined> {
    const { environment, log } = this.#permitted;
    const callback: AsyncCallback = (context, result) =>
      this.#calledBack(callback, context)?.callBack(result);
    const turn = new ExclusiveTurn({
      shared,
      enter: () => this.#tell(callback),
      onError: (error) => log.ignored('A tool threw when it was told again of its call', { error }),
    });
    if (this.#task !== undefined) tasks.set(turn, this.#task);
    const beginning = await turn.begin(environment.scope.signal);
    if (beginning === 'begun' && !this.context.isStopped) return turn.run(body);
    turn.end();
    return beginning === 'stuck' ? failedResult('ToolDeadlock', ringOf(shared.name)) : undefined;
  }

  #tell(callback: AsyncCallback): void {
    const { tool, environment } = this.#permitted;
    const { channel, chatId } = environment.scope;
    if (isContextual(tool) && channel && chatId) tool.setContext(channel, chatId);
    if (!isAsync(tool) || this.#task === undefined || this.isBackground) return;
    latest.set(tool, callback);
    tool.setCallback(callback);
  }

  /**
   * Whose completion it is. A tool that keeps its callback in a field gives every call the latest: then the
   * context that it passes on, or the turn in which it began to work, says which call is meant.
   */
  #calledBack(callback: AsyncCallback, context: ToolContext | undefined): CallTask | undefined {
    const { tool } = this.#permitted;
    const told = context && tasksByContext.get(context);
    if (told !== undefined) return told;
    const began = latest.get(tool) === callback ? ExclusiveTurn.on(tool) : undefined;
    const other = began && tasks.get(began);
    return other === undefined || other.isSettled ? this.#task : other;
  }

  /** Starts the whole method as work in the background and gives the acknowledgement. */
  startMethod(): ToolResult | Promise<ToolResult> {
    const { tool, args } = this.#permitted;
    return this.context.background(async () => {
      // The acknowledgement goes first, however long the method takes until it first waits for something.
      await nextTurn();
      return this.context.isStopped ? undefined : this.inTurn(() => tool.execute(args, this.context));
    });
  }

  /** The id of the work that completes later than this end of the call; none where nothing does. */
  outlivedBy({ status, result }: PerformedCall): string | undefined {
    const task = this.#task;
    // What was stopped together with its call has no other end than that.
    if (task === undefined || status === 'timed_out' || status === 'aborted') return undefined;
    if (task.id === undefined && status === 'success' && result.async && isAsync(this.#permitted.tool))
      task.awaitCallback();
    return task.id;
  }

  /** The call has its answer; where a completion is still to come, it stays open until then. */
  async answer({ result, taskId }: PerformedCall): Promise<void> {
    if (taskId === undefined) {
      this.#task?.discard(result);
      return this.close();
    }
    // After the answer has gone up the staircase, not before.
    setImmediate(() => this.#task?.release());
  }

  /** Gives everything back. */
  close(): Promise<void> {
    return this.context.close();
  }
}

function ringOf(tool: string): string {
  return `The tool '${tool}' was not run: a call of it is under way that waits for the tool which made this call.`;
}

/** The callback that a shared object has now. */
const latest = new WeakMap<object, AsyncCallback>();
/** What completes the call of a turn, and of a context. */
const tasks = new WeakMap<ExclusiveTurn, CallTask>();
const tasksByContext = new WeakMap<ToolContext, CallTask>();

function isContextual(tool: ToolDefinition): tool is ToolDefinition & ContextualTool {
  return 'setContext' in tool && typeof tool.setContext === 'function';
}

function isAsync(tool: ToolDefinition): tool is ToolDefinition & AsyncTool {
  return 'setCallback' in tool && typeof tool.setCallback === 'function';
}
