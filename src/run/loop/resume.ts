import { type Answer, isNobody, type PendingKind, type Wait } from '../../core/contract/call.js';
import type { Logger } from '../../core/contract/ports.js';
import type {
  RunState,
  StoredCall,
  StoredInnerRun,
  StoredWaitingCall,
} from '../../core/contract/run-state.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { withoutUndefined } from '../../core/kernel/json.js';
import type { CheckedArguments } from '../call/call-pipeline.js';
import { logFailure } from '../call/failure-log.js';
import { registryOf } from '../call/tool-registry.js';
import {
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
  withAnswer,
} from '../call/waits.js';
import { toolsOfAgents, waitsOf } from './child-runs.js';
import { onlyKnown } from './offered-tools.js';
import type { ResumeConfig, ResumeOptions } from './options.js';
import { checkOwner } from './run-owner.js';
import { type Remembering, rememberAnswers, withGiven } from './standing-approvals.js';
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
  const secret = config?.stateSecret;
  const valid = validateState(given, secret);
  const { state } = valid;
  const isSigned = state.signature !== undefined;
  const isKnown = isCertain || (isSigned && isSignedWith(state, secret));
  checkOwner({ owner: state.owner, isCertain: isKnown, isForged: isSigned && !isKnown }, scope);
  const approved = new Map<StoredCall, AskedApproval>();
  const answered = applyAnswers(valid, answers, { answeredBy, approved });
  const withModel = (calls: readonly StoredCall[]): RunState => ({
    ...withCalls(state, calls),
    ...(model && { model }),
  });
  if (approved.size === 0 && !needTools(answered)) return withModel(answered);
  const tools = config?.tools && onlyKnown(registryOf(config.tools), state.tools);
  const checking: Checking = {
    store: config?.store,
    conversationId: scope.conversationId,
    answeredBy,
    isTrial,
    tools,
    // The process that continues the run has the tools, and checks.
    isLeft: isTrial && tools === undefined,
    owner: state.owner,
    logger: config?.logger,
    approved,
    notAllowed: [],
    changes: new Map(),
    faults: [],
  };
  return finishAnswers(state, answered, checking).then(withModel);
}

interface AskedApproval {
  readonly call: StoredWaitingCall;
  readonly wait: Wait;
}

interface GivenAnswers {
  readonly answers: ReadonlyMap<string, Answer>;
  readonly answeredBy: unknown;
  /** The calls that they approve, or let run again. */
  readonly approved: Map<StoredCall, AskedApproval>;
  readonly faults: string[];
  /** The id from the caller, for messages. */
  readonly label: (id: string) => string;
}

/** Writes answers into the calls that wait for them, also in nested runs; the given state does not change. */
function applyAnswers(
  valid: ValidState,
  answers: readonly Answer[],
  given: Pick<GivenAnswers, 'answeredBy' | 'approved'>,
): readonly StoredCall[] {
  if (!Array.isArray(answers)) throw invalidAnswers(['answers is not an array']);
  const pending = new Set(valid.waits.map((open) => open.pending.id));
  const byId = new Map<string, Answer>();
  const faults: string[] = [];
  for (const answer of answers as readonly Answer[]) {
    const id = Object(answer).id as unknown;
    if (typeof id !== 'string') faults.push('an answer without an id');
    else if (byId.has(id)) faults.push(`'${id}' is answered twice`);
    else if (pending.has(id)) byId.set(id, answer);
    else faults.push(`'${id}' is not pending: it was answered before, or belongs to another run or call`);
  }
  const calls = answerOpen(valid, { ...given, answers: byId, faults, label: (id) => id });
  if (faults.length > 0) throw invalidAnswers(faults);
  return calls;
}

function answerOpen({ state, waits }: ValidState, given: GivenAnswers): readonly StoredCall[] {
  return state.open.calls.map((call) => {
    if (call.status !== 'waiting') return call;
    const own = waits.filter((open) => open.call === call);
    const answered = answerCall(call, own, given);
    return call.inner === undefined || answered.journal.refused !== undefined
      ? answered
      : answerChildren(answered, own, given);
  });
}

function answerCall(
  call: StoredWaitingCall,
  waits: ValidState['waits'],
  { answers, answeredBy, approved, faults, label }: GivenAnswers,
): StoredWaitingCall {
  let current = call;
  let asked: Wait | undefined;
  for (const { wait, pending } of waits) {
    if (wait.inner !== undefined) continue;
    const answer = answers.get(pending.id);
    if (answer === undefined) {
      if (!isExpired(wait)) continue;
      // The refusal ends the call, so it has no other waits.
      const refused = { reason: `${UNANSWERED[wait.kind]} until ${wait.expiresAt}`, expired: true } as const;
      current = { ...current, journal: { ...current.journal, refused }, waits: [] };
      continue;
    }
    const outcome = withAnswer({ wait, journal: current.journal }, answer);
    if (!outcome.ok) {
      faults.push(`'${label(pending.id)}' (${pending.tool}): ${outcome.problem}`);
      continue;
    }
    const journal = withGiven(outcome.journal, wait, answeredBy);
    // A refusal answers the whole call.
    const left = journal.refused === undefined ? current.waits.filter((other) => other !== wait) : [];
    current = { ...current, journal, waits: left };
    if ((wait.kind === 'approval' || wait.kind === 'outcome') && needsApprover(answer)) asked = wait;
  }
  if (asked !== undefined && current.journal.refused === undefined)
    approved.set(current, { call, wait: asked });
  return current;
}

const UNANSWERED: Readonly<Record<PendingKind, string>> = {
  approval: 'nobody approved it',
  question: 'nobody answered what it asks',
  client: 'the client said nothing of it, also not whether it was done,',
  outcome: 'nobody said what came of it',
};

/** Answers the waits of runs inside a call; their remaining waits become those of the call. */
function answerChildren(
  call: StoredWaitingCall,
  waits: ValidState['waits'],
  given: GivenAnswers,
): StoredWaitingCall {
  const inner = (call.inner ?? []).map((known): StoredInnerRun => {
    const { run, state } = known;
    if (state === undefined) return known;
    const own = waits.filter(({ wait }) => wait.inner?.run === run);
    const ids = new Map(own.map(({ wait, pending }) => [wait.inner?.id ?? '', pending.id]));
    const answers = new Map<string, Answer>();
    for (const [id, outer] of ids) {
      const answer = given.answers.get(outer);
      if (answer !== undefined) answers.set(id, { ...answer, id });
    }
    const label = (id: string): string => given.label(ids.get(id) ?? id);
    // It comes from outside, like the enclosing state.
    const valid = validateState(state, undefined);
    return { run, state: withCalls(valid.state, answerOpen(valid, { ...given, answers, label })) };
  });
  return withChildren(call, inner);
}

function withChildren(call: StoredWaitingCall, inner: readonly StoredInnerRun[]): StoredWaitingCall {
  const own = call.waits.filter((wait) => wait.inner === undefined);
  return { ...call, inner, waits: [...own, ...waitsOf(inner)] };
}

/** A state with these calls, and their waits. */
function withCalls(state: RunState, calls: readonly StoredCall[]): RunState {
  const open = { ...state.open, calls };
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

/** Whether answers need the tools of their calls, to check edits and determine standing approvals. */
function needTools(calls: readonly StoredCall[]): boolean {
  return calls.some((call) => {
    if (call.status !== 'waiting') return false;
    const { remember, standing } = call.journal;
    // A policy stores its approvals when the call is made.
    const isForStore = remember !== undefined && remember.by === undefined && standing === undefined;
    if (isForStore || isUncheckedEdit(call)) return true;
    return call.inner?.some(({ state }) => state !== undefined && needTools(state.open.calls)) ?? false;
  });
}

function isUncheckedEdit({ journal: { edited } }: StoredWaitingCall): boolean {
  return edited !== undefined && edited.isChecked === undefined;
}

/** The data for finishing answers, and its findings. */
interface Checking extends Omit<Remembering, 'state'>, Pick<GivenAnswers, 'approved'> {
  /** Another process, which continues the run, has the tools, or a tool that runs a model itself. */
  readonly isLeft: boolean;
  readonly owner: unknown;
  readonly logger: Logger | undefined;
  /** Calls that this user may not approve. */
  readonly notAllowed: string[];
  /** Approved calls that their tool no longer accepts, as they waited, and the current question. */
  readonly changes: Map<StoredCall, { readonly asked: StoredCall; readonly change: string }>;
}

/** Reports all faults before an approval for later calls is stored. */
async function finishAnswers(
  state: RunState,
  calls: readonly StoredCall[],
  checking: Checking,
): Promise<readonly StoredCall[]> {
  const checked = await checkedCalls(calls, checking);
  const { notAllowed, changes, faults, isLeft } = checking;
  if (notAllowed.length > 0) throw new ToolwrightError('RunNotAllowed', notAllowed.join(' '));
  if (changes.size > 0) {
    const change = [...changes.values()].map(({ change }) => change).join(' ');
    const asked = state.open.calls.map((call) => changes.get(call)?.asked ?? call);
    const message = `No answer was taken, and nothing has run. ${change}`;
    throw new ToolsChanged(message, withCalls(state, asked));
  }
  if (isLeft) return checked;
  const answered = { ...state, open: { ...state.open, calls: checked } };
  await rememberedCalls(answered, { ...checking, isTrial: true });
  if (faults.length > 0) throw invalidAnswers(faults);
  return rememberedCalls(answered, checking);
}

function checkedCalls(calls: readonly StoredCall[], checking: Checking): Promise<readonly StoredCall[]> {
  return Promise.all(
    calls.map((call) => {
      if (call.status !== 'waiting') return call;
      const asked = checking.approved.get(call);
      if (asked !== undefined) return checkApproval(call, asked, checking);
      return withChildCalls(call, checking, ({ open }, inner) => checkedCalls(open.calls, inner));
    }),
  );
}

/** Checks that the user may let a call run, and that its tool still accepts the approved arguments. */
async function checkApproval(
  call: StoredWaitingCall,
  { call: before, wait }: AskedApproval,
  checking: Checking,
): Promise<StoredCall> {
  const { tools, isLeft, changes } = checking;
  const { name, journal } = call;
  const tool = tools?.offered(name);
  if (wait.kind === 'outcome') {
    const refusal = approverFault(call, { wait, tool }, checking);
    if (refusal !== undefined) checking.notAllowed.push(refusal);
    return call;
  }
  const isEdited = isUncheckedEdit(call);
  const isGone = tools !== undefined && tool === undefined;
  const checked = isGone ? undefined : await tools?.check(name, journal.arguments, { transformed: true });
  const change = checked?.ok ? changeOfArguments(journal.arguments, checked.arguments) : checked?.problem;
  const problem = isGone ? GONE : change;
  if (problem !== undefined && (isGone || !isEdited)) {
    const ways = tool === undefined ? '' : 'approve it with arguments that fit, ';
    const change = changedSince(name, problem);
    // The question has the arguments that would run. Answers and `once` work belonged to other arguments.
    const asked = checked?.ok
      ? { ...before, journal: { ...before.journal, arguments: checked.arguments, answers: [], once: [] } }
      : before;
    const again = askedAgain(waitAsNow(asked, wait, tool), change, wait.index);
    changes.set(before, {
      asked: { ...asked, waits: before.waits.map((one) => (one === wait ? again : one)) },
      change: `${change} To go on, ${ways}refuse the call or cancel the run.`,
    });
  }
  const ready = isEdited && !isGone && !isLeft ? withEdit(call, checked, checking) : call;
  const refusal = approverFault(ready, { wait, tool }, checking);
  if (refusal !== undefined) checking.notAllowed.push(refusal);
  return ready;
}

/** The current question of the tool; the reason of a policy, which is part of the id, and the deadline stay. */
function waitAsNow({ journal }: StoredWaitingCall, before: Wait, tool: ToolDefinition | undefined): Wait {
  if (tool === undefined) return before;
  const { message, expiresAt } = before;
  const asked = approvalWait(tool.approval, { args: journal.arguments, onError: () => {} });
  return withoutUndefined({ message, expiresAt, ...asked });
}

/** Why this user may not approve a call, without names. If a function decides that, its tool is needed. */
function approverFault(
  { name, id, journal }: StoredWaitingCall,
  { wait, tool }: { readonly wait: Wait; readonly tool: ToolDefinition | undefined },
  { answeredBy, owner, isLeft, logger }: Checking,
): string | undefined {
  if (tool === undefined && wait.approver === 'function')
    return isLeft
      ? undefined
      : `Who may approve '${name}' (${id}), its tool decides, which is not given here.`;
  const approver = tool === undefined ? wait.approver : approverOf(tool.approval);
  const request = { answeredBy, owner, call: { tool: name, arguments: journal.arguments } };
  const isAllowed = mayApprove(approver as ReturnType<typeof approverOf>, request, (error) =>
    logFailure(logger, {
      what: 'The approver function of a tool threw; nobody may approve its calls',
      error,
      at: { tool: name },
    }),
  );
  if (isAllowed) return undefined;
  if (approver === 'not-the-owner' && !isNobody(answeredBy) && formOf(answeredBy) !== formOf(owner))
    return `Whether the owner of the run answers is unknown for the call of '${name}' (${id}): the owner has the form ${formOf(owner)}, and answeredBy ${formOf(answeredBy)}. Give answeredBy in the form of the owner. Nothing has run.`;
  const verb = wait.kind === 'outcome' ? 'reported as done or not done' : 'approved';
  const who =
    approver === 'not-the-owner' ? 'somebody else than the owner of the run' : 'those whom its tool accepts';
  return `The call of '${name}' (${id}) can be ${verb} only by ${who}. Nothing has run.`;
}

function withEdit(
  call: StoredWaitingCall,
  checked: CheckedArguments | undefined,
  { tools, faults }: Checking,
): StoredWaitingCall {
  const { id, name, journal } = call;
  // The tool may have changed its rule since the question was asked.
  const approval = tools?.offered(name)?.approval;
  const decisions = typeof approval === 'object' ? approval.decisions : undefined;
  let problem: string | undefined;
  if (checked === undefined) problem = 'they can be checked only where the tools are given';
  else if (!checked.ok) problem = checked.problem;
  // Unknown keys in edited arguments are reported and not removed, because the user meant them.
  else if (checked.removed.length > 0) problem = `there is no ${checked.removed.join(', ')}`;
  else if (decisions?.includes('edit') === false) problem = 'its tool takes no edits';
  if (!checked?.ok || problem !== undefined) {
    faults.push(`the edited arguments of '${name}' (${id}): ${problem}`);
    return call;
  }
  const { original } = journal.edited ?? { original: journal.arguments };
  const edited = { original, isChecked: true as const };
  return { ...call, journal: { ...journal, arguments: checked.arguments, edited } };
}

async function rememberedCalls(state: RunState, checking: Checking): Promise<readonly StoredCall[]> {
  const calls = await rememberAnswers(state.open.calls, { ...checking, state });
  return Promise.all(
    calls.map((call) => (call.status === 'waiting' ? withChildCalls(call, checking, rememberedCalls) : call)),
  );
}

/** Applies the same to the calls of runs inside a call, with the tools of its agent. */
async function withChildCalls(
  call: StoredWaitingCall,
  checking: Checking,
  work: (state: RunState, checking: Checking) => Promise<readonly StoredCall[]>,
): Promise<StoredCall> {
  if (call.inner === undefined) return call;
  const tool = checking.tools?.offered(call.name);
  const tools = tool && toolsOfAgents.get(tool)?.(call.journal.arguments);
  // The tools of a tool that runs a model itself are unknown before they run: the calls are checked then.
  const isLeft = checking.isLeft || tools === undefined;
  const done = await Promise.all(
    call.inner.map(async (run) => {
      const { state } = run;
      if (state === undefined) return run;
      return { ...run, state: withCalls(state, await work(state, { ...checking, tools, isLeft })) };
    }),
  );
  return withChildren(call, done);
}
