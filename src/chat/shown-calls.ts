import type { PendingCall } from '../contract/call.js';
import type { JsonObject } from '../contract/json-schema.js';
import type { ConversationView } from '../conversation/conversation-view.js';
import { isRecord } from '../kernel/json.js';

/** Where a call is made; without a turn, in a run that stands alone. */
export interface CallPlace {
  readonly turn?: string;
  readonly iteration?: unknown;
}

/** The place of what a turn does before its first step. */
export function placeOfTurn(number: unknown): CallPlace {
  return typeof number === 'number' ? { turn: `turn-${number}` } : {};
}

/**
 * The id by which clients know a call. Models use ids again, from step to step and from turn to turn, and clients
 * take two calls of one id for one. The place is told first, so that no id of a model can look like another's.
 */
export function shownCallId({ turn, iteration }: CallPlace, callId: string): string {
  return turn === undefined ? callId : `${turn}.${iteration}.${callId}`;
}

/** What waits, and in which turn and step. */
export type Asking = Pick<ConversationView, 'pending' | 'turn' | 'iteration'>;

/** The id by which clients know a call that waits. */
export function shownPendingId(
  { turn, iteration }: Omit<Asking, 'pending'>,
  { callId, path }: PendingCall,
): string {
  // Clients know of the call that an agent runs in, and not of those of the agent.
  return shownCallId({ ...placeOfTurn(turn?.number), iteration }, path?.[0]?.callId ?? callId);
}

/** What whoever is asked to approve a call is told beside the call itself. */
export function approvalDescriptor(wait: PendingCall | JsonObject): JsonObject | undefined {
  const { message, title, description, risk, decisions, mayRemember, approver, expiresAt } =
    wait as PendingCall;
  const told = { message, title, description, risk, decisions, mayRemember, approver, expiresAt };
  const given = Object.entries(told).filter(([, value]) => value !== undefined);
  return given.length === 0 ? undefined : (Object.fromEntries(given) as unknown as JsonObject);
}

/** Words for the error of a turn that failed. */
export type DescribeError = (error: JsonObject) => string;

/** Results of calls that a step or a turn leaves behind. */
export const NOT_MADE = 'This call was not made.';
export const NOT_ENDED = 'The turn ended before this call did.';

export function userText(result: unknown): string {
  const { silent, forUser, forLLM } = isRecord(result) ? result : {};
  return silent ? '' : String(forUser || (forLLM ?? ''));
}
