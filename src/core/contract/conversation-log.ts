import { withMethods } from '../kernel/options.js';
import type { Spending } from './budget.js';
import type { Answer } from './call.js';
import type { JsonObject } from './json-schema.js';
import type { Message, UserMessage } from './llm-provider.js';

/** What enters a conversation; plain JSON. `owner`: on whose behalf, as in a scope. */
export type InboxContent = {
  readonly owner?: unknown;
} & (
  | {
      readonly kind: 'prompt';
      readonly content: UserMessage['content'];
      /** Key of an earlier entry: its turn and all after it are forgotten, and this one takes their place. */
      readonly replaces?: string;
    }
  | {
      readonly kind: 'answers';
      readonly answers: readonly Answer[];
      /** Who answered, where that is not the owner. */
      readonly answeredBy?: unknown;
    }
  | {
      /** Work that a call had started has completed. */
      readonly kind: 'completion';
      readonly tool: string;
      readonly callId: string;
      readonly taskId?: string;
      /** The text that the model receives. */
      readonly text: string;
      /** The text that the user sees. */
      readonly forUser?: string;
    }
);

/** An entry to come; of two with the same key, the second changes nothing. */
export interface NewInboxEntry {
  readonly conversationId: string;
  readonly key: string;
  readonly content: InboxContent;
  /** Refused where the conversation has another owner than the content. */
  readonly onlyOwner?: boolean;
  /** Refused where nothing ever entered the conversation. */
  readonly onlyKnown?: boolean;
}

/** What waits for its turn. Positions count the entries of a conversation from 1, in order of arrival. */
export interface InboxEntry {
  readonly position: number;
  readonly key: string;
  readonly content: InboxContent;
}

/** What came of an entry: `isNew` is false where its key had been used, and `position` is then that of the first. */
export interface EnteredEntry {
  readonly position: number;
  readonly isNew: boolean;
}

/** Whose a conversation is for now. */
export interface ConversationHold {
  readonly conversationId: string;
  /** A random id, chosen by the holder. */
  readonly claim: string;
}

/** A hold, and for how long it lasts unless it is renewed, in milliseconds from now. */
export interface ConversationLease extends ConversationHold {
  readonly leaseMs: number;
}

/** A turn that has begun and has not ended: the run with this id is its own. */
export interface OpenTurn {
  /** Counts the turns of the conversation from 1. */
  readonly number: number;
  /** The entry that began it. */
  readonly entry: InboxEntry;
  readonly runId: string;
  /** Number of its first event. */
  readonly firstEvent?: number;
  /** Its run says whose turn it is; those of older versions do not. */
  readonly isNamed?: true;
}

/** A turn that a history has. */
export interface KeptTurn {
  readonly number: number;
  /** Of the entry that began it. */
  readonly key: string;
  readonly firstEvent?: number;
  /** What it has spent; only where it had a budget. */
  readonly spent?: Spending;
  /** What the conversation has spent by its end, turns included that others have replaced. */
  readonly spentSoFar?: Spending;
}

/** A message of a history; the first one of a turn says which turn that is. */
export type KeptMessage = Message & { readonly turn?: KeptTurn };

/** A conversation as it stands; plain JSON. */
export interface KeptConversation {
  readonly conversationId: string;
  /** The owner of what entered it first. */
  readonly owner?: unknown;
  /** What was said in turns that have ended; in it, every call has its answer. */
  readonly messages: readonly KeptMessage[];
  /** Turns begun so far. */
  readonly turns: number;
  readonly turn?: OpenTurn;
  /** What waits, in order of arrival. */
  readonly inbox: readonly InboxEntry[];
  /** Somebody asked that the open turn be aborted. */
  readonly isAbortAsked: boolean;
  /** Rises with everything that enters. */
  readonly revision: number;
  /** Number of the last event. */
  readonly lastEvent: number;
  /** Somebody holds it. */
  readonly isHeld: boolean;
}

/** The outcome of acquiring a conversation; `taken`: another process holds it; `missing`: it has no entries. */
export type HoldOutcome =
  | { readonly status: 'held'; readonly conversation: KeptConversation }
  | { readonly status: 'taken' }
  | { readonly status: 'missing' };

/** What a holder commits, all of it or nothing. What is left out stays. */
export interface ConversationCommit {
  /** The turn that is open from now on; `null`: none. It also ends what was asked of the turn before. */
  readonly turn?: OpenTurn | null;
  /** The history keeps so many messages, and these follow them. */
  readonly history?: { readonly keep: number; readonly messages: readonly KeptMessage[] };
  /** Positions of entries that need no turn any more. */
  readonly done?: readonly number[];
  /** The event that readers receive with it. */
  readonly events?: readonly JsonObject[];
}

/** An event of a conversation, as a log stores it; numbers count from 1 without a gap. */
export interface LoggedEvent {
  readonly number: number;
  readonly event: JsonObject;
}

/** Which events are asked for. */
export interface EventQuery {
  readonly conversationId: string;
  /** Number of the last one that is known already; 0 for all stored events. */
  readonly after: number;
  readonly limit: number;
}

/** A conversation has a new entry (`inbox`), or it has a new event or was released (`events`). */
export type ConversationNews =
  | { readonly conversationId: string; readonly about: 'inbox' | 'events' }
  /** News of any conversation may have been missed, because there was no connection: look again. */
  | { readonly conversationId?: undefined; readonly about: 'missed' };

/** Whether a hold was renewed, and what its holder is to know. */
export type HoldRenewal =
  | { readonly holds: false }
  | { readonly holds: true; readonly isAbortAsked: boolean };

/**
 * Keeps conversations for several processes: what enters them, their histories, their events, and who goes on
 * with them. Every method is atomic, also between processes; methods may be synchronous. A conversation has one
 * holder at a time; a holder whose lease has ended loses it to the next, and is refused from then on.
 */
export interface ConversationLog {
  /** Keeps an entry; makes the conversation with its first one. `undefined` for one that is refused. */
  enter(entry: NewInboxEntry): EnteredEntry | undefined | Promise<EnteredEntry | undefined>;
  /** Who holds a conversation has to let it go: one whose holder died is due, whether or not anything entered it. */
  hold(lease: ConversationLease): HoldOutcome | Promise<HoldOutcome>;
  renew(lease: ConversationLease): HoldRenewal | Promise<HoldRenewal>;
  /** False where the hold was lost, and then nothing changes. */
  commit(hold: ConversationHold, commit: ConversationCommit): boolean | Promise<boolean>;
  /** Numbers and stores events; the number of the last one, or `undefined` if the lease was lost. */
  tell(
    hold: ConversationHold,
    events: readonly JsonObject[],
  ): number | undefined | Promise<number | undefined>;
  /**
   * Ends a hold. `seen` is the `revision` that the holder knows: where more has entered, the conversation is due
   * again. False where the hold was lost.
   */
  letGo(hold: ConversationHold, seen: number): boolean | Promise<boolean>;
  /** A conversation as it stands, held or not. */
  read(conversationId: string): KeptConversation | undefined | Promise<KeptConversation | undefined>;
  events(query: EventQuery): readonly LoggedEvent[] | Promise<readonly LoggedEvent[]>;
  /** Asks for the end of the open turn; false where there is none. */
  askAbort(conversationId: string): boolean | Promise<boolean>;
  /** Conversations without a holder that have new entries or whose holder crashed; longest waiting first. */
  due(limit: number): readonly string[] | Promise<readonly string[]>;
  /**
   * Tells of news, here and in other processes, as soon as they can be known; what it gives ends that. Where others can
   * write, whoever watches keeps the process alive: it may have nothing else to do.
   */
  watch(listener: (news: ConversationNews) => void): () => void;
  /**
   * Takes a conversation away, in which no turn is open. `hide`: its history and events stay under another id, which
   * nobody knows; its runs, large results, schedules and jobs go, and what waits is not looked at any more. `erase`:
   * all that the store has of it goes. False where the hold was lost.
   */
  remove?(hold: ConversationHold, how: 'hide' | 'erase'): boolean | Promise<boolean>;
  /**
   * Erases all conversations that were hidden under an id; false if there were none. With `onlyOwner` those of other
   * owners stay.
   */
  eraseHidden?(hidden: HiddenConversations): boolean | Promise<boolean>;
  /**
   * Forgets events that were kept for so long, and the keys of entries whose turns have ended; gives their number.
   *
   * @deprecated `retention({ events: ageMs })` of the stores does the same.
   */
  removeEventsOlderThan(ageMs: number): number | Promise<number>;
}

/** The conversations that were hidden under an id. */
export interface HiddenConversations {
  readonly conversationId: string;
  readonly owner?: unknown;
  readonly onlyOwner: boolean;
}

/** What a store of conversations has. */
export const CONVERSATION_LOG = withMethods(
  ['enter', 'hold', 'renew', 'commit', 'tell', 'letGo', 'read', 'events', 'askAbort', 'due', 'watch'],
  "new SqliteRunStore({ path: 'runs.sqlite' }).conversations",
);
