import { addSpending, type Spending } from '../contract/budget.js';
import type { PendingCall } from '../contract/call.js';
import type {
  InboxContent,
  KeptConversation,
  KeptMessage,
  KeptTurn,
  OpenTurn,
} from '../contract/conversation-log.js';
import type { Message } from '../contract/llm-provider.js';
import type { CheckpointStore } from '../contract/run-checkpoint.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { askingStep } from '../loop/budget-question.js';
import { turnMessage } from './events.js';

/** A turn of a history, and where in its messages it begins. */
export interface HistoryTurn extends KeptTurn {
  readonly begins: number;
}

/** A conversation as anybody may read it. */
export interface ConversationView {
  readonly conversationId: string;
  /** The owner of what entered it first. */
  readonly owner?: unknown;
  /** `running`: a turn runs or will; `suspended`: it waits for answers; `idle`: nothing is left to be done. */
  readonly status: 'idle' | 'running' | 'suspended';
  /** The messages of turns that have ended, and what began the one that runs or waits. */
  readonly messages: readonly Message[];
  /** The turns that have ended, and where in `messages` each begins; those of older versions are missing. */
  readonly history: readonly HistoryTurn[];
  /** The turn that runs or waits, and where in `messages` it begins; turns that it replaces stand before it. */
  readonly turn?: OpenTurn & Pick<HistoryTurn, 'begins'>;
  /** What the turn waits for. */
  readonly pending: readonly PendingCall[];
  /** Number of the turn's request to the model that made the calls of `pending`. */
  readonly iteration?: number;
  /** What its turns have spent, also those that others have replaced; only if they have a budget. */
  readonly spent?: Spending;
  /** What waits for a turn. */
  readonly inbox: KeptConversation['inbox'];
  /** Turns begun so far. */
  readonly turns: number;
  /** Number of the last event: read on from here. */
  readonly lastEvent: number;
}

/** A stored conversation with what the run of its turn waits for. */
export async function viewOf(kept: KeptConversation, store: CheckpointStore): Promise<ConversationView> {
  const { conversationId, owner, inbox, turns, turn, lastEvent } = kept;
  const { messages, turns: history } = historyOf(kept);
  const run = turn && (await store.load(turn.runId));
  const isWaiting = run !== undefined && !inbox.some(({ content }) => content.kind === 'answers');
  const isOpen = turn !== undefined || inbox.length > 0;
  return {
    conversationId,
    ...(owner === undefined ? {} : { owner }),
    ...spentIn(history, run?.spent),
    ...(turn && { turn: { ...turn, begins: messages.length } }),
    ...(run && { iteration: askingStep(run) }),
    status: isWaiting && !kept.isAbortAsked ? 'suspended' : isOpen ? 'running' : 'idle',
    messages: turn ? [...messages, ...promptOf(turn)] : messages,
    history,
    pending: run?.pending ?? [],
    inbox,
    turns,
    lastEvent,
  };
}

/** The messages of a conversation, and its turns. */
interface ConversationHistory {
  readonly messages: readonly Message[];
  readonly turns: readonly HistoryTurn[];
}

/** Separates messages and turns, which a log stores together: models are sent nothing about turns. */
export function historyOf(kept: Pick<KeptConversation, 'messages'>): ConversationHistory {
  const turns: HistoryTurn[] = [];
  const messages = kept.messages.map((stored, begins): Message => {
    if (stored.turn === undefined) return stored;
    const { turn, ...message } = stored;
    turns.push({ ...turn, begins });
    return message;
  });
  return { messages, turns };
}

/** The message to the model of what began a turn. */
export function promptOf({ entry: { content } }: OpenTurn): readonly Message[] {
  const said = content.kind === 'answers' ? undefined : turnMessage(content);
  return said === undefined ? [] : [said];
}

/** What the turns of a history have spent, those that they replaced, and the one that follows. */
export function spentIn(
  turns: readonly HistoryTurn[],
  next: Spending | undefined,
): { readonly spent?: Spending } {
  const spent = addSpending(turns.at(-1)?.spentSoFar, next);
  return spent === undefined ? {} : { spent };
}

/** Messages that a turn has added, as a log stores them. */
export function messagesOfTurn(messages: readonly Message[], turn: KeptTurn): readonly KeptMessage[] {
  const [first, ...others] = messages;
  return first === undefined ? [] : [{ ...first, turn }, ...others];
}

/**
 * The messages before the turn that this content begins: all, or those before the turn that it replaces.
 *
 * @throws ToolwrightError `ConversationNotReady` (526) if the history has no such turn.
 */
export function messagesBefore(
  kept: Pick<KeptConversation, 'messages'>,
  content: InboxContent | { readonly replaces: string },
): readonly Message[] {
  const { messages, turns } = historyOf(kept);
  const replaces = 'replaces' in content ? content.replaces : undefined;
  if (replaces === undefined) return messages;
  const turn = turns.find(({ key }) => key === replaces);
  if (turn !== undefined) return messages.slice(0, turn.begins);
  const message = `The history has no turn that '${replaces}' began, so that nothing can take its place.`;
  throw new ToolwrightError('ConversationNotReady', message);
}

/**
 * Checks that a prompt can take the place that it names; a prompt that was sent before may have taken it already.
 *
 * @throws ToolwrightError `ConversationNotReady` (526).
 */
export function checkReplaced(
  kept: KeptConversation | undefined,
  { key, replaces }: { readonly key: string; readonly replaces: string },
): void {
  const { turn, inbox = [], messages = [] } = kept ?? {};
  const entries = [turn?.entry, ...inbox, ...historyOf({ messages }).turns];
  if (!entries.some((entry) => entry?.key === key)) messagesBefore({ messages }, { replaces });
}
