import type { PendingCall } from '../../core/contract/call.js';
import type { LoggedEvent } from '../../core/contract/conversation-log.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import { canonicalJson } from '../../core/kernel/json.js';
import type { Conversations } from '../../run/conversation/conversations.js';
import type { ConversationView } from '../../run/conversation/stored-turns.js';

/** Where the events of a chat are read. */
export interface EventSource {
  readonly conversations: Pick<Conversations, 'events' | 'snapshot'>;
  readonly chatId: string;
  readonly signal: AbortSignal;
}

export interface AskedChat {
  readonly view: ConversationView | undefined;
  readonly source: EventSource;
}

/** An event of a turn; one that is not `isNews` was before what the reader asked for. */
export interface ReadEvent extends LoggedEvent {
  readonly isNews: boolean;
}

/** The turn that an entry begins, until it ends or waits. `view`: as the chat stood when the entry was in it. */
export async function* readPromptedTurn(
  { conversations, chatId, signal }: EventSource,
  { key, view }: { readonly key: string; readonly view: ConversationView },
): AsyncGenerator<ReadEvent, undefined> {
  const { after, ...until } = placeOf(view, key);
  let hasBegun = false;
  for await (const { number, event } of conversations.events(chatId, { after, ...until, signal })) {
    hasBegun ||= event.type === 'turn-start' && event.turn.key === key;
    if (!hasBegun) continue;
    yield { number, event, isNews: true };
    if (isPause(event)) return;
  }
}

/** Where the events of a turn are; of one that has ended they may be gone. */
function placeOf(
  { turn, history, inbox, lastEvent }: ConversationView,
  key: string,
): { readonly after: number; readonly upTo?: number } {
  if (inbox.some((entry) => entry.key === key)) return { after: lastEvent };
  const isOpen = turn?.entry.key === key;
  const begun = isOpen ? turn : history.find((ended) => ended.key === key);
  // One that is in neither has failed at once, or was replaced: only its events know of it.
  return { after: (begun?.firstEvent ?? 1) - 1, ...(isOpen ? {} : { upTo: lastEvent }) };
}

/** The turn that gets answers, from where it goes on with them; what was before is no news. */
export async function* readAnsweredTurn(
  source: EventSource,
  { key, view }: { readonly key: string; readonly view: ConversationView },
): AsyncGenerator<ReadEvent, undefined> {
  const { conversations, chatId, signal } = source;
  let isNews = false;
  for await (const { number, event } of conversations.events(chatId, {
    after: await lastTurnBegin(source, view),
    signal,
  })) {
    const isOurs = event.key === key && (event.type === 'answers-taken' || event.type === 'answers-refused');
    const isEnd = event.type === 'turn-end' && number > view.lastEvent;
    const refusal = isEnd && !isNews ? await laterRefusal(source, { key, after: number }) : undefined;
    if (refusal !== undefined) {
      yield refusal;
      return;
    }
    // The turn may also end without going on with them.
    isNews ||= isOurs || isEnd;
    yield { number, event, isNews };
    if (isNews && (isPause(event) || event.type === 'answers-refused')) return;
  }
}

/** That answers were refused because the turn had ended with other answers. */
async function laterRefusal(
  source: EventSource,
  { key, after }: { readonly key: string; readonly after: number },
): Promise<ReadEvent | undefined> {
  const { conversations, chatId, signal } = source;
  const view = await conversations.snapshot(chatId);
  const waits = view?.inbox.some((entry) => entry.key === key) ?? false;
  const until = waits ? {} : { upTo: view?.lastEvent ?? after };
  for await (const { number, event } of conversations.events(chatId, { after, signal, ...until })) {
    if (event.type === 'answers-refused' && event.key === key) return { number, event, isNews: true };
    // What was in the inbox may have been done with without a word.
    if (isPause(event)) return laterRefusal(source, { key, after: number });
  }
  return undefined;
}

/** Whether the last turn has gone on with answers of this key, or will look at them. */
export async function hasAnswers(
  source: EventSource,
  { key, view }: { readonly key: string; readonly view: ConversationView },
): Promise<boolean> {
  if (view.inbox.some((entry) => entry.key === key)) return true;
  const { conversations, chatId, signal } = source;
  const after = await lastTurnBegin(source, view);
  for await (const { event } of conversations.events(chatId, { after, upTo: view.lastEvent, signal }))
    if (event.type === 'answers-taken' && event.key === key) return true;
  return false;
}

interface RestOptions {
  readonly view: ConversationView;
  /** The last event that it has seen, where it says so. */
  readonly lastEvent: number | undefined;
}

/** The rest of a turn for a reader that comes back; nothing where there is none. */
export async function* readRest(
  source: EventSource,
  { view, lastEvent }: RestOptions,
): AsyncGenerator<ReadEvent, undefined> {
  const { conversations, chatId, signal } = source;
  const seen = Math.min(lastEvent ?? 0, view.lastEvent);
  const { begin: after } = await findTurn(source, {
    view,
    upTo: lastEvent === undefined ? view.lastEvent : seen,
  });
  const { pausedAt } = await findTurn(source, { view, upTo: view.lastEvent });
  // A pause that has been answered is none.
  const passed = view.status === 'suspended' && pausedAt !== undefined ? pausedAt - 1 : view.lastEvent;
  const until = isLeft(view) ? {} : { upTo: view.lastEvent };
  for await (const { number, event } of conversations.events(chatId, { after, signal, ...until })) {
    if (number === pausedAt && view.status === 'suspended') {
      yield* pauseNow({ number, event, isNews: number > seen }, view);
      return;
    }
    yield { number, event, isNews: number > seen };
    if (event.type === 'turn-end' || (event.type === 'turn-suspended' && number > passed)) return;
    // Nothing more is sent of a turn that waits as before, or that was over.
    if (event.type === 'answers-refused' && number > passed) {
      const now = await conversations.snapshot(chatId);
      if (now === undefined || (await isOver(source, { view: now, lastEvent: number }))) return;
    }
  }
}

/** The pause of a turn, with what it asks now: a question whose tool has changed is asked in other words. */
function* pauseNow(
  { event, ...read }: ReadEvent,
  { pending }: ConversationView,
): Generator<ReadEvent, undefined> {
  const before = 'pending' in event ? (event.pending as readonly PendingCall[]) : [];
  const known = new Set(before.map((wait) => canonicalJson(wait)));
  const changed = pending.filter((wait) => !known.has(canonicalJson(wait)));
  for (const asked of suspensionsOf(changed)) yield { ...read, event: asked } as unknown as ReadEvent;
  yield { ...read, event: { ...event, pending } } as ReadEvent;
}

/** Whether a turn goes on, or will begin: answers that no turn waits for are only refused. */
function isLeft({ turn, inbox }: ConversationView): boolean {
  return turn !== undefined || inbox.some(({ content }) => content.kind !== 'answers');
}

/** Whether there is nothing to come, and nothing that the reader has not seen. */
export async function isOver(source: EventSource, { view, lastEvent }: RestOptions): Promise<boolean> {
  if (lastEvent === undefined) return !isLeft(view);
  if (lastEvent < view.lastEvent) return false;
  if (!isLeft(view)) return true;
  if (view.status === 'running') return false;
  // A run waits a moment before its readers learn of it; what a store has removed was sent long ago.
  const { pausedAt, isGone } = await findTurn(source, { view, upTo: view.lastEvent });
  return pausedAt !== undefined || isGone;
}

/** The number before the first event of the turn that is open, or was the last one. */
async function lastTurnBegin(source: EventSource, view: ConversationView): Promise<number> {
  const { firstEvent } = view.turn ?? view.history.at(-1) ?? {};
  if (firstEvent !== undefined) return firstEvent - 1;
  const { begin } = await findTurn(source, { view, upTo: view.lastEvent });
  return begin;
}

/** The number before the turn that is open after an event, and where it paused, unless it has gone on. */
async function findTurn(
  { conversations, chatId, signal }: EventSource,
  { view, upTo }: { readonly view: ConversationView; readonly upTo: number },
): Promise<{ readonly begin: number; readonly pausedAt: number | undefined; readonly isGone: boolean }> {
  const begun = [...view.history, ...(view.turn ? [view.turn] : [])].map(
    ({ firstEvent = 1 }) => firstEvent - 1,
  );
  // No other turn begins between the last of these and the event, but for such as have failed at once.
  const after = Math.max(0, ...begun.filter((number) => number <= upTo));
  let begin = upTo;
  let pausedAt: number | undefined;
  let isGone = true;
  for await (const { number, event } of conversations.events(chatId, { after, upTo, signal })) {
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

/** A chat for a reader who may only answer pending calls: without its messages. */
export function onlyQuestions({ view, source }: AskedChat): AskedChat {
  const { turn: _, ...rest } = view ?? {};
  const shown = view && ({ ...rest, messages: [], history: [], inbox: [] } as unknown as ConversationView);
  const conversations = { snapshot: async () => shown, async *events() {} };
  return { view: shown, source: { ...source, conversations } };
}

/** What waits, as events of the turn that asks. */
export async function* readQuestions(view: ConversationView): AsyncGenerator<ReadEvent, undefined> {
  yield* questionsOf(view, view.pending);
}

/** Answers of such a reader, and whether they were taken. The remaining pending calls are emitted again. */
export async function* readOwnAnswers(
  source: EventSource,
  { key, view }: { readonly key: string; readonly view: ConversationView },
): AsyncGenerator<ReadEvent, undefined> {
  for await (const { event, isNews } of readAnsweredTurn(source, { key, view })) {
    if (!isNews) continue;
    const ids = event.type === 'answers-taken' ? (event.ids as readonly unknown[]) : [];
    const left = event.type === 'turn-end' ? [] : view.pending.filter(({ id }) => !ids.includes(id));
    yield* questionsOf(view, left, event.type === 'answers-refused' ? [event] : []);
    return;
  }
}

function* questionsOf(
  { turn, iteration, lastEvent: number }: ConversationView,
  pending: readonly PendingCall[],
  refused: readonly JsonObject[] = [],
): Generator<ReadEvent, undefined> {
  const events = [
    { type: 'turn-start', turn: { number: turn?.number } },
    { type: 'step-start', iteration },
    ...suspensionsOf(pending),
    ...refused,
    { type: 'turn-suspended', status: 'suspended', pending },
  ];
  for (const event of events) yield { number, event, isNews: true } as unknown as ReadEvent;
}

function suspensionsOf(pending: readonly PendingCall[]): readonly object[] {
  return pending.map((wait) => {
    const { callId, tool } = wait.path?.[0] ?? wait;
    return { type: 'call-suspended', callId, tool, pending: [wait] };
  });
}
