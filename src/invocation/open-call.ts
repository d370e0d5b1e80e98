import type { AsyncTool, ContextualTool } from '../contract/tool.js';
import type { ToolDefinition } from '../contract/tool-definition.js';
import { asyncResult, type ToolResult } from '../contract/tool-result.js';
import { AsyncCompletion } from './async-completion.js';
import { CallContext } from './call-context.js';
import { beginTurn, type EndTurn } from './exclusive-turn.js';
import { MAX_TIMER_MS } from './max-timer-ms.js';
import type { PermittedCall } from './permitted-call.js';
import { settleWork } from './settle-work.js';
import { writeEnding } from './write-ending.js';

/** How long a shared object waits for its callback where no `toolTimeoutMs` is set: the loop's default. */
const DEFAULT_TURN_MS = 120_000;

/**
 * What a running call holds: its context, its turn on a shared object, and the completion that may still
 * come. Everything is given back when the call has completed, which for background work is after its
 * answer.
 */
export class OpenCall {
  readonly context: CallContext;
  readonly #permitted: PermittedCall;
  readonly #completion: AsyncCompletion | undefined;
  #endTurn: EndTurn = () => {};
  #limit: NodeJS.Timeout | undefined;
  #hasBackgroundWork = false;
  #isKept = false;

  constructor(permitted: PermittedCall) {
    this.#permitted = permitted;
    const { tool, call, environment, log, since } = permitted;
    const listener = environment.onAsyncResult;
    this.context = new CallContext({
      call,
      tool,
      environment,
      log,
      background: listener && ((work, acknowledgement) => this.#background(work, acknowledgement)),
    });
    if (listener === undefined) return;
    const onDelivered = (): void => {
      if (this.#isKept) void this.close();
    };
    this.#completion = new AsyncCompletion({
      write: (value) => writeEnding(permitted, { how: 'returned', value }).result,
      log,
      context: this.context,
      listener,
      since,
      onDelivered,
    });
  }

  /**
   * Waits for the tool's turn if it is a shared object, and tells it of this call (seeds 1.2, 1.3, 1.13).
   * Returns whether the tool may run: an abort ends the wait, and then it may not.
   */
  async begin(): Promise<boolean> {
    const { tool, environment } = this.#permitted;
    if (!isContextual(tool) && !isAsync(tool)) return true;
    const { signal } = environment.scope;
    this.#endTurn = await beginTurn(tool, signal);
    if (signal?.aborted) return false;
    const { channel, chatId } = environment.scope;
    if (isContextual(tool) && channel && chatId) tool.setContext(channel, chatId);
    if (isAsync(tool) && this.#completion)
      tool.setCallback((_context, result) => this.#completion?.complete(result));
    return true;
  }

  /** Whether a completion is still to come after this result. */
  awaitsCompletion(result: ToolResult): boolean {
    const isCallback = result.async && isAsync(this.#permitted.tool);
    return this.#completion !== undefined && (this.#hasBackgroundWork || isCallback);
  }

  /** The call has its answer; where a completion is still to come, it stays open until then. */
  async answer(result: ToolResult): Promise<void> {
    if (!this.awaitsCompletion(result)) {
      this.#completion?.discard();
      return this.close();
    }
    this.#keep();
    // After the answer has gone up the staircase, not before.
    setImmediate(() => this.#completion?.release());
  }

  /** Gives everything back. */
  async close(): Promise<void> {
    clearTimeout(this.#limit);
    this.#endTurn();
    await this.context.close();
  }

  #keep(): void {
    this.#isKept = true;
    // A tool whose callback never comes must not block its other calls for ever (design §2, AsyncTool).
    const wait = this.#permitted.environment.toolTimeoutMs ?? DEFAULT_TURN_MS;
    this.#limit = setTimeout(this.#endTurn, Math.min(wait, MAX_TIMER_MS)).unref();
  }

  #background(work: () => unknown, acknowledgement = 'Started; the result will follow.'): ToolResult {
    this.#hasBackgroundWork = true;
    void settleWork(this.#permitted, work).then((result) => this.#completion?.complete(result));
    return asyncResult(acknowledgement);
  }
}

function isContextual(tool: ToolDefinition): tool is ToolDefinition & ContextualTool {
  return 'setContext' in tool && typeof tool.setContext === 'function';
}

function isAsync(tool: ToolDefinition): tool is ToolDefinition & AsyncTool {
  return 'setCallback' in tool && typeof tool.setCallback === 'function';
}
