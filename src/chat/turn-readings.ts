import type { NumberedEvent } from '../contract/conversation-log.js';
import type { JsonObject } from '../contract/json-schema.js';
import type { Conversations, ConversationView } from '../conversation/conversations.js';

/** Where the events of a chat are read. */
export interface EventSource {
  readonly conversations: Pick<Conversations, 'events'>;
  readonly chatId: string;
  readonly signal: AbortSignal;
}

/** An event of a turn; one that is not `isNews` was before what the reader asked for. */
export interface ReadEvent extends NumberedEvent {
  readonly isNews: boolean;
}

/** The turn that an entry begins, until it ends or waits. */
export async function* readPromptedTurn(
  { conversations, chatId, signal }: EventSource,
  { key, after }: { readonly key: string; readonly after: number },
): AsyncGenerator<ReadEvent, undefined> {
  let hasBegun = false;
  for await (const { number, event } of conversations.events(chatId, { after, signal })) {
    hasBegun ||= event.type === 'turn-start' && (event.turn as JsonObject).key === key;
    if (!hasBegun) continue;
    yield { number, event, isNews: true };
    if (isPause(event)) return;
  }
}

/** The turn that gets answers, from where it goes on with them; what was before is no news. */
export async function* readAnsweredTurn(
  { conversations, chatId, signal }: EventSource,
  { key, lastEvent }: { readonly key: string; readonly lastEvent: number },
): AsyncGenerator<ReadEvent, undefined> {
  const { begin } = await findTurn({ conversations, chatId, signal }, lastEvent);
  let isNews = false;
  for await (const { number, event } of conversations.events(chatId, { after: begin, signal })) {
    const isRefused = event.type === 'answers-refused' && event.key === key;
    // The pause that was answered may be told late, and the turn may end without going on.
    isNews ||= number > lastEvent && (event.type === 'run-start' || event.type === 'turn-end' || isRefused);
    yield { number, event, isNews };
    if (isNews && (isPause(event) || isRefused)) return;
  }
}

/** The rest of a turn for a reader that comes back; nothing where there is none. */
export async function* readRest(
  { conversations, chatId, signal }: EventSource,
  { view, lastEvent }: { readonly view: ConversationView; readonly lastEvent: number | undefined },
): AsyncGenerator<ReadEvent, undefined> {
  const seen = Math.min(lastEvent ?? 0, view.lastEvent);
  const place = await findTurn(
    { conversations, chatId, signal },
    lastEvent === undefined ? view.lastEvent : seen,
  );
  const { pausedAt } = await findTurn({ conversations, chatId, signal }, view.lastEvent);
  // A pause that has been answered is none.
  const passed = view.status === 'suspended' && pausedAt !== undefined ? pausedAt - 1 : view.lastEvent;
  for await (const { number, event } of conversations.events(chatId, { after: place.begin, signal })) {
    yield { number, event, isNews: number > seen };
    if (event.type === 'turn-end' || (event.type === 'turn-suspended' && number > passed)) return;
  }
}

/** The number before the turn that is open after an event, and where it paused, unless it has gone on. */
async function findTurn(
  { conversations, chatId, signal }: EventSource,
  upTo: number,
): Promise<{ readonly begin: number; readonly pausedAt: number | undefined }> {
  let begin = upTo;
  let pausedAt: number | undefined;
  for await (const { number, event } of conversations.events(chatId, { upTo, signal })) {
    if (event.type === 'turn-start') begin = number - 1;
    if (event.type === 'turn-end') begin = upTo;
    if (event.type === 'turn-suspended') pausedAt = number;
    if (event.type === 'turn-start' || event.type === 'run-start') pausedAt = undefined;
  }
  return { begin, pausedAt };
}

function isPause({ type }: JsonObject): boolean {
  return type === 'turn-end' || type === 'turn-suspended';
}
