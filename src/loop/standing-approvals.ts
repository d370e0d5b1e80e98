import { approverOf, mayApprove } from '../call/approver.js';
import type { StandingCall } from '../call/invocation.js';
import type { ToolRegistry } from '../call/tool-registry.js';
import type { StandingYes } from '../contract/call.js';
import type { RunState, StoredCall, StoredWaitingCall } from '../contract/run-state.js';
import { keepsApprovals, type RememberScope, type StandingApproval } from '../contract/standing-approvals.js';
import type { ToolDefinition } from '../contract/tool.js';
import { canonicalJson, plainJson } from '../kernel/json.js';
import { nodeCrypto } from '../kernel/node-module.js';

/** Whose calls these are, and where they are made. */
interface Surroundings {
  readonly runId: string;
  readonly owner: unknown;
  readonly conversationId: string | undefined;
}

/** A standing approval of a call, before anybody has given it. */
type Standing = Pick<StandingApproval, 'id' | 'tool' | 'pattern' | 'scope' | 'subject' | 'owner'>;

/**
 * What standing approvals a call may be let through by, one for each scope that its tool allows here. All of it is the
 * server's own: a changed definition, another owner or other arguments make another id.
 */
function standingsOf(
  tool: ToolDefinition,
  args: StandingCall['arguments'],
  around: Surroundings,
): readonly Standing[] {
  const { approval } = tool;
  const remember = typeof approval === 'object' ? approval.remember : undefined;
  if (remember === undefined) return [];
  const { by } = remember;
  const pattern = plainJson(
    typeof by === 'function'
      ? by(args)
      : by === undefined
        ? args
        : by.map((name) => [name, args[name] ?? null]),
  );
  if (pattern === undefined) return [];
  const { owner } = around;
  return remember.scopes.flatMap((scope): Standing[] => {
    const subject = subjectOf(scope, around);
    if (subject === undefined) return [];
    const facts = [tool.name, definitionOf(tool), pattern, scope, subject, owner ?? null];
    const id = nodeCrypto().hash('sha256', canonicalJson(facts), 'base64url');
    const about = { id, tool: tool.name, pattern, scope };
    return [{ ...about, ...(subject === '' ? {} : { subject }), ...(owner === undefined ? {} : { owner }) }];
  });
}

/** What a scope is about; `undefined` where there is no such thing here. */
function subjectOf(scope: RememberScope, { runId, owner, conversationId }: Surroundings): string | undefined {
  if (scope === 'run') return runId;
  if (scope === 'conversation') return conversationId;
  return owner === undefined ? undefined : '';
}

/** What of a tool must not have changed since somebody said yes: all that they could know of it. */
function definitionOf(tool: ToolDefinition): unknown {
  const { description, parameters, annotations, execution, approval } = tool;
  const by = typeof approval === 'object' ? approval.remember?.by : undefined;
  const written = typeof by === 'function' ? String(by) : (by ?? null);
  return plainJson({ description, parameters, annotations, execution, approval, by: written });
}

/** Looks for the standing approval of a call, where the store of the run keeps any. */
export function standingLookup(
  store: unknown,
  { runId, owner }: Pick<Surroundings, 'runId' | 'owner'>,
): ((call: StandingCall) => Promise<StandingYes | undefined>) | undefined {
  if (!keepsApprovals(store)) return undefined;
  return async ({ tool, arguments: args, conversationId, mayHaveGiven }) => {
    const ids = standingsOf(tool, args, { runId, owner, conversationId }).map(({ id }) => id);
    if (ids.length === 0) return undefined;
    // Of several that stand, one may come from somebody who cannot approve this call.
    const groups = approverOf(tool.approval) === undefined ? [ids] : ids.map((id) => [id]);
    for (const group of groups) {
      const found = await store.approvals.findApproval(group);
      if (found !== undefined && mayHaveGiven(found.answeredBy)) return yesOf(found);
    }
    return undefined;
  };
}

function yesOf({ id, answeredBy }: StandingApproval): StandingYes {
  return { id, ...(answeredBy === undefined ? {} : { answeredBy }) };
}

/** With what answers are remembered. */
export interface Remembering {
  readonly state: RunState;
  readonly tools: ToolRegistry | undefined;
  readonly store: unknown;
  readonly conversationId: string | undefined;
  readonly answeredBy: unknown;
  /** Nothing is kept: only what is wrong is found out. */
  readonly isTrial: boolean;
  readonly faults: string[];
}

/** Keeps the answers that are to stand, and lets those other calls through that wait for the same. */
export async function rememberAnswers(
  calls: readonly StoredCall[],
  remembering: Remembering,
): Promise<readonly StoredCall[]> {
  const { store, faults, isTrial } = remembering;
  const kept = new Map<string, StandingYes>();
  const noted = calls.map((call) => ({ call, standing: standingFor(call, remembering) }));
  for (const { call, standing } of noted) {
    if (standing === undefined || call.status !== 'waiting') continue;
    if (!keepsApprovals(store))
      faults.push(`the yes to '${call.name}' (${call.id}): no store keeps standing ones`);
    else if (!isTrial && faults.length === 0) await store.approvals.addApproval(standing);
    kept.set(standing.id, yesOf(standing));
  }
  return noted.map(({ call, standing }) => {
    if (call.status !== 'waiting') return call;
    if (standing !== undefined) return { ...call, journal: { ...call.journal, standing: yesOf(standing) } };
    return letThrough(call, kept, remembering);
  });
}

function standingFor(call: StoredCall, remembering: Remembering): StandingApproval | undefined {
  if (call.status !== 'waiting' || call.journal.remember === undefined || call.journal.standing !== undefined)
    return undefined;
  const { faults, answeredBy } = remembering;
  const { scope, expires, by } = call.journal.remember;
  if (by === 'policy') return undefined;
  const standing = standingsFor(call, remembering).find((one) => one.scope === scope);
  if (standing === undefined) {
    faults.push(`the yes to '${call.name}' (${call.id}): it cannot stand for ${scope} here: ${WHY[scope]}`);
    return undefined;
  }
  const tool = remembering.tools?.offered(call.name);
  const { maxMs } = (typeof tool?.approval === 'object' && tool.approval.remember) || {};
  const createdAt = Date.now();
  const end = expires === undefined ? maxMs && createdAt + maxMs : Date.parse(expires);
  return {
    ...standing,
    createdAt,
    ...(answeredBy === undefined ? {} : { answeredBy }),
    ...(end === undefined || !Number.isFinite(end) ? {} : { expiresAt: end }),
  };
}

const WHY: Readonly<Record<RememberScope, string>> = {
  run: 'its tool is not given, or allows that no more',
  conversation: 'its tool is not given, or allows that no more, or `scope` has no conversationId',
  user: 'its tool is not given, or allows that no more, or the run has no owner',
};

function standingsFor({ name, journal }: StoredWaitingCall, remembering: Remembering): readonly Standing[] {
  const tool = remembering.tools?.offered(name);
  if (tool === undefined) return [];
  const { state, conversationId } = remembering;
  try {
    return standingsOf(tool, journal.arguments, { runId: state.runId, owner: state.owner, conversationId });
  } catch {
    return [];
  }
}

/** Calls beside the one that was answered, which wait for a yes of the same pattern. */
function letThrough(
  call: StoredWaitingCall,
  kept: ReadonlyMap<string, StandingYes>,
  remembering: Remembering,
): StoredWaitingCall {
  const isAsked = ({ kind, inner, message }: StoredWaitingCall['waits'][number]): boolean =>
    kind === 'approval' && inner === undefined && message === undefined;
  if (kept.size === 0 || !call.waits.some(isAsked)) return call;
  const standing = standingsFor(call, remembering)
    .map(({ id }) => kept.get(id))
    .find((yes) => yes !== undefined);
  if (standing === undefined || !couldApprove(call, standing, remembering)) return call;
  const { answeredBy } = standing;
  const given = { kind: 'approval', index: 0, answeredBy } as const;
  const journal = {
    ...call.journal,
    approved: true as const,
    standing,
    ...(answeredBy === undefined ? {} : { given: [...(call.journal.given ?? []), given] }),
  };
  return { ...call, journal, waits: call.waits.filter((wait) => !isAsked(wait)) };
}

/** Where a tool decides itself and fails, somebody is asked, and its failure is reported to them. */
function couldApprove(
  { name, journal }: StoredWaitingCall,
  { answeredBy }: StandingYes,
  { tools, state: { owner } }: Remembering,
): boolean {
  const request = { answeredBy, owner, call: { tool: name, arguments: journal.arguments } };
  return mayApprove(approverOf(tools?.offered(name)?.approval), request, () => {});
}
