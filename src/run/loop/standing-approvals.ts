import type { CallJournal, StandingYes, Wait } from '../../core/contract/call.js';
import type { RunState, StoredWaitingCall } from '../../core/contract/run-state.js';
import {
  keepsApprovals,
  type RememberScope,
  type StandingApproval,
} from '../../core/contract/standing-approvals.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { canonicalJson, plainJson, withoutUndefined } from '../../core/kernel/json.js';
import { nodeCrypto } from '../../core/kernel/node-module.js';
import type { StandingCall } from '../call/invocation.js';
import type { ToolRegistry } from '../call/tool-registry.js';
import { approverOf, mayApprove } from '../call/waits.js';

interface Place {
  readonly runId: string;
  readonly owner: unknown;
  readonly conversationId: string | undefined;
}

/** A standing approval of a call, before it is given. */
type Standing = Pick<StandingApproval, 'id' | 'tool' | 'pattern' | 'scope' | 'subject' | 'owner'>;

/**
 * The standing approvals that would allow a call, one for each scope that its tool allows here. The server determines
 * all of their fields: a changed definition, another owner or other arguments produce another id.
 */
function standingsOf(
  tool: ToolDefinition,
  args: StandingCall['arguments'],
  place: Place,
): readonly Standing[] {
  const { name, description, parameters, annotations, execution, approval } = tool;
  const remember = typeof approval === 'object' ? approval.remember : undefined;
  if (remember === undefined) return [];
  const { by, scopes } = remember;
  const parts = typeof by === 'function' ? by(args) : by?.map((part) => [part, args[part] ?? null]);
  const pattern = plainJson(by === undefined ? args : parts);
  if (pattern === undefined) return [];
  const written = typeof by === 'function' ? String(by) : (by ?? null);
  // Everything that must not have changed since the approval: the facts about the tool that the approver could see.
  const definition = plainJson({ description, parameters, annotations, execution, approval, by: written });
  const { runId, owner, conversationId } = place;
  const subjects: Readonly<Record<RememberScope, string | undefined>> = {
    run: runId,
    conversation: conversationId,
    user: owner === undefined ? undefined : '',
  };
  return scopes.flatMap((scope): Standing[] => {
    const subject = subjects[scope];
    if (subject === undefined) return [];
    const facts = [name, definition, pattern, scope, subject, owner ?? null];
    const id = nodeCrypto().hash('sha256', canonicalJson(facts), 'base64url');
    return [withoutUndefined({ id, tool: name, pattern, scope, subject: subject || undefined, owner })];
  });
}

/** Looks up the standing approval of a call, if the store of the run has any. */
export function standingLookup(
  store: unknown,
  { runId, owner }: Pick<Place, 'runId' | 'owner'>,
): ((call: StandingCall) => Promise<StandingYes | undefined>) | undefined {
  if (!keepsApprovals(store)) return undefined;
  return async ({ tool, arguments: args, conversationId, mayHaveGiven }) => {
    const ids = standingsOf(tool, args, { runId, owner, conversationId }).map(({ id }) => id);
    if (ids.length === 0) return undefined;
    // If several are valid, one may come from a user who cannot approve this call.
    const groups = approverOf(tool.approval) === undefined ? [ids] : ids.map((id) => [id]);
    for (const group of groups) {
      const found = await store.approvals.findApproval(group);
      if (found !== undefined && mayHaveGiven(found.answeredBy)) return approvalOf(found);
    }
    return undefined;
  };
}

function approvalOf({ id, answeredBy }: StandingApproval): StandingYes {
  return withoutUndefined({ id, answeredBy });
}

/** A waiting call with its answers, and its run. */
export interface AnsweredCall {
  now: StoredWaitingCall;
  readonly run: { readonly state: RunState; readonly tools?: ToolRegistry | undefined };
}

export interface Remembering {
  readonly store: unknown;
  readonly conversationId: string | undefined;
  readonly answeredBy: unknown;
  /** Nothing is stored: only faults are collected. */
  readonly isTrial: boolean;
  readonly faults: string[];
}

/**
 * Stores approvals for later calls, and allows other calls of the same run that wait for the same approval; with
 * faults, nothing is stored.
 */
export async function rememberAnswers(
  calls: readonly AnsweredCall[],
  remembering: Remembering,
): Promise<void> {
  const { store, faults, isTrial } = remembering;
  const given = new Map<AnsweredCall, StandingApproval>();
  for (const call of calls) {
    const standing = standingFor(call, remembering);
    if (standing === undefined) continue;
    const { name, id } = call.now;
    if (!keepsApprovals(store)) faults.push(`the yes to '${name}' (${id}): no store keeps standing ones`);
    given.set(call, standing);
  }
  if (faults.length > 0) return;
  for (const [call, standing] of given) {
    if (!isTrial && keepsApprovals(store)) await store.approvals.addApproval(standing);
    call.now = { ...call.now, journal: { ...call.now.journal, standing: approvalOf(standing) } };
  }
  for (const call of calls) {
    const ofRun = [...given].filter(([other]) => other.run === call.run).map(([, standing]) => standing);
    if (!given.has(call) && ofRun.length > 0) letThrough(call, ofRun, remembering);
  }
}

function standingFor(
  call: AnsweredCall,
  { faults, answeredBy, conversationId }: Remembering,
): StandingApproval | undefined {
  const { name, id, journal } = call.now;
  if (journal.remember === undefined || journal.standing !== undefined) return undefined;
  const { scope, expires, by } = journal.remember;
  if (by === 'policy') return undefined;
  const standing = standingsFor(call, conversationId).find((one) => one.scope === scope);
  if (standing === undefined) {
    faults.push(`the yes to '${name}' (${id}): it cannot stand for ${scope} here: ${WHY[scope]}`);
    return undefined;
  }
  const tool = call.run.tools?.offered(name);
  const { maxMs } = (typeof tool?.approval === 'object' && tool.approval.remember) || {};
  const createdAt = Date.now();
  const end = expires === undefined ? maxMs && createdAt + maxMs : Date.parse(expires);
  return withoutUndefined({
    ...standing,
    createdAt,
    answeredBy,
    expiresAt: Number.isFinite(end) ? end : undefined,
  });
}

const WHY: Readonly<Record<RememberScope, string>> = {
  run: 'its tool is not given, or allows that no more',
  conversation: 'its tool is not given, or allows that no more, or `scope` has no conversationId',
  user: 'its tool is not given, or allows that no more, or the run has no owner',
};

function standingsFor(
  { now: { name, journal }, run }: AnsweredCall,
  conversationId: string | undefined,
): readonly Standing[] {
  const tool = run.tools?.offered(name);
  const { runId, owner } = run.state;
  try {
    return tool === undefined ? [] : standingsOf(tool, journal.arguments, { runId, owner, conversationId });
  } catch {
    return [];
  }
}

/** Allows another call that waits for an approval of the same pattern. */
function letThrough(
  call: AnsweredCall,
  given: readonly StandingApproval[],
  { conversationId }: Remembering,
): void {
  const { now, run } = call;
  const isAsked = ({ kind, inner, message }: StoredWaitingCall['waits'][number]): boolean =>
    kind === 'approval' && inner === undefined && message === undefined;
  if (!now.waits.some(isAsked)) return;
  const ids = standingsFor(call, conversationId).map(({ id }) => id);
  const found = given.find(({ id }) => ids.includes(id));
  if (found === undefined) return;
  const standing = approvalOf(found);
  const { answeredBy } = standing;
  const { name, journal } = now;
  const request = { answeredBy, owner: run.state.owner, call: { tool: name, arguments: journal.arguments } };
  // If an approver function fails, an approval is requested, and its failure is shown with it.
  if (!mayApprove(approverOf(run.tools?.offered(name)?.approval), request, () => {})) return;
  const approved = { ...journal, approved: true as const, standing };
  call.now = {
    ...now,
    journal: withGiven(approved, { kind: 'approval', index: 0 }, answeredBy),
    waits: now.waits.filter((wait) => !isAsked(wait)),
  };
}

/** Records who gave an answer, if that is known. */
export function withGiven(
  journal: CallJournal,
  { kind, index }: Pick<Wait, 'kind' | 'index'>,
  answeredBy: unknown,
): CallJournal {
  if (answeredBy === undefined) return journal;
  return { ...journal, given: [...(journal.given ?? []), { kind, index, answeredBy }] };
}
