import {
  type Answer,
  type CallJournal,
  isNobody,
  type PendingKind,
  type StandingYes,
  type Wait,
} from '../../core/contract/call.js';
import type { Logger } from '../../core/contract/ports.js';
import type { RunState, StoredInnerRun, StoredWaitingCall } from '../../core/contract/run-state.js';
import {
  keepsApprovals,
  type RememberScope,
  type StandingApproval,
} from '../../core/contract/standing-approvals.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { plainJson, withoutUndefined } from '../../core/kernel/json.js';
import type { CheckedArguments } from '../call/call-pipeline.js';
import { jsonDigest } from '../call/effect-key.js';
import { logFailure } from '../call/failure-log.js';
import type { StandingCall } from '../call/invocation.js';
import { registryOf, type ToolRegistry } from '../call/tool-registry.js';
import {
  answerWait,
  approvalWait,
  approverOf,
  askedAgain,
  changedSince,
  changeOfArguments,
  formOf,
  GONE,
  isExpired,
  mayApprove,
  needsApprover,
} from '../call/waits.js';
import { toolsOfAgents, waitsOf } from './child-runs.js';
import { onlyKnown } from './loop-tools.js';
import type { ResumeConfig, ResumeOptions } from './options.js';
import { checkOwner } from './run-owner.js';
import {
  isSignedWith,
  openWaits,
  signState,
  stateVersion,
  type ValidState,
  validateState,
} from './suspend.js';

/** The answers and options of a continued run. */
export interface Resumption extends ResumeOptions {
  readonly answers: readonly Answer[];
  /** The state comes from this process or a store, so it cannot have been changed elsewhere. */
  readonly isCertain?: boolean;
  /** The answers are only checked: nothing is stored, and without tools, answers that need them pass. */
  readonly isTrial?: boolean;
}

/** The parts of a config that a resume needs before anything runs. */
type ResumedConfig = {
  readonly [Part in 'stateSecret' | 'tools' | 'store' | 'logger']?: ResumeConfig[Part] | undefined;
};

/** A changed state of a suspended run, signed as a later revision. */
export function resigned(state: RunState, stateSecret: string | undefined): RunState {
  const changed = { ...state, revision: state.revision + 1 };
  return signState(changed, { secret: stateSecret, isOwned: state.owner !== undefined });
}

/** The run with its current questions, if answers were refused because tools have changed. */
export function askedAnew(error: unknown, stateSecret: string | undefined): RunState | undefined {
  return error instanceof ToolsChanged ? resigned(error.state, stateSecret) : undefined;
}

/** Approvals whose tools have changed, so that they cannot be applied. */
class ToolsChanged extends ToolwrightError {
  // Private, so that logs do not show the conversation with the error.
  readonly #state: RunState;

  constructor(message: string, state: RunState) {
    super('DefinitionChanged', message);
    this.#state = state;
  }

  /** The run before the answers, with the questions of its current tools. */
  get state(): RunState {
    return this.#state;
  }
}

/**
 * The state of a suspended run with the answers in its calls. Returns a promise if calls were approved: the approver,
 * and whether the tools still accept the calls, are checked first.
 *
 * @throws ToolwrightError `InvalidState` (515), `RunNotAllowed` (523) also for users who may not approve a call,
 * `DefinitionChanged` (529), and `InvalidAnswer` (514) with every answer that does not match.
 */
export function resumeWith(
  config: ResumedConfig,
  given: unknown,
  { answers, answeredBy, scope = {}, model, isCertain = false, isTrial = false }: Resumption,
): RunState | Promise<RunState> {
  const { stateSecret: secret, tools, store, logger } = config;
  const valid = validateState(given, secret);
  const { state } = valid;
  const { owner } = state;
  const isSigned = state.signature !== undefined;
  const isKnown = isCertain || (isSigned && isSignedWith(state, secret));
  checkOwner({ owner, isCertain: isKnown, isForged: isSigned && !isKnown }, scope);
  if (!Array.isArray(answers)) throw invalidAnswers(['answers is not an array']);
  const faults: string[] = [];
  const pending = new Set(valid.waits.map((open) => open.pending.id));
  const byId = new Map<string, Answer>();
  for (const answer of answers as readonly Answer[]) {
    const id = Object(answer).id as unknown;
    if (typeof id !== 'string') faults.push('an answer without an id');
    else if (byId.has(id)) faults.push(`'${id}' is answered twice`);
    else if (pending.has(id)) byId.set(id, answer);
    else faults.push(`'${id}' is not pending: it was already answered, or belongs to another run or call`);
  }
  const run = openRun(valid, { answers: byId, answeredBy, faults }, (id) => id);
  if (faults.length > 0) throw invalidAnswers(faults);
  const withModel = (answered: RunState): RunState => (model ? { ...answered, model } : answered);
  const calls = [...callsIn(run)];
  if (!calls.some(needsTools)) return withModel(written(run, ({ now }) => now));
  const { conversationId } = scope;
  const checking = { store, conversationId, answeredBy, isTrial, owner, logger, faults, notAllowed: [] };
  const known = tools && onlyKnown(registryOf(tools), state.tools);
  // The process that continues the run has the tools, and checks.
  giveTools(run, known, isTrial && known === undefined);
  return checkAnswers(run, calls, checking).then(() => withModel(written(run, ({ now }) => now)));
}

/** A run whose waiting calls are being answered: the suspended run, or a run inside one of its calls. */
interface OpenRun {
  readonly state: RunState;
  readonly calls: readonly OpenCall[];
  tools?: ToolRegistry | undefined;
  /** Another process, which continues the run, has the tools, or a tool that runs a model itself. */
  isLeft: boolean;
}

/** A waiting call: as it waited, and with its answers. */
interface OpenCall {
  readonly run: OpenRun;
  now: StoredWaitingCall;
  readonly before: StoredWaitingCall;
  /** Its wait that was answered with an approval, or with a report that the call was done. */
  readonly approved: Wait | undefined;
  /** The runs inside the call that wait. */
  readonly inner: ReadonlyMap<number, OpenRun>;
  /** Its tool no longer accepts it as it was approved: the call with the current question. */
  changed?: { readonly asked: StoredWaitingCall; readonly change: string };
}

interface TakenAnswers {
  readonly answers: ReadonlyMap<string, Answer>;
  readonly answeredBy: unknown;
  readonly faults: string[];
}

/**
 * Applies answers to the calls that wait for them, also in runs inside calls; the given state does not change. `idOf`
 * is the id under which the outermost run asks.
 */
function openRun({ state, waits }: ValidState, taken: TakenAnswers, idOf: (id: string) => string): OpenRun {
  const calls: OpenCall[] = [];
  const run: OpenRun = { state, calls, isLeft: false };
  for (const before of state.open.calls) {
    if (before.status !== 'waiting') continue;
    const own = waits.filter((open) => open.call === before);
    const { now, approved } = answeredCall(before, own, { ...taken, idOf });
    const inner = new Map<number, OpenRun>();
    // A refusal answers the whole call.
    const waitingRuns = now.journal.refused === undefined ? (now.inner ?? []) : [];
    for (const { run: number, state: suspended } of waitingRuns) {
      if (suspended === undefined) continue;
      const ids = new Map(
        own.flatMap(({ wait, pending }) =>
          wait.inner?.run === number ? [[wait.inner.id, idOf(pending.id)] as const] : [],
        ),
      );
      // It comes from outside, like the enclosing state.
      inner.set(
        number,
        openRun(validateState(suspended, undefined), taken, (id) => ids.get(id) ?? id),
      );
    }
    calls.push({ run, before, now, approved, inner });
  }
  return run;
}

function answeredCall(
  call: StoredWaitingCall,
  waits: ValidState['waits'],
  { answers, answeredBy, faults, idOf }: TakenAnswers & { readonly idOf: (id: string) => string },
): Pick<OpenCall, 'now' | 'approved'> {
  let now = call;
  let approved: Wait | undefined;
  for (const { wait, pending } of waits) {
    if (wait.inner !== undefined) continue;
    const id = idOf(pending.id);
    const answer = answers.get(id);
    if (answer === undefined) {
      if (!isExpired(wait)) continue;
      // The refusal ends the call, so it has no other waits.
      const refused = { reason: `${UNANSWERED[wait.kind]} until ${wait.expiresAt}`, expired: true } as const;
      now = { ...now, journal: { ...now.journal, refused }, waits: [] };
      continue;
    }
    const outcome = answerWait({ wait, journal: now.journal }, answer);
    if (!outcome.ok) {
      faults.push(`'${id}' (${pending.tool}): ${outcome.problem}`);
      continue;
    }
    const journal = withGiven(outcome.journal, wait, answeredBy);
    const left = journal.refused === undefined ? now.waits.filter((other) => other !== wait) : [];
    now = { ...now, journal, waits: left };
    if ((wait.kind === 'approval' || wait.kind === 'outcome') && needsApprover(answer)) approved = wait;
  }
  return { now, approved: now.journal.refused === undefined ? approved : undefined };
}

const UNANSWERED: Readonly<Record<PendingKind, string>> = {
  approval: 'it was not approved',
  question: 'its question was not answered',
  client: 'the client did not report whether it was executed',
  outcome: 'its outcome was not reported',
};

/** The waiting calls of a run, each before those of the runs inside it. */
function* callsIn({ calls }: OpenRun): Generator<OpenCall> {
  for (const call of calls) {
    yield call;
    for (const run of call.inner.values()) yield* callsIn(run);
  }
}

/**
 * The state of a run with the chosen form of each waiting call. The waits of runs inside a call are also those of the
 * call.
 */
function written({ state, calls }: OpenRun, choose: (call: OpenCall) => StoredWaitingCall): RunState {
  const changed = new Map(
    calls.map((call) => {
      const chosen = choose(call);
      if (call.inner.size === 0) return [call.before, chosen];
      const inner = (chosen.inner ?? []).map((known): StoredInnerRun => {
        const run = call.inner.get(known.run);
        return run === undefined ? known : { run: known.run, state: written(run, choose) };
      });
      const own = chosen.waits.filter((wait) => wait.inner === undefined);
      return [call.before, { ...chosen, inner, waits: [...own, ...waitsOf(inner)] }];
    }),
  );
  const open = {
    ...state.open,
    calls: state.open.calls.map((call) => changed.get(call as StoredWaitingCall) ?? call),
  };
  const version = Math.max(stateVersion({ ...state, open }), state.version) as RunState['version'];
  return { ...state, version, open, pending: openWaits({ ...state, open }).map(({ pending }) => pending) };
}

function invalidAnswers(faults: readonly string[]): ToolwrightError {
  const lines = faults.map((fault) => `\n  - ${fault}`);
  return new ToolwrightError(
    'InvalidAnswer',
    `The run was not resumed; its answers are wrong:${lines.join('')}`,
  );
}

/** Whether the tool of a call is needed, to check its approval or its edit, or to determine a standing approval. */
function needsTools({ now, approved }: OpenCall): boolean {
  const { remember, standing } = now.journal;
  // A policy stores its approvals when the call is made.
  const isForStore = remember !== undefined && remember.by === undefined && standing === undefined;
  return approved !== undefined || isForStore || isUncheckedEdit(now);
}

function isUncheckedEdit({ journal: { edited } }: StoredWaitingCall): boolean {
  return edited !== undefined && edited.isChecked === undefined;
}

/** Gives a run its tools, and the runs inside its calls those of their agents. */
function giveTools(run: OpenRun, tools: ToolRegistry | undefined, isLeft: boolean): void {
  run.tools = tools;
  run.isLeft = isLeft;
  for (const { now, inner } of run.calls) {
    const tool = tools?.offered(now.name);
    const ofAgent = inner.size > 0 && tool ? toolsOfAgents.get(tool)?.(now.journal.arguments) : undefined;
    // The tools of a tool that runs a model itself are unknown before they run: the calls are checked then.
    for (const child of inner.values()) giveTools(child, ofAgent, isLeft || ofAgent === undefined);
  }
}

/** The data for checking answers, and the faults. */
interface Checking {
  readonly store: unknown;
  readonly conversationId: string | undefined;
  readonly answeredBy: unknown;
  /** Nothing is stored: only faults are collected. */
  readonly isTrial: boolean;
  readonly faults: string[];
  readonly owner: unknown;
  readonly logger: Logger | undefined;
  /** Why this user may not approve calls. */
  readonly notAllowed: string[];
}

/** Checks approved calls. Reports all faults before an approval for later calls is stored. */
async function checkAnswers(run: OpenRun, calls: readonly OpenCall[], checking: Checking): Promise<void> {
  await Promise.all(
    calls.map((call) => call.approved && checkApproval(call, { ...checking, wait: call.approved })),
  );
  const { notAllowed, faults } = checking;
  if (notAllowed.length > 0) throw new ToolwrightError('RunNotAllowed', notAllowed.join(' '));
  const changes = calls.flatMap(({ changed }) => changed?.change ?? []);
  if (changes.length > 0) {
    const message = `No answer was accepted, and nothing has run. ${changes.join(' ')}`;
    throw new ToolsChanged(
      message,
      written(run, ({ changed, before }) => changed?.asked ?? before),
    );
  }
  if (!run.isLeft) await rememberAnswers(calls, checking);
  if (faults.length > 0 && !run.isLeft) throw invalidAnswers(faults);
}

type ApprovalCheck = Checking & { readonly wait: Wait };

/** Checks that the user may let a call run, and that its tool still accepts the approved arguments. */
async function checkApproval(call: OpenCall, checking: ApprovalCheck): Promise<void> {
  const { before, run } = call;
  const { wait } = checking;
  const { tools, isLeft } = run;
  const { name, journal } = call.now;
  const tool = tools?.offered(name);
  if (wait.kind === 'approval') {
    const isEdited = isUncheckedEdit(call.now);
    const isGone = tools !== undefined && tool === undefined;
    const checked = isGone ? undefined : await tools?.check(name, journal.arguments, { transformed: true });
    const change = checked?.ok ? changeOfArguments(journal.arguments, checked.arguments) : checked?.problem;
    const problem = isGone ? GONE : change;
    if (problem !== undefined && (isGone || !isEdited)) {
      const ways = tool === undefined ? '' : 'approve it with arguments that fit, ';
      const text = changedSince(name, problem);
      // The question has the arguments that would run. Answers and `once` work belonged to other arguments.
      const asked = checked?.ok
        ? { ...before, journal: { ...before.journal, arguments: checked.arguments, answers: [], once: [] } }
        : before;
      // The reason of a policy, which is part of the id, and the deadline stay.
      const { message, expiresAt } = wait;
      const question = tool && {
        ...{ message, expiresAt },
        ...approvalWait(tool.approval, { args: asked.journal.arguments, onError: () => {} }),
      };
      const again = askedAgain(question ? withoutUndefined(question) : wait, text, wait.index);
      call.changed = {
        asked: { ...asked, waits: before.waits.map((one) => (one === wait ? again : one)) },
        change: `${text} To continue, ${ways}refuse the call or cancel the run.`,
      };
    }
    if (isEdited && !isGone && !isLeft) takeEdit(call, checked, checking);
  }
  const refusal = approverFault(call, tool, checking);
  if (refusal !== undefined) checking.notAllowed.push(refusal);
}

/** Why this user may not approve a call, without names. If a function decides that, its tool is needed. */
function approverFault(
  { now: { name, id, journal }, run }: OpenCall,
  tool: ToolDefinition | undefined,
  { wait, answeredBy, owner, logger }: ApprovalCheck,
): string | undefined {
  if (tool === undefined && wait.approver === 'function')
    return run.isLeft
      ? undefined
      : `The tool '${name}' decides who may approve its call (${id}), and the tool is missing here: set \`tools\`.`;
  const approver = tool === undefined ? wait.approver : approverOf(tool.approval);
  const request = { answeredBy, owner, call: { tool: name, arguments: journal.arguments } };
  const isAllowed = mayApprove(approver as ReturnType<typeof approverOf>, request, (error) =>
    logFailure(logger, {
      what: 'The approver function of a tool threw; the approval does not count',
      error,
      at: { tool: name },
    }),
  );
  if (isAllowed) return undefined;
  if (approver === 'not-the-owner' && !isNobody(answeredBy) && formOf(answeredBy) !== formOf(owner))
    return `The call of '${name}' (${id}) may not be approved by the owner of the run, and answeredBy cannot be compared with the owner: the owner has the form ${formOf(owner)}, answeredBy ${formOf(answeredBy)}. Use the form of the owner for answeredBy. Nothing has run.`;
  const verb = wait.kind === 'outcome' ? 'reported as done or not done' : 'approved';
  const who =
    approver === 'not-the-owner' ? 'a user who is not the owner of the run' : 'a user whom its tool accepts';
  return `The call of '${name}' (${id}) can be ${verb} only by ${who}. Nothing has run.`;
}

function takeEdit(
  call: OpenCall,
  checked: CheckedArguments | undefined,
  { faults }: Pick<Checking, 'faults'>,
): void {
  const { id, name, journal } = call.now;
  // The tool may have changed its rule since the question was asked.
  const approval = call.run.tools?.offered(name)?.approval;
  const decisions = typeof approval === 'object' ? approval.decisions : undefined;
  let problem: string | undefined;
  if (checked === undefined) problem = 'they cannot be checked without `tools`';
  else if (!checked.ok) problem = checked.problem;
  // Unknown keys in edited arguments are reported and not removed, because the user meant them.
  else if (checked.removed.length > 0) problem = `the tool has no parameter ${checked.removed.join(', ')}`;
  else if (decisions?.includes('edit') === false) problem = 'its tool allows no edits';
  if (!checked?.ok || problem !== undefined) {
    faults.push(`the edited arguments of '${name}' (${id}): ${problem}`);
    return;
  }
  const { original } = journal.edited ?? { original: journal.arguments };
  const edited = { original, isChecked: true as const };
  call.now = { ...call.now, journal: { ...journal, arguments: checked.arguments, edited } };
}

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
    const id = jsonDigest(facts);
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

/**
 * Stores approvals for later calls, and allows other calls of the same run that wait for the same approval; with
 * faults, nothing is stored.
 */
async function rememberAnswers(calls: readonly OpenCall[], remembering: Checking): Promise<void> {
  const { store, faults, isTrial } = remembering;
  const given = new Map<OpenCall, StandingApproval>();
  for (const call of calls) {
    const standing = standingFor(call, remembering);
    if (standing === undefined) continue;
    const { name, id } = call.now;
    if (!keepsApprovals(store))
      faults.push(
        `the approval of '${name}' (${id}) cannot be remembered: the store does not store approvals`,
      );
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
  call: OpenCall,
  { faults, answeredBy, conversationId }: Checking,
): StandingApproval | undefined {
  const { name, id, journal } = call.now;
  if (journal.remember === undefined || journal.standing !== undefined) return undefined;
  const { scope, expires, by } = journal.remember;
  if (by === 'policy') return undefined;
  const standing = standingsFor(call, conversationId).find((one) => one.scope === scope);
  if (standing === undefined) {
    faults.push(
      `the approval of '${name}' (${id}) cannot be remembered for the ${scope}: its tool is missing here or does not allow that, \`scope\` has no conversationId, or the run has no owner`,
    );
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

function standingsFor(
  { now: { name, journal }, run }: OpenCall,
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
function letThrough(call: OpenCall, given: readonly StandingApproval[], { conversationId }: Checking): void {
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
function withGiven(
  journal: CallJournal,
  { kind, index }: Pick<Wait, 'kind' | 'index'>,
  answeredBy: unknown,
): CallJournal {
  if (answeredBy === undefined) return journal;
  return { ...journal, given: [...(journal.given ?? []), { kind, index, answeredBy }] };
}
