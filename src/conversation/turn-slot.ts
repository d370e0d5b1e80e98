import type { CallScope } from '../contract/call-scope.js';
import type { Message } from '../contract/message.js';
import type { ToolContext } from '../contract/tool-context.js';
import type { ToolResult } from '../contract/tool-result.js';
import { anySignal } from '../loop/any-signal.js';
import type { ToolLoopResult } from '../loop/loop-result.js';
import type { ConversationConfig } from './conversation-config.js';
import type { SuspendedStanding } from './conversation-snapshot.js';
import type { EventHub } from './event-hub.js';
import { HistoryView } from './history-view.js';
import { OpenTurn, type TurnParts } from './open-turn.js';
import { runTurn } from './run-turn.js';

/** What turns need to run. */
export interface TurnSlotParts {
  readonly config: ConversationConfig;
  readonly events: EventHub;
  /** Work that a turn has started in this scope has completed. */
  readonly onCompletion: (scope: CallScope, context: ToolContext | undefined, result: ToolResult) => void;
  readonly onStart: () => void;
  /** A turn runs no more, but may be suspended; a listener may have begun another. */
  readonly onEnd: () => void;
}

/** The place of the one turn that runs or is suspended, and what was said in all turns so far. */
export class TurnSlot {
  readonly #parts: TurnSlotParts;
  /** Between turns. */
  #history: HistoryView;
  #open: OpenTurn | undefined;
  #isRunning = false;

  constructor(parts: TurnSlotParts) {
    this.#parts = parts;
    this.#history = new HistoryView([...(parts.config.messages ?? [])]);
  }

  /** The turn that runs or is suspended. */
  get open(): OpenTurn | undefined {
    return this.#open;
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  /** What the turn waits for, where it is suspended. */
  get suspended(): SuspendedStanding | undefined {
    return this.#isRunning ? undefined : this.#open?.suspended;
  }

  get history(): HistoryView {
    return this.#open?.history ?? this.#history;
  }

  get messages(): readonly Message[] {
    return this.history.messages;
  }

  /** Puts a turn in, in place of the suspended one that it goes on from; it runs or is suspended. */
  put({ signal, ...parts }: Omit<TurnParts, 'hasStore'>): OpenTurn {
    const { signal: always, scope, store } = this.#parts.config;
    const joined = anySignal(always, scope?.signal, signal);
    const open = new OpenTurn({ ...parts, signal: joined, hasStore: store !== undefined });
    this.#open = open;
    this.#isRunning = open.suspended === undefined;
    return open;
  }

  /** Runs the turn that was put in. */
  async run(open: OpenTurn): Promise<ToolLoopResult> {
    const { config, events, onCompletion, onStart, onEnd } = this.#parts;
    const { turn, scope } = open;
    onStart();
    events.tell({ type: 'turn-start', turn });
    try {
      const result = await runTurn(open, {
        config,
        events,
        onAsyncResult: (context, completion) => onCompletion(scope, context, completion),
      });
      this.#leave(open);
      events.tell({ type: 'turn-end', turn, result });
      return result;
    } catch (error) {
      open.fail();
      this.#leave(open);
      events.tell({ type: 'turn-end', turn, error });
      throw error;
    } finally {
      onEnd();
    }
  }

  /** Takes the turn out, though it has not ended. */
  clear(): void {
    this.#history = this.history;
    this.#open?.leave();
    this.#open = undefined;
    this.#isRunning = false;
  }

  #leave(open: OpenTurn): void {
    open.leave();
    this.#isRunning = false;
    if (open.suspended === undefined) this.clear();
  }
}
