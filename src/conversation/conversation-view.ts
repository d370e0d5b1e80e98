import type { Spending } from '../contract/budget.js';
import type { PendingCall } from '../contract/call.js';
import type { KeptConversation, OpenTurn } from '../contract/conversation-log.js';
import type { Message } from '../contract/llm-provider.js';
import type { CheckpointStore } from '../contract/run-checkpoint.js';
import { askingStep } from '../loop/budget-question.js';
import { type HistoryTurn, historyOf, promptOf, spentIn } from './kept-turns.js';

/** A conversation as anybody may read it. */
export interface ConversationView {
  readonly conversationId: string;
  /** The owner of what entered it first. */
  readonly owner?: unknown;
  /**
   * `running`: a turn is being taken, or will be; `suspended`: it waits for answers; `idle`: nothing is left to be
   * done.
   */
  readonly status: 'idle' | 'running' | 'suspended';
  /** What was said in turns that have ended, and what began the one that runs or waits. */
  readonly messages: readonly Message[];
  /** The turns that have ended, and where in `messages` each begins; those of older versions are missing. */
  readonly history: readonly HistoryTurn[];
  /** The turn that runs or waits, and where in `messages` it begins; turns that it replaces stand before it. */
  readonly turn?: OpenTurn & Pick<HistoryTurn, 'begins'>;
  /** What the turn waits for. */
  readonly pending: readonly PendingCall[];
  /** Number of the turn's request to the model that made the calls of `pending`. */
  readonly iteration?: number;
  /** What its turns have spent, also those that others have replaced; only where they have a budget. */
  readonly spent?: Spending;
  /** What waits for a turn. */
  readonly inbox: KeptConversation['inbox'];
  /** Turns begun so far. */
  readonly turns: number;
  /** Number of the last event: read on from here. */
  readonly lastEvent: number;
}

/** A kept conversation with what the run of its turn waits for. */
export async function viewOf(kept: KeptConversation, store: CheckpointStore): Promise<ConversationView> {
  const { conversationId, owner, inbox, turns, turn, lastEvent } = kept;
  const { messages: said, turns: history } = historyOf(kept);
  const run = turn && (await store.load(turn.runId));
  const isWaiting = run !== undefined && !inbox.some(({ content }) => content.kind === 'answers');
  const isOpen = turn !== undefined || inbox.length > 0;
  const status = isWaiting && !kept.isAbortAsked ? 'suspended' : isOpen ? 'running' : 'idle';
  const owned = owner === undefined ? {} : { owner };
  const pending = run?.pending ?? [];
  const messages = turn ? [...said, ...promptOf(turn)] : said;
  const open = {
    ...spentIn(history, run?.spent),
    ...(turn && { turn: { ...turn, begins: said.length } }),
    ...(run && { iteration: askingStep(run) }),
  };
  return { conversationId, ...owned, ...open, status, messages, history, pending, inbox, turns, lastEvent };
}
