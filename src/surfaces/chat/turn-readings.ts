import type { PendingCall } from '../../core/contract/call.js';
import type { LoggedEvent } from '../../core/contract/conversation-log.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import { canonicalJson } from '../../core/kernel/json.js';
import type { Conversations } from '../../run/conversation/conversations.js';
import type { ConversationView } from '../../run/conversation/stored-turns.js';

/** Where to read the events of a chat. */
export interface EventSource {
  readonly conversations: Pick<Conversations, 'events' | 'snapshot'>;
  readonly chatId: string;
  readonly signal: AbortSignal;
}

export interface AskedChat {
  readonly view: ConversationView | undefined;
  readonly source: EventSource;
}

/** An event of a turn. `isNews` is false for events before those that the reader requested. */
export interface ReadEvent extends LoggedEvent {
  readonly isNews: boolean;
}

/** Stored events of a chat; without `upTo`, also those that follow. */
export function eventsOf(
  { conversations, chatId, signal }: EventSource,
  after: number,
  upTo?: number,
): ReturnType<Conversations['events']> {
  return conversations.events(chatId, { after, upTo, signal });
}

/** The turn of a prompt, until it ends or is suspended. `view` is the state of the chat after the prompt was stored. */
export async function* readPromptedTurn(
  source: EventSource,
  view: ConversationView,
  key: string,
): AsyncGenerator<ReadEvent, undefined> {
  const { after, upTo } = placeOf(view, key);
  let hasBegun = false;
  for await (const { number, event } of eventsOf(source, after, upTo)) {
    hasBegun ||= event.type === 'turn-start' && event.turn.key === key;
    if (!hasBegun) continue;
    yield { number, event, isNews: true };
    if (isPause(event)) return;
  }
}

/** The range of a turn's events; those of an ended turn may have been removed. */
function placeOf(
  { turn, history, inbox, lastEvent }: ConversationView,
  key: string,
): { readonly after: number; readonly upTo?: number } {
  if (inbox.some((entry) => entry.key === key)) return { after: lastEvent };
  const isOpen = turn?.entry.key === key;
  const begun = isOpen ? turn : history.find((ended) => ended.key === key);
  // An unknown turn failed immediately or was replaced: search all events.
  return { after: (begun?.firstEvent ?? 1) - 1, upTo: isOpen ? undefined : lastEvent };
}

/** The turn that receives answers. Events before it continues with them are not news. */
export async function* readAnsweredTurn(
  source: EventSource,
  view: ConversationView,
  key: string,
): AsyncGenerator<ReadEvent, undefined> {
  let isNews = false;
  for await (const { number, event } of eventsOf(source, await lastTurnBegin(source, view))) {
    const isOurs = event.key === key && (event.type === 'answers-taken' || event.type === 'answers-refused');
    const isEnd = event.type === 'turn-end' && number > view.lastEvent;
    const refusal = isEnd && !isNews ? await laterRefusal(source, key, number) : undefined;
    if (refusal !== undefined) {
      yield refusal;
      return;
    }
    // The turn may end without using the answers.
    isNews ||= isOurs || isEnd;
    yield { number, event, isNews };
    if (isNews && (isPause(event) || event.type === 'answers-refused')) return;
  }
}

/** The refusal of answers that arrived after the turn had ended with other answers. */
async function laterRefusal(source: EventSource, key: string, after: number): Promise<ReadEvent | undefined> {
  const view = await source.conversations.snapshot(source.chatId);
  const waits = view?.inbox.some((entry) => entry.key === key);
  for await (const { number, event } of eventsOf(
    source,
    after,
    waits ? undefined : (view?.lastEvent ?? after),
  )) {
    if (event.type === 'answers-refused' && event.key === key) return { number, event, isNews: true };
    // Entries of the inbox may be processed without an event.
    if (isPause(event)) return laterRefusal(source, key, number);
  }
  return undefined;
}

/** Whether the last turn has received answers with this key, or has them in its inbox. */
export async function hasAnswers(source: EventSource, view: ConversationView, key: string): Promise<boolean> {
  if (view.inbox.some((entry) => entry.key === key)) return true;
  const after = await lastTurnBegin(source, view);
  for await (const { event } of eventsOf(source, after, view.lastEvent))
    if (event.type === 'answers-taken' && event.key === key) return true;
  return false;
}

/** The events of the turn that a reader was reading; those after its `lastEvent` are news. */
export async function* readRest(
  source: EventSource,
  view: ConversationView,
  lastEvent: number | undefined,
): AsyncGenerator<ReadEvent, undefined> {
  const seen = Math.min(lastEvent ?? 0, view.lastEvent);
  const { begin: after } = await findTurn(source, view, lastEvent === undefined ? view.lastEvent : seen);
  const { pausedAt } = await findTurn(source, view);
  // A suspension that was answered does not end the stream.
  const passed = view.status === 'suspended' && pausedAt !== undefined ? pausedAt - 1 : view.lastEvent;
  const upTo = isLeft(view) ? undefined : view.lastEvent;
  for await (const { number, event } of eventsOf(source, after, upTo)) {
    if (number === pausedAt && view.status === 'suspended') {
      // A question changes if its tool has changed.
      const before = 'pending' in event ? (event.pending as readonly PendingCall[]) : [];
      const known = new Set(before.map((wait) => canonicalJson(wait)));
      const changed = view.pending.filter((wait) => !known.has(canonicalJson(wait)));
      const now = [...suspensionsOf(changed), { ...event, pending: view.pending }];
      for (const shown of now) yield { number, event: shown, isNews: number > seen } as unknown as ReadEvent;
      return;
    }
    yield { number, event, isNews: number > seen };
    if (event.type === 'turn-end' || (event.type === 'turn-suspended' && number > passed)) return;
    // Ends the stream if the turn is still suspended, or has ended.
    if (event.type === 'answers-refused' && number > passed) {
      const now = await source.conversations.snapshot(source.chatId);
      if (now === undefined || (await isOver(source, now, number))) return;
    }
  }
}

/** Whether a turn is open or will start: answers without a waiting turn are only refused. */
function isLeft({ turn, inbox }: ConversationView): boolean {
  return turn !== undefined || inbox.some(({ content }) => content.kind !== 'answers');
}

/** Whether the reader has seen everything and nothing will follow. */
export async function isOver(
  source: EventSource,
  view: ConversationView,
  lastEvent: number | undefined,
): Promise<boolean> {
  if (lastEvent === undefined) return !isLeft(view);
  if (lastEvent < view.lastEvent) return false;
  if (!isLeft(view)) return true;
  if (view.status === 'running') return false;
  // A run is suspended shortly before its event is stored; events that a store has removed were sent long ago.
  const { pausedAt, isGone } = await findTurn(source, view);
  return pausedAt !== undefined || isGone;
}

/** The number before the first event of the open or last turn. */
async function lastTurnBegin(source: EventSource, view: ConversationView): Promise<number> {
  const { firstEvent } = view.turn ?? view.history.at(-1) ?? {};
  if (firstEvent !== undefined) return firstEvent - 1;
  return (await findTurn(source, view)).begin;
}

/** The number before the turn that is open after event `upTo`, and its suspension, unless the turn has been resumed. */
async function findTurn(
  source: EventSource,
  view: ConversationView,
  upTo = view.lastEvent,
): Promise<{ readonly begin: number; readonly pausedAt: number | undefined; readonly isGone: boolean }> {
  const begun = [...view.history, ...(view.turn ? [view.turn] : [])].map(
    ({ firstEvent = 1 }) => firstEvent - 1,
  );
  // Between this number and `upTo`, only turns that failed immediately can start.
  const after = Math.max(0, ...begun.filter((number) => number <= upTo));
  let begin = upTo;
  let pausedAt: number | undefined;
  let isGone = true;
  for await (const { number, event } of eventsOf(source, after, upTo)) {
    isGone = false;
    if (event.type === 'turn-start') begin = number - 1;
    if (event.type === 'turn-end') begin = upTo;
    if (event.type === 'turn-suspended') pausedAt = number;
    if (event.type === 'turn-start' || event.type === 'run-start') pausedAt = undefined;
  }
  return { begin, pausedAt, isGone };
}

function isPause({ type }: JsonObject): boolean {
  return type === 'turn-end' || type === 'turn-suspended';
}

/** The chat for a reader who may only answer pending calls: without messages. */
export function onlyQuestions({ view, source }: AskedChat): AskedChat {
  const { turn: _, ...rest } = view ?? {};
  const shown = view && ({ ...rest, messages: [], history: [], inbox: [] } as unknown as ConversationView);
  const conversations = { snapshot: async () => shown, async *events() {} };
  return { view: shown, source: { ...source, conversations } };
}

/** Events for a reader who may only answer: whether the answers were accepted, and the remaining pending calls. */
export async function* readOwnAnswers(
  source: EventSource,
  view: ConversationView,
  key: string,
): AsyncGenerator<ReadEvent, undefined> {
  for await (const { event, isNews } of readAnsweredTurn(source, view, key)) {
    if (!isNews) continue;
    const ids = event.type === 'answers-taken' ? (event.ids as readonly unknown[]) : [];
    const left = event.type === 'turn-end' ? [] : view.pending.filter(({ id }) => !ids.includes(id));
    yield* questionEvents(view, left, event.type === 'answers-refused' ? [event] : []);
    return;
  }
}

/** Pending calls as events of their turn, after the refusal of answers. */
export function questionEvents(
  { turn, iteration, lastEvent: number }: ConversationView,
  pending: readonly PendingCall[],
  refused: readonly JsonObject[] = [],
): readonly ReadEvent[] {
  const events = [
    { type: 'turn-start', turn: { number: turn?.number } },
    { type: 'step-start', iteration },
    ...suspensionsOf(pending),
    ...refused,
    { type: 'turn-suspended', status: 'suspended', pending },
  ];
  return events.map((event) => ({ number, event, isNews: true }) as unknown as ReadEvent);
}

function suspensionsOf(pending: readonly PendingCall[]): readonly object[] {
  return pending.map((wait) => {
    const { callId, tool } = wait.path?.[0] ?? wait;
    return { type: 'call-suspended', callId, tool, pending: [wait] };
  });
}
