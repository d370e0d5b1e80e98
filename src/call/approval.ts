import type { PendingKind, Wait } from '../contract/call.js';
import type { Approval, ApprovalNeed } from '../contract/declaration.js';
import type { JsonObject } from '../contract/json-schema.js';

/** Whether somebody has to be asked, as the author said it. */
export function approvalNeed(approval: Approval | undefined): ApprovalNeed {
  return typeof approval === 'object' ? (approval.when ?? true) : (approval ?? false);
}

/** When an answer comes too late. Waits of longer than any date are none. */
export function expiryIn(milliseconds = Number.POSITIVE_INFINITY): Pick<Wait, 'expiresAt'> {
  const at = new Date(Date.now() + milliseconds);
  return Number.isNaN(at.getTime()) ? {} : { expiresAt: at.toISOString() };
}

/** What the wait of an approval is made of. */
interface AskedCall {
  readonly arguments: JsonObject;
  readonly answerWithinMs: number | undefined;
  readonly onError: (error: unknown) => void;
}

/** What whoever is asked is told, and what they may decide. */
export function approvalWait(approval: Approval | undefined, asked: AskedCall): Wait {
  const { arguments: args, answerWithinMs, onError } = asked;
  const wait = { kind: 'approval', index: 0 } as const;
  if (typeof approval !== 'object')
    return answerWithinMs === undefined ? wait : { ...wait, ...expiryIn(answerWithinMs) };
  const { title, description: given, risk, decisions, remember, expiresInMs = answerWithinMs } = approval;
  const { scopes = [], maxMs } = remember ?? {};
  const mayRemember = scopes.length === 0 ? undefined : { scopes, ...(maxMs === undefined ? {} : { maxMs }) };
  let description = typeof given === 'string' ? given : undefined;
  try {
    if (typeof given === 'function') description = String(given(args));
  } catch (error) {
    onError(error);
  }
  const told = { title, description, risk, decisions, mayRemember };
  const present = Object.entries(told).filter(([, value]) => value !== undefined);
  return { ...wait, ...Object.fromEntries(present), ...expiryIn(expiresInMs) };
}

/** Whether an answer to this would come too late. */
export function isExpired({ expiresAt }: Pick<Wait, 'expiresAt'>, now = Date.now()): boolean {
  return expiresAt !== undefined && Date.parse(expiresAt) <= now;
}

/** What the model is told of a call that nobody answered in time. */
export function expiryReason({ kind, expiresAt = '' }: Pick<Wait, 'kind' | 'expiresAt'>): string {
  return `${UNANSWERED[kind]} until ${expiresAt}`;
}

const UNANSWERED: Readonly<Record<PendingKind, string>> = {
  approval: 'nobody approved it',
  question: 'nobody answered what it asks',
  client: 'the client said nothing of it, also not whether it was done,',
  outcome: 'nobody said what came of it',
};
