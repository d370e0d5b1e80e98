import { isNobody } from '../contract/call.js';
import type { Approval, Approver, ApproverRequest } from '../contract/declaration.js';
import { canonicalJson, copyOfJson } from '../kernel/json.js';

/** Who alone may approve calls of a tool; `undefined` where everybody may who may answer. */
export function approverOf(approval: Approval | undefined): Exclude<Approver, 'may-answer'> | undefined {
  const approver = typeof approval === 'object' ? approval.approver : undefined;
  return approver === 'may-answer' ? undefined : approver;
}

/**
 * Whether whoever gave an approval may give it. Fails closed: only a plain `true` of a function counts, and of a run
 * without an owner nobody can be told apart from the owner.
 */
export function mayApprove(
  approver: Exclude<Approver, 'may-answer'> | undefined,
  { answeredBy, owner, call }: ApproverRequest,
  onError: (error: unknown) => void,
): boolean {
  if (approver === undefined) return true;
  if (owner === undefined) return false;
  // Whoever says nothing of themselves is the owner.
  const by = isNobody(answeredBy) ? owner : answeredBy;
  if (approver === 'not-the-owner') return canonicalJson(by) !== canonicalJson(owner);
  try {
    const decision: unknown = approver(copyOfJson({ answeredBy: by, owner, call }) as ApproverRequest);
    // A promise is no decision, and must not end the process either.
    if (decision instanceof Promise) decision.catch(() => {});
    return decision === true;
  } catch (error) {
    onError(error);
    return false;
  }
}
