import { withMethods } from '../kernel/options.js';
import type { Spending } from './budget.js';
import type { Answer } from './call.js';
import type { JsonObject } from './json-schema.js';
import type { Message, UserMessage } from './llm-provider.js';

/** The content of an inbox entry; plain JSON. `owner` is the same as in a scope. */
export type InboxContent = {
  readonly owner?: unknown;
} & (
  | {
      readonly kind: 'prompt';
      readonly content: UserMessage['content'];
      /** Key of an earlier entry: this entry replaces its turn, and all later turns are deleted. */
      readonly replaces?: string;
    }
  | {
      readonly kind: 'answers';
      readonly answers: readonly Answer[];
      /** Who answered, if not the owner. */
      readonly answeredBy?: unknown;
    }
  | {
      /** Work that a call had started is completed. */
      readonly kind: 'completion';
      readonly tool: string;
      readonly callId: string;
      readonly taskId?: string;
      /** The text for the model. */
      readonly text: string;
      /** The text for the user. */
      readonly forUser?: string;
    }
);

/** An entry to add. If its key was already used, nothing changes. */
export interface NewInboxEntry {
  readonly conversationId: string;
  readonly key: string;
  readonly content: InboxContent;
  /** Refuses the entry if the conversation has another owner than the content. */
  readonly onlyOwner?: boolean;
  /** Refuses the entry if the conversation does not exist yet. */
  readonly onlyKnown?: boolean;
}

/** An entry that waits for its turn. Positions count the entries of a conversation from 1, in order of arrival. */
export interface InboxEntry {
  readonly position: number;
  readonly key: string;
  readonly content: InboxContent;
}

/**
 * The outcome of adding an entry. If the key was already used, `isNew` is false and `position` is that of the first
 * entry.
 */
export interface EnteredEntry {
  readonly position: number;
  readonly isNew: boolean;
}

/** The current holder of a conversation. */
export interface ConversationHold {
  readonly conversationId: string;
  /** A random id, chosen by the holder. */
  readonly claim: string;
}

/** A hold that expires after this many milliseconds unless it is renewed. */
export interface ConversationLease extends ConversationHold {
  readonly leaseMs: number;
}

/** A turn that has begun and has not ended, with the id of its run. */
export interface OpenTurn {
  /** Counts the turns of the conversation from 1. */
  readonly number: number;
  /** The entry that started the turn. */
  readonly entry: InboxEntry;
  readonly runId: string;
  /** Number of its first event. */
  readonly firstEvent?: number;
  /** The state of its run contains the conversation (`turnOf`); runs of older versions do not. */
  readonly isNamed?: true;
}

/** A turn in a history. */
export interface KeptTurn {
  readonly number: number;
  /** Key of the entry that started it. */
  readonly key: string;
  readonly firstEvent?: number;
  /** The model's provider refused its message with files; later requests contain only the text of it. */
  readonly filesRefused?: true;
  /** The amounts spent by the turn; only if it had a budget. */
  readonly spent?: Spending;
  /** The amounts spent by the conversation until the end of this turn, including turns that were replaced later. */
  readonly spentSoFar?: Spending;
}

/** A message of a history; the first message of a turn has `turn`. */
export type KeptMessage = Message & { readonly turn?: KeptTurn };

/** The current state of a conversation; plain JSON. */
export interface KeptConversation {
  readonly conversationId: string;
  /** The owner of its first entry. */
  readonly owner?: unknown;
  /** The messages of finished turns; every call in them has its answer. */
  readonly messages: readonly KeptMessage[];
  /** The number of turns begun so far. */
  readonly turns: number;
  readonly turn?: OpenTurn;
  /** Waiting entries, in order of arrival. */
  readonly inbox: readonly InboxEntry[];
  /** The open turn should be aborted. */
  readonly isAbortAsked: boolean;
  /** Incremented by every new entry. */
  readonly revision: number;
  /** Number of the last event. */
  readonly lastEvent: number;
  /** Whether a process holds the conversation. */
  readonly isHeld: boolean;
}

/** The outcome of acquiring a conversation; `taken`: another process holds it; `missing`: it has no entries. */
export type HoldOutcome =
  | { readonly status: 'held'; readonly conversation: KeptConversation }
  | { readonly status: 'taken' }
  | { readonly status: 'missing' };

/** Changes that a holder commits in one transaction. Absent fields do not change. */
export interface ConversationCommit {
  /** The new open turn, or `null` if no turn is open. It also clears an abort request for the turn before. */
  readonly turn?: OpenTurn | null;
  /** Replaces the messages after the first `keep` messages. */
  readonly history?: { readonly keep: number; readonly messages: readonly KeptMessage[] };
  /** Positions of entries that no longer need a turn. */
  readonly done?: readonly number[];
  /** Events to log in the same transaction. */
  readonly events?: readonly JsonObject[];
}

/** An event of a conversation, as a log stores it; numbers count from 1 without a gap. */
export interface LoggedEvent {
  readonly number: number;
  readonly event: JsonObject;
}

/** Selects events. */
export interface EventQuery {
  readonly conversationId: string;
  /** Number of the last event that the caller has; 0 for all stored events. */
  readonly after: number;
  readonly limit: number;
}

/** A conversation has a new entry (`inbox`), or it has a new event or was released (`events`). */
export type ConversationNews =
  | { readonly conversationId: string; readonly about: 'inbox' | 'events' }
  /** Notifications may have been lost because there was no connection: check all conversations again. */
  | { readonly conversationId?: undefined; readonly about: 'missed' };

/** Whether a hold was renewed, and the news for its holder. */
export type HoldRenewal =
  | { readonly holds: false }
  | { readonly holds: true; readonly isAbortAsked: boolean };

/**
 * Stores conversations for several processes: their entries, histories, events, and current holders. Every method is
 * atomic, also between processes; methods may be synchronous. A conversation has one holder at a time. After its
 * lease has expired, another process can acquire the conversation; the calls of the earlier holder are then refused.
 */
export interface ConversationLog {
  /** Stores an entry; the first entry creates the conversation. Returns `undefined` if the entry is refused. */
  enter(entry: NewInboxEntry): EnteredEntry | undefined | Promise<EnteredEntry | undefined>;
  /**
   * Acquires a conversation. The holder must release it: if a holder crashes, the conversation becomes due, with or
   * without new entries.
   */
  hold(lease: ConversationLease): HoldOutcome | Promise<HoldOutcome>;
  renew(lease: ConversationLease): HoldRenewal | Promise<HoldRenewal>;
  /** False, without a change, if the hold was lost. */
  commit(hold: ConversationHold, commit: ConversationCommit): boolean | Promise<boolean>;
  /** Numbers and stores events; returns the number of the last event, or `undefined` if the hold was lost. */
  tell(
    hold: ConversationHold,
    events: readonly JsonObject[],
  ): number | undefined | Promise<number | undefined>;
  /**
   * Releases a hold. `seen` is the holder's last known `revision`: if there are newer entries, the conversation is
   * due again. Returns false if the hold was lost.
   */
  letGo(hold: ConversationHold, seen: number): boolean | Promise<boolean>;
  /** The current state of a conversation, held or not. */
  read(conversationId: string): KeptConversation | undefined | Promise<KeptConversation | undefined>;
  events(query: EventQuery): readonly LoggedEvent[] | Promise<readonly LoggedEvent[]>;
  /** Requests that the open turn ends; false if no turn is open. */
  askAbort(conversationId: string): boolean | Promise<boolean>;
  /** Conversations without a holder that have new entries or whose holder crashed; longest waiting first. */
  due(limit: number): readonly string[] | Promise<readonly string[]>;
  /**
   * Notifies of changes, made in this process or in others, as soon as possible. The returned function ends the
   * subscription. If other processes can write, a subscription keeps the process alive, because it may have no other
   * work.
   */
  watch(listener: (news: ConversationNews) => void): () => void;
  /**
   * Removes a conversation without an open turn. `hide`: its history and events stay under a secret random id; its
   * runs, large results, schedules and jobs are deleted, and its waiting entries are ignored. `erase`: everything
   * that the store has of it is deleted. Returns false if the hold was lost.
   */
  remove?(hold: ConversationHold, how: 'hide' | 'erase'): boolean | Promise<boolean>;
  /**
   * Erases all conversations that were hidden under an id; false if there were no such conversations. With
   * `onlyOwner`, conversations of other owners stay.
   */
  eraseHidden?(hidden: HiddenConversations): boolean | Promise<boolean>;
  /**
   * Deletes events that are older than this, and the keys of entries whose turns have ended; returns their number.
   *
   * @deprecated `retention({ events: ageMs })` of the stores does the same.
   */
  removeEventsOlderThan(ageMs: number): number | Promise<number>;
}

/** Selects the conversations that were hidden under an id. */
export interface HiddenConversations {
  readonly conversationId: string;
  readonly owner?: unknown;
  readonly onlyOwner: boolean;
}

/** The rule for stores of conversations. */
export const CONVERSATION_LOG = withMethods(
  ['enter', 'hold', 'renew', 'commit', 'tell', 'letGo', 'read', 'events', 'askAbort', 'due', 'watch'],
  "new SqliteRunStore({ path: 'runs.sqlite' }).conversations",
);
