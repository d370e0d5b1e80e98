import type {
  ConversationHold,
  ConversationLease,
  ConversationLog,
  InboxContent,
  InboxEntry,
  KeptConversation,
  OpenTurn,
} from '../../contract/conversation-log.js';
import { expectSame } from '../conformance/expectations.js';
import { LEASE } from './store-bench.js';

/** Conversations under test: none so far. */
export interface OpenedConversationLog {
  readonly log: ConversationLog;
  /** The same through another connection; without it, what two do at once is done with `log` alone. */
  readonly other?: ConversationLog;
  /** Lets so many milliseconds go by: puts the clock forward, or all times that are kept back. */
  advance(ms: number): void | Promise<void>;
  close?(): void | Promise<void>;
}

export const ID = 'c1';
export const PROMPT: InboxContent = { kind: 'prompt', content: 'Hi' };

export function lease(claim: string, conversationId = ID): ConversationLease {
  return { conversationId, claim, leaseMs: LEASE };
}

export function hold(claim: string): ConversationHold {
  return { conversationId: ID, claim };
}

export function enter(log: ConversationLog, key: string, content = PROMPT) {
  return log.enter({ conversationId: ID, key, content });
}

/** A conversation that has to be there. */
export async function readKept(log: ConversationLog, id = ID): Promise<KeptConversation> {
  const kept = await log.read(id);
  if (kept === undefined) throw new Error(`the conversation ${JSON.stringify(id)} is not there`);
  return kept;
}

/** Begins the first turn with what entered first. */
export async function beginTurn(log: ConversationLog, claim: string): Promise<OpenTurn> {
  const [entry] = (await readKept(log)).inbox;
  const turn = { number: 1, entry: entry as InboxEntry, runId: 'c1.1' };
  expectSame('commit of a turn', await log.commit(hold(claim), { turn }), true);
  return turn;
}

export function keysOf({ inbox }: KeptConversation): readonly string[] {
  return inbox.map(({ key }) => key);
}
