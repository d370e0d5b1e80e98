import { setImmediate as nextTurn } from 'node:timers/promises';
import type { AsyncTool, ContextualTool } from '../contract/tool.js';
import type { ToolDefinition } from '../contract/tool-definition.js';
import type { ToolResult } from '../contract/tool-result.js';
import { CallContext } from './call-context.js';
import { CallTask } from './call-task.js';
import { beginTurn, type EndTurn } from './exclusive-turn.js';
import { MAX_TIMER_MS } from './max-timer-ms.js';
import type { PerformedCall } from './performed-call.js';
import type { PermittedCall } from './permitted-call.js';

/** How long a shared object waits for its callback where no `toolTimeoutMs` is set: the loop's default. */
const DEFAULT_TURN_MS = 120_000;

/**
 * What a running call holds: its context, its turn on a shared object, and the work that may outlive it.
 * Everything is given back when the call has completed, which for started work is after its answer.
 */
export class OpenCall {
  readonly context: CallContext;
  readonly #permitted: PermittedCall;
  /** Absent where nobody hears of completions. */
  readonly #task: CallTask | undefined;
  #endTurn: EndTurn | undefined;
  #limit: NodeJS.Timeout | undefined;

  constructor(permitted: PermittedCall) {
    this.#permitted = permitted;
    const { tool, call, environment, log } = permitted;
    const listener = environment.onAsyncResult;
    this.#task =
      listener &&
      new CallTask({
        permitted,
        listener,
        context: () => this.context,
        onDelivered: () => void this.close(),
      });
    this.context = new CallContext({ call, tool, environment, log, task: this.#task });
  }

  /** Whether the whole method is work that outlives its answer. */
  get isBackground(): boolean {
    return this.#permitted.tool.background === true && this.#task !== undefined;
  }

  /**
   * Waits for the tool's turn if it is a shared object, and tells it of this call.
   * Returns whether the tool may run: an abort ends the wait, and then it may not.
   */
  async begin(): Promise<boolean> {
    const { tool, environment } = this.#permitted;
    if (!isContextual(tool) && !isAsync(tool)) return true;
    const { signal, channel, chatId } = environment.scope;
    const endTurn = await beginTurn(tool, signal);
    if (signal?.aborted || this.context.isStopped) {
      endTurn();
      return false;
    }
    this.#endTurn = endTurn;
    if (isContextual(tool) && channel && chatId) tool.setContext(channel, chatId);
    if (isAsync(tool) && this.#task && !this.isBackground)
      tool.setCallback((_context, result) => this.#task?.callBack(result));
    return true;
  }

  /** Starts the whole method as work in the background and gives the acknowledgement. */
  startMethod(): ToolResult | Promise<ToolResult> {
    const { tool, args } = this.#permitted;
    return this.context.background(async () => {
      // The acknowledgement goes first, however long the method takes until it first waits for something.
      await nextTurn();
      if (this.context.isStopped || !(await this.begin())) return undefined;
      return tool.execute(args, this.context);
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
    this.#limitTurn();
    // After the answer has gone up the staircase, not before.
    setImmediate(() => this.#task?.release());
  }

  /** Gives everything back. */
  async close(): Promise<void> {
    clearTimeout(this.#limit);
    this.#endTurn?.();
    await this.context.close();
  }

  /** A tool whose callback never comes must not block its other calls for ever. */
  #limitTurn(): void {
    if (this.#endTurn === undefined) return;
    const wait = this.#permitted.environment.toolTimeoutMs ?? DEFAULT_TURN_MS;
    this.#limit = setTimeout(this.#endTurn, Math.min(wait, MAX_TIMER_MS)).unref();
  }
}

function isContextual(tool: ToolDefinition): tool is ToolDefinition & ContextualTool {
  return 'setContext' in tool && typeof tool.setContext === 'function';
}

function isAsync(tool: ToolDefinition): tool is ToolDefinition & AsyncTool {
  return 'setCallback' in tool && typeof tool.setCallback === 'function';
}
