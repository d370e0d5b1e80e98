import { approverOf, mayApprove } from '../call/approver.js';
import type { CheckedArguments } from '../call/edited-call.js';
import { SafeLog } from '../call/log.js';
import { registryOf, ToolRegistry } from '../call/tool-registry.js';
import { approvalWait, askedAgain, changedSince, GONE, isExpired, withAnswer } from '../call/waits.js';
import type { Answer, CallJournal, PendingKind, Wait } from '../contract/call.js';
import type { RunState, StoredCall, StoredInnerRun, StoredWaitingCall } from '../contract/run-state.js';
import type { ToolDefinition } from '../contract/tool.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { toolsOfAgents, waitsOf } from './inner-runs.js';
import type { RunStart } from './loop-run.js';
import type { ResumeConfig, ResumeOptions } from './options.js';
import { checkOwner } from './run-owner.js';
import { type Remembering, rememberAnswers } from './standing-approvals.js';
import { isSignedWith, openWaits, signState, type ValidState, validateState } from './suspend.js';

/** With what a run goes on. */
export interface Resumption extends ResumeOptions {
  readonly answers: readonly Answer[];
  /** The state is this process's own or out of a store: nobody else could change it. */
  readonly isCertain?: boolean;
  /** The answers are only looked at: nothing of them is kept, and without tools what needs them passes. */
  readonly isTrial?: boolean;
}

/** What of a config a resume needs before anything runs. */
type ResumedConfig = {
  readonly [Part in 'stateSecret' | 'tools' | 'store' | 'logger']?: ResumeConfig[Part] | undefined;
};

/** The state with the answers that it has, or with other questions; it is another one than before. */
export function resigned(state: RunState, stateSecret: string | undefined): RunState {
  const changed = { ...state, revision: state.revision + 1 };
  return signState(changed, { secret: stateSecret, isOwned: state.owner !== undefined });
}

/** The run with the questions as they are asked now, where answers were refused because tools have changed. */
export function askedAnew(error: unknown, stateSecret: string | undefined): RunState | undefined {
  return error instanceof ToolsChanged ? resigned(error.state, stateSecret) : undefined;
}

/** Approvals whose tools have changed, so that they cannot be applied. */
class ToolsChanged extends ToolwrightError {
  // Private, so that no log shows the conversation with the error.
  readonly #state: RunState;

  constructor(message: string, state: RunState) {
    super('DefinitionChanged', message);
    this.#state = state;
  }

  /** The run as it was before the answers, with the questions as its tools ask them now. */
  get state(): RunState {
    return this.#state;
  }
}

/**
 * A run that goes on from its state, with the answers in its calls; a promise where calls were approved: by whom, and
 * whether their tools still take them, is checked first.
 *
 * @throws ToolwrightError `InvalidState` (515), `RunNotAllowed` (523) also for whoever may not approve a call,
 *   `DefinitionChanged` (529), and `InvalidAnswer` (514), which names every answer that fits nothing.
 */
export function resumeWith(
  config: ResumedConfig,
  given: unknown,
  resumption: Resumption,
): RunStart | Promise<RunStart> {
  const { answeredBy, scope = {}, model, isCertain = false } = resumption;
  const secret = config?.stateSecret;
  const valid = validateState(given, secret);
  const { state } = valid;
  const isSigned = state.signature !== undefined;
  const isKnown = isCertain || (isSigned && isSignedWith(state, secret));
  checkOwner({ owner: state.owner, isCertain: isKnown, isForged: isSigned && !isKnown }, scope);
  const approved = new Map<StoredCall, AskedApproval>();
  const answered = applyAnswers(valid, { answers: resumption.answers, answeredBy, approved });
  const startWith = (calls: readonly StoredCall[]): RunStart => ({
    suspended: { ...withCalls(state, calls), ...(model === undefined ? {} : { model }) },
  });
  if (approved.size === 0 && !needTools(answered)) return startWith(answered);
  const { isTrial = false } = resumption;
  const tools = toolsOf(config, state);
  const checking: Checking = {
    store: config?.store,
    conversationId: scope.conversationId,
    answeredBy,
    isTrial,
    tools,
    // Whoever goes on with the run has the tools, and checks.
    isLeft: isTrial && tools === undefined,
    owner: state.owner,
    log: new SafeLog(config?.logger),
    approved,
    notAllowed: [],
    changes: new Map(),
    faults: [],
  };
  return finishAnswers(state, answered, checking).then(startWith);
}

/** A call as it waited for an approval. */
interface AskedApproval {
  readonly call: StoredWaitingCall;
  readonly wait: Wait;
}

/** Answers by the ids of what they answer, who gave them, and what is wrong with them. */
interface GivenAnswers {
  readonly answers: ReadonlyMap<string, Answer>;
  readonly answeredBy: unknown;
  /** The calls that they approve. */
  readonly approved: Map<StoredCall, AskedApproval>;
  readonly faults: string[];
  /** The id that whoever answers knows. */
  readonly label: (id: string) => string;
}

/**
 * Puts answers into the calls that wait for them, in any order, also in runs inside calls; the given state stays as it
 * is.
 *
 * @throws ToolwrightError `InvalidAnswer` (514), which names every answer that fits nothing.
 */
function applyAnswers(
  valid: ValidState,
  {
    answers,
    ...given
  }: Pick<GivenAnswers, 'answeredBy' | 'approved'> & { readonly answers: readonly Answer[] },
): readonly StoredCall[] {
  if (!Array.isArray(answers)) throw invalidAnswers(['they are no array']);
  const pending = new Set(valid.waits.map((open) => open.pending.id));
  const answered = new Map<string, Answer>();
  const faults: string[] = [];
  for (const answer of answers as readonly unknown[]) {
    const fault = faultOf(answer, pending, answered);
    if (fault === undefined) answered.set((answer as Answer).id, answer as Answer);
    else faults.push(fault);
  }
  const calls = answerOpen(valid, { ...given, answers: answered, faults, label: (id) => id });
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
      : answerInner(answered, own, given);
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
      if (isExpired(wait)) current = expired(current, wait);
      continue;
    }
    const outcome = withAnswer({ wait, journal: current.journal }, answer);
    if (!outcome.ok) {
      faults.push(`'${label(pending.id)}' (${pending.tool}): ${outcome.problem}`);
      continue;
    }
    const journal = withGiven(outcome.journal, wait, answeredBy);
    // A refusal answers all of its call.
    const left = journal.refused === undefined ? current.waits.filter((other) => other !== wait) : [];
    current = { ...current, journal, waits: left };
    if (wait.kind === 'approval' && journal.approved) asked = wait;
  }
  if (asked !== undefined && current.journal.refused === undefined)
    approved.set(current, { call, wait: asked });
  return current;
}

/** The answers to what runs inside a call wait for; what they wait for then is what the call waits for. */
function answerInner(
  call: StoredWaitingCall,
  waits: ValidState['waits'],
  given: GivenAnswers,
): StoredWaitingCall {
  const inner = (call.inner ?? []).map(({ run, state, result }): StoredInnerRun => {
    if (state === undefined) return { run, ...(result ? { result } : {}) };
    const own = waits.filter(({ wait }) => wait.inner?.run === run);
    const ids = new Map(own.map(({ wait, pending }) => [wait.inner?.id ?? '', pending.id]));
    const answers = new Map<string, Answer>();
    for (const [id, outer] of ids) {
      const answer = given.answers.get(outer);
      if (answer !== undefined) answers.set(id, { ...answer, id });
    }
    const label = (id: string): string => given.label(ids.get(id) ?? id);
    return { run, state: answeredState(state, { ...given, answers, label }) };
  });
  return {
    ...call,
    inner,
    waits: [...call.waits.filter((wait) => wait.inner === undefined), ...waitsOf(inner)],
  };
}

function answeredState(given: RunState, answers: GivenAnswers): RunState {
  // It comes from outside, as the state around it does.
  const valid = validateState(given, undefined);
  return withCalls(valid.state, answerOpen(valid, answers));
}

/** A state with these calls, and what they wait for. */
function withCalls(state: RunState, calls: readonly StoredCall[]): RunState {
  const open = { ...state.open, calls };
  return { ...state, open, pending: openWaits({ ...state, open }).map(({ pending }) => pending) };
}

/** A call that nobody answered in time: nothing else of it is waited for. */
function expired(call: StoredWaitingCall, wait: Wait): StoredWaitingCall {
  const refused = { reason: expiryReason(wait), expired: true } as const;
  return { ...call, journal: { ...call.journal, refused }, waits: [] };
}

/** What the model is told of a call that nobody answered in time. */
function expiryReason({ kind, expiresAt = '' }: Pick<Wait, 'kind' | 'expiresAt'>): string {
  return `${UNANSWERED[kind]} until ${expiresAt}`;
}

const UNANSWERED: Readonly<Record<PendingKind, string>> = {
  approval: 'nobody approved it',
  question: 'nobody answered what it asks',
  client: 'the client said nothing of it, also not whether it was done,',
  outcome: 'nobody said what came of it',
};

function faultOf(
  answer: unknown,
  pending: ReadonlySet<string>,
  answered: ReadonlyMap<string, Answer>,
): string | undefined {
  if (typeof answer !== 'object' || answer === null || !('id' in answer) || typeof answer.id !== 'string')
    return 'an answer without an id';
  if (answered.has(answer.id)) return `'${answer.id}' is answered twice`;
  if (pending.has(answer.id)) return undefined;
  return `'${answer.id}' is not pending: it was answered before, or belongs to another run or call`;
}

function withGiven(journal: CallJournal, { kind, index }: Wait, answeredBy: unknown): CallJournal {
  if (answeredBy === undefined) return journal;
  return { ...journal, given: [...(journal.given ?? []), { kind, index, answeredBy }] };
}

function invalidAnswers(faults: readonly string[]): ToolwrightError {
  const lines = faults.map((fault) => `\n  - ${fault}`);
  return new ToolwrightError(
    'InvalidAnswer',
    `The run was not resumed; its answers are wrong:${lines.join('')}`,
  );
}

/** Whether answers need the tools of their calls: what was edited is checked, and what is to stand is worked out. */
function needTools(calls: readonly StoredCall[]): boolean {
  return calls.some((call) => {
    if (call.status !== 'waiting') return false;
    if (call.inner === undefined) return needsTool(call);
    const states = call.inner.flatMap(({ state }) => state ?? []);
    return needsTool(call) || states.some(({ open }) => needTools(open.calls));
  });
}

function needsTool(call: StoredWaitingCall): boolean {
  const { remember, standing } = call.journal;
  // What a policy keeps, it keeps when the call is made.
  const isForStore = remember !== undefined && remember.by === undefined && standing === undefined;
  return isForStore || isUncheckedEdit(call);
}

function isUncheckedEdit({ journal: { edited } }: StoredWaitingCall): boolean {
  return edited !== undefined && edited.isChecked === undefined;
}

/** What the run was offered and is given now: nobody checks with tools that it may not use. */
function toolsOf({ tools }: ResumedConfig, { tools: names }: RunState): ToolRegistry | undefined {
  if (tools === undefined) return undefined;
  const registry = registryOf(tools);
  return names === undefined ? registry : registry.view({ allow: [...names] });
}

/** With what answers are finished, and what is found out about them. */
interface Checking extends Omit<Remembering, 'state'>, Pick<GivenAnswers, 'approved'> {
  /** The tools are those of whoever goes on with the run, or of a tool that runs a model itself. */
  readonly isLeft: boolean;
  readonly owner: unknown;
  readonly log: SafeLog;
  /** Calls that whoever answers may not approve. */
  readonly notAllowed: string[];
  /** What of the tool of an approved call has changed; by the calls as they waited. */
  readonly changes: Map<StoredCall, ChangedCall>;
}

/** A call whose tool takes it no more, and the question about it as it is asked now. */
interface ChangedCall {
  readonly asked: StoredCall;
  readonly change: string;
}

/**
 * Whoever answers hears of all that is wrong, before anything that is to stand for later calls is kept: that they may
 * not approve a call, that its tool has changed, or that edited arguments do not fit.
 */
async function finishAnswers(
  state: RunState,
  calls: readonly StoredCall[],
  checking: Checking,
): Promise<readonly StoredCall[]> {
  const checked = await checkedCalls(calls, checking);
  const { notAllowed, changes, faults, isLeft } = checking;
  if (notAllowed.length > 0) throw new ToolwrightError('RunNotAllowed', notAllowed.join(' '));
  if (changes.size > 0) throw toolsChanged(state, changes);
  if (isLeft) return checked;
  const answered = { ...state, open: { ...state.open, calls: checked } };
  await rememberedCalls(answered, { ...checking, isTrial: true });
  if (faults.length > 0) throw invalidAnswers(faults);
  return rememberedCalls(answered, checking);
}

function toolsChanged(state: RunState, changes: Checking['changes']): ToolsChanged {
  const told = [...changes.values()].map(({ change }) => change).join(' ');
  const calls = state.open.calls.map((call) => changes.get(call)?.asked ?? call);
  return new ToolsChanged(`No answer was taken, and nothing has run. ${told}`, withCalls(state, calls));
}

function checkedCalls(calls: readonly StoredCall[], checking: Checking): Promise<readonly StoredCall[]> {
  return Promise.all(
    calls.map((call) => {
      if (call.status !== 'waiting') return call;
      const asked = checking.approved.get(call);
      if (asked !== undefined) return checkApproval(call, asked, checking);
      return withInnerCalls(call, checking, ({ open }, inner) => checkedCalls(open.calls, inner));
    }),
  );
}

/** Whether a call may be approved by whoever has done it, and whether its tool still takes its arguments. */
async function checkApproval(
  call: StoredWaitingCall,
  { call: before, wait }: AskedApproval,
  checking: Checking,
): Promise<StoredCall> {
  const { tools, isLeft, changes } = checking;
  const { name } = call;
  const tool = tools?.offered(name);
  const isEdited = isUncheckedEdit(call);
  const isGone = tools !== undefined && tool === undefined;
  const checked = isGone || isEdited ? undefined : await tools?.check(name, call.journal.arguments);
  const problem = isGone ? GONE : checked?.ok === false ? checked.problem : undefined;
  if (problem !== undefined) changes.set(before, changedCall(before, { wait, tool, problem }));
  const ready = isEdited && !isGone && !isLeft ? await checkEdit(call, checking) : call;
  const refusal = approverFault(ready, { wait, tool }, checking);
  if (refusal !== undefined) checking.notAllowed.push(refusal);
  return ready;
}

/** What waits for a yes, and the tool as it is now. */
interface AskingTool {
  readonly wait: Wait;
  readonly tool: ToolDefinition | undefined;
}

/** The same question, as the tool asks it by now. */
function changedCall(
  call: StoredWaitingCall,
  { wait: before, tool, problem }: AskingTool & { readonly problem: string },
): ChangedCall {
  const { name, journal } = call;
  const ways = tool === undefined ? '' : 'approve it with arguments that fit, ';
  const change = changedSince(name, problem);
  const asked = { arguments: journal.arguments, onError: () => {} };
  // Of a tool that is gone, nothing is known but what was asked before.
  const wait = tool === undefined ? before : { ...saidBeside(before), ...approvalWait(tool.approval, asked) };
  const again = askedAgain(wait, change, before.index);
  return {
    asked: { ...call, waits: call.waits.map((one) => (one === before ? again : one)) },
    change: `${change} To go on, ${ways}refuse the call or cancel the run.`,
  };
}

/** What does not come from the tool: why a policy asks, which is part of the id, and until when. */
function saidBeside({ message, expiresAt }: Wait): Pick<Wait, 'message' | 'expiresAt'> {
  return {
    ...(message === undefined ? {} : { message }),
    ...(expiresAt === undefined ? {} : { expiresAt }),
  };
}

/** Why whoever answers may not approve a call; it names nobody. What a function decides, its tool has to be there for. */
function approverFault(
  { name, id, journal }: StoredWaitingCall,
  { wait, tool }: AskingTool,
  { answeredBy, owner, isLeft, log }: Checking,
): string | undefined {
  if (tool === undefined && wait.approver === 'function')
    return isLeft
      ? undefined
      : `Who may approve '${name}' (${id}), its tool decides, which is not given here.`;
  const approver = tool === undefined ? wait.approver : approverOf(tool.approval);
  const request = { answeredBy, owner, call: { tool: name, arguments: journal.arguments } };
  const isAllowed = mayApprove(approver as ReturnType<typeof approverOf>, request, (error) =>
    log.error('The approver function of a tool threw; nobody may approve its calls', { tool: name, error }),
  );
  if (isAllowed) return undefined;
  const who =
    approver === 'not-the-owner' ? 'somebody else than the owner of the run' : 'those whom its tool accepts';
  return `The call of '${name}' (${id}) can be approved only by ${who}. Nothing has run.`;
}

async function rememberedCalls(state: RunState, checking: Checking): Promise<readonly StoredCall[]> {
  const calls = await rememberAnswers(state.open.calls, { ...checking, state });
  return Promise.all(
    calls.map((call) => (call.status === 'waiting' ? withInnerCalls(call, checking, rememberedCalls) : call)),
  );
}

/** Does the same to the calls of the runs inside a call, with the tools of its agent. */
async function withInnerCalls(
  call: StoredWaitingCall,
  checking: Checking,
  work: (state: RunState, checking: Checking) => Promise<readonly StoredCall[]>,
): Promise<StoredCall> {
  if (call.inner === undefined) return call;
  const tool = checking.tools?.offered(call.name);
  const tools = tool && toolsOfAgents.get(tool)?.(call.journal.arguments);
  // Of a tool that runs a model itself nobody knows the tools before they run: the calls are checked then.
  const isLeft = checking.isLeft || tools === undefined;
  const done = await Promise.all(
    call.inner.map(async (run) => {
      const { state } = run;
      return state === undefined
        ? run
        : { ...run, state: withCalls(state, await work(state, { ...checking, tools, isLeft })) };
    }),
  );
  return {
    ...call,
    inner: done,
    waits: [...call.waits.filter(({ inner }) => inner === undefined), ...waitsOf(done)],
  };
}

async function checkEdit(call: StoredWaitingCall, { tools, faults }: Checking): Promise<StoredWaitingCall> {
  const { id, name, journal } = call;
  const checked = await tools?.check(name, journal.arguments, { transformed: true });
  const problem = problemOf(checked) ?? unchangeable(tools?.offered(name));
  if (!checked?.ok || problem !== undefined) {
    faults.push(`the edited arguments of '${name}' (${id}): ${problem}`);
    return call;
  }
  const { original } = journal.edited ?? { original: journal.arguments };
  const edited = { original, isChecked: true as const };
  return { ...call, journal: { ...journal, arguments: checked.arguments, edited } };
}

/** The tool may have changed its mind since the question was asked. */
function unchangeable(tool: ToolDefinition | undefined): string | undefined {
  const decisions = typeof tool?.approval === 'object' ? tool.approval.decisions : undefined;
  return decisions === undefined || decisions.includes('edit') ? undefined : 'its tool takes no edits';
}

function problemOf(checked: CheckedArguments | undefined): string | undefined {
  if (checked === undefined) return 'they can be checked only where the tools are given';
  if (!checked.ok) return checked.problem;
  // A person means what they write: what the tool does not know is told instead of taken away.
  return checked.removed.length > 0 ? `there is no ${checked.removed.join(', ')}` : undefined;
}
