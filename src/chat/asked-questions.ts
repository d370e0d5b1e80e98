import type { PendingCall } from '../contract/call.js';
import type { JsonObject } from '../contract/json-schema.js';
import type { ConversationView } from '../conversation/conversation-view.js';
import type { AskedChat } from './chat-request.js';
import { type EventSource, type ReadEvent, readAnsweredTurn } from './turn-readings.js';

/** A chat for somebody who may only answer what waits: without anything that was said. */
export function onlyQuestions({ view, source }: AskedChat): AskedChat {
  const shown = view && withoutHistory(view);
  return {
    view: shown,
    source: { ...source, conversations: { snapshot: async () => shown, events: noEvents } },
  };
}

function withoutHistory({ turn: _, ...view }: ConversationView): ConversationView {
  return { ...view, messages: [], history: [], inbox: [] };
}

async function* noEvents(): AsyncGenerator<never, undefined> {}

/** What waits, as events of the turn that asks. */
export async function* readQuestions(view: ConversationView): AsyncGenerator<ReadEvent, undefined> {
  yield* asEvents(view, [...begun(view), ...asked(view.pending), paused(view.pending)]);
}

/** Answers of such a reader, and whether they were taken. What else waits is told again. */
export async function* readOwnAnswers(
  source: EventSource,
  { key, view }: { readonly key: string; readonly view: ConversationView },
): AsyncGenerator<ReadEvent, undefined> {
  for await (const { event, isNews } of readAnsweredTurn(source, { key, view })) {
    if (!isNews) continue;
    const ids = event.type === 'answers-taken' ? (event.ids as readonly unknown[]) : [];
    const left = event.type === 'turn-end' ? [] : view.pending.filter(({ id }) => !ids.includes(id));
    const refused = event.type === 'answers-refused' ? [event] : [];
    yield* asEvents(view, [...begun(view), ...asked(left), ...refused, paused(left)]);
    return;
  }
}

function begun({ turn, iteration }: ConversationView): readonly JsonObject[] {
  return [
    { type: 'turn-start', turn: { number: turn?.number } },
    { type: 'step-start', iteration },
  ];
}

function asked(pending: readonly PendingCall[]): readonly JsonObject[] {
  return pending.map((wait) => {
    const { callId, tool } = wait.path?.[0] ?? wait;
    return { type: 'call-suspended', callId, tool, pending: [wait] };
  });
}

function paused(pending: readonly PendingCall[]): JsonObject {
  return { type: 'turn-suspended', status: 'suspended', pending };
}

function* asEvents({ lastEvent: number }: ConversationView, events: readonly JsonObject[]) {
  for (const event of events) yield { number, event, isNews: true } as ReadEvent;
}
