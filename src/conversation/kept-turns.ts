import { addSpending, type Spending } from '../contract/budget.js';
import type {
  InboxContent,
  KeptConversation,
  KeptMessage,
  KeptTurn,
  OpenTurn,
} from '../contract/conversation-log.js';
import type { Message } from '../contract/llm-provider.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { turnMessage } from './events.js';

/** A turn of a history, and where in its messages it begins. */
export interface HistoryTurn extends KeptTurn {
  readonly begins: number;
}

/** What was said, and in which turns. */
interface ConversationHistory {
  readonly messages: readonly Message[];
  readonly turns: readonly HistoryTurn[];
}

/** Takes apart what a log keeps as one: models are sent messages, and nothing about turns. */
export function historyOf({ messages }: Pick<KeptConversation, 'messages'>): ConversationHistory {
  const turns: HistoryTurn[] = [];
  const said = messages.map((kept, begins): Message => {
    if (kept.turn === undefined) return kept;
    const { turn, ...message } = kept;
    turns.push({ ...turn, begins });
    return message;
  });
  return { messages: said, turns };
}

/** What the model is told of what began a turn. */
export function promptOf({ entry: { content } }: OpenTurn): readonly Message[] {
  const said = content.kind === 'answers' ? undefined : turnMessage(content);
  return said === undefined ? [] : [said];
}

/** What a conversation has spent: by the turns of its history, those that they replaced, and the one that follows. */
export function spentIn(
  turns: readonly HistoryTurn[],
  next: Spending | undefined,
): { readonly spent?: Spending } {
  const spent = addSpending(turns.at(-1)?.spentSoFar, next);
  return spent === undefined ? {} : { spent };
}

/** Messages that a turn has added, as a log keeps them. */
export function messagesOfTurn(messages: readonly Message[], turn: KeptTurn): readonly KeptMessage[] {
  const [first, ...others] = messages;
  return first === undefined ? [] : [{ ...first, turn }, ...others];
}

/**
 * The history that a turn goes on from: all of it, or what was before the turn that it replaces.
 *
 * @throws ToolwrightError `ConversationNotReady` (526) where the history has no such turn.
 */
function historyBefore(history: ConversationHistory, replaces: string | undefined): readonly Message[] {
  if (replaces === undefined) return history.messages;
  const turn = history.turns.find(({ key }) => key === replaces);
  if (turn !== undefined) return history.messages.slice(0, turn.begins);
  throw new ToolwrightError(
    'ConversationNotReady',
    `The history has no turn that '${replaces}' began, so that nothing can take its place.`,
  );
}

/**
 * What was said before the turn that this began.
 *
 * @throws ToolwrightError `ConversationNotReady` (526) where it replaces a turn that is not there.
 */
export function messagesBefore(
  kept: Pick<KeptConversation, 'messages'>,
  content: InboxContent,
): readonly Message[] {
  return historyBefore(historyOf(kept), content.kind === 'prompt' ? content.replaces : undefined);
}

/**
 * Whether a prompt can take the place that it names; one that was sent before may have taken it already.
 *
 * @throws ToolwrightError `ConversationNotReady` (526).
 */
export function checkReplaced(
  kept: KeptConversation | undefined,
  { key, replaces }: { readonly key: string; readonly replaces: string },
): void {
  const history = historyOf(kept ?? { messages: [] });
  const entries = [kept?.turn?.entry, ...(kept?.inbox ?? []), ...history.turns];
  if (!entries.some((entry) => entry?.key === key)) historyBefore(history, replaces);
}
