import type { JsonObject } from '../contract/json-schema.js';
import type { Message } from '../contract/llm-provider.js';
import type { HistoryTurn } from '../conversation/conversation-view.js';
import type { AskedChat } from './turn-readings.js';
import { messageIdOf } from './user-messages.js';

/** A turn that has ended, and everything that is known of it. */
export interface PastTurn {
  readonly number: number;
  /** What the user said, under the id that the client gave it; absent where nobody said anything. */
  readonly prompt?: { readonly id: string; readonly content: unknown };
  /** From its `turn-start` on; empty where they are no longer kept. */
  readonly events: readonly JsonObject[];
  /** What the model said in it, in its own words. */
  readonly messages: readonly Message[];
}

/** The turns of a chat that have ended, up to the one that the open turn is to replace. */
export async function pastTurns({ view, source }: AskedChat): Promise<readonly PastTurn[]> {
  if (view === undefined) return [];
  const { history, turn, messages, lastEvent } = view;
  const content = turn?.entry.content;
  const replaced = content?.kind === 'prompt' ? content.replaces : undefined;
  const kept = history.findIndex(({ key }) => key === replaced);
  const events = await eventsOfTurns(
    { view, source },
    Math.min(lastEvent, (turn?.firstEvent ?? lastEvent + 1) - 1),
  );
  const turns = history.map(({ number, key, begins }, index): PastTurn => {
    const said = messages.slice(begins, (history[index + 1] ?? turn)?.begins);
    const prompt = promptOf(key, said[0]?.role === 'user' ? said[0].content : undefined);
    return { number, ...prompt, events: events.get(number) ?? [], messages: said };
  });
  return kept < 0 ? turns : turns.slice(0, kept);
}

/** What the user said in the turn that is open. */
export function openPrompt({ view }: AskedChat): Pick<PastTurn, 'prompt'> {
  const entry = view?.turn?.entry;
  return entry?.content.kind === 'prompt' ? promptOf(entry.key, entry.content.content) : {};
}

function promptOf(key: HistoryTurn['key'], content: unknown): Pick<PastTurn, 'prompt'> {
  const id = messageIdOf(key);
  return id === undefined || content === undefined ? {} : { prompt: { id, content } };
}

async function eventsOfTurns(
  { view, source: { conversations, chatId, signal } }: AskedChat,
  upTo: number,
): Promise<ReadonlyMap<number, JsonObject[]>> {
  const found = new Map<number, JsonObject[]>();
  const wanted = new Set(view?.history.map(({ number }) => number));
  const after = (view?.history[0]?.firstEvent ?? 1) - 1;
  let open: JsonObject[] | undefined;
  for await (const { event } of conversations.events(chatId, { after, upTo, signal })) {
    if (event.type === 'turn-start') {
      const { number } = event.turn;
      open = wanted.has(number) ? [] : undefined;
      if (open !== undefined) found.set(number, open);
    }
    open?.push(event);
  }
  return found;
}
