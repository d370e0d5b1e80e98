import type {
  CallJournal,
  CallScope,
  PolicyDecision,
  PolicyRemember,
  Suspension,
  ToolPolicy,
  Wait,
} from '../contract/call.js';
import type { JsonObject } from '../contract/json-schema.js';
import { isThenable, withinLimits } from '../kernel/async.js';
import { approverOf, mayApprove } from './approver.js';
import { obstacleOfBegun, obstacleOfRepeat, wordOn } from './begun-call.js';
import { argumentsBefore, type CheckedCall, checkedFacts } from './check-arguments.js';
import { type Call, contextOf, limitsOf } from './context.js';
import type { BodyEnd, CallEnd, CallEnvironment, HeldEnd, Obstacle } from './invocation.js';
import { CallLog } from './log.js';
import { planOf } from './plan.js';
import { writeEnd } from './result.js';
import { failedResult } from './result-text.js';
import { approvalNeed, approvalWait, expiryIn, withoutApproval } from './waits.js';

/** How far the policies of a call were asked: what the last one said, and which one comes then. */
interface AskedPolicies {
  readonly word: PolicyWord | Promise<PolicyWord>;
  readonly next: number;
}

const UNASKED: AskedPolicies = { word: undefined, next: 0 };
const NO_POLICIES: readonly ToolPolicy[] = [];

/** Asks policies that answer at once, until one does not plainly allow the call; `undefined` where all of them do. */
export function askAtOnce(call: Call): AskedPolicies | undefined {
  const { request, environment, plan, scope } = call;
  if (request.journal !== undefined || request.hasBegun || plan.isGuarded) return UNASKED;
  const { policies = NO_POLICIES } = environment;
  for (const [index, policy] of policies.entries()) {
    const word = wordOf(policy, call);
    if (word !== undefined) return { word, next: index + 1 };
  }
  return scope.signal?.aborted ? { word: undefined, next: policies.length } : undefined;
}

/**
 * Whether a call may run. Asks, in this order, the answers to what it waited for before, the policies and whoever
 * approves; gives the first obstacle, or `undefined`.
 */
export async function allowCall(call: Call, asked: AskedPolicies = UNASKED): Promise<Obstacle | undefined> {
  const { request } = call;
  const { outcome } = request.journal ?? {};
  const told = request.journal && wordOn(request.journal);
  if (told !== undefined) return told;
  // Before the policies: a refusal would tell of something done that it was not.
  const mayHaveRun = request.hasBegun && outcome === undefined;
  const unknown = mayHaveRun ? await obstacleOfBegun(call) : undefined;
  if (unknown !== undefined) return unknown;
  const obstacle = await obstacleOf(call, asked);
  return mayHaveRun && obstacle !== undefined ? obstacleOfRepeat(call, obstacle) : obstacle;
}

/** What keeps a call from running, as the policies and whoever approves say. */
async function obstacleOf(call: Call, asked: AskedPolicies): Promise<Obstacle | undefined> {
  const { environment, plan, tool, scope } = call;
  const { policies = NO_POLICIES } = environment;
  let { word, next } = asked;
  let asking: Asking | undefined;
  for (;;) {
    const said = word instanceof Promise ? await word : word;
    if (typeof said === 'string') return { how: 'refused', reason: said };
    asking ??= said;
    const policy = policies[next];
    if (policy === undefined) break;
    word = wordOf(policy, call);
    next += 1;
  }
  const approved = isApproved(call);
  const needsYes =
    !approved &&
    (asking !== undefined || (plan.isGuarded && (await needsApproval(call)) && !(await hasStanding(call))));
  if (approved && asking !== undefined) await keepYes(call, asking);
  // An abort ends the call, whatever it would wait for.
  if (scope.signal?.aborted) return { how: 'aborted' };
  if (needsYes) {
    const because = asking?.wait.message;
    const wait = { ...(await askedBy(call)), ...asking?.wait };
    return { how: 'waits', wait, ...(because === undefined ? {} : { because }) };
  }
  if (tool.execution !== 'client') return undefined;
  return { how: 'waits', wait: { kind: 'client', index: 0, ...expiryIn(environment.answerWithinMs) } };
}

/** Whether somebody has approved the call who may do so, by what its tool says now. */
function isApproved(call: Call): boolean {
  const { approved, given } = call.request.journal ?? {};
  if (!approved) return false;
  return mayHaveApproved(call, given?.findLast(({ kind }) => kind === 'approval')?.answeredBy);
}

function mayHaveApproved({ tool, checked, scope, log }: Call, answeredBy: unknown): boolean {
  const request = { answeredBy, owner: scope.owner, call: { tool: tool.name, arguments: checked } };
  return mayApprove(approverOf(tool.approval), request, (error) =>
    log.ignored('The approver function of a tool threw; the approval does not count', { error }),
  );
}

/** Whether no policy forbids a call, as far as that can be told before it is made. */
async function isAllowed(call: Call): Promise<boolean> {
  for (const policy of call.environment.policies ?? []) {
    const seen = watchedArguments();
    const word = await wordOf(policy, { ...call, checked: seen.arguments });
    // What depends on the arguments is decided when the call is made.
    if (typeof word === 'string' && !seen.wereRead()) return false;
  }
  return true;
}

/** Arguments that nobody knows yet, and whether somebody has looked at them. */
function watchedArguments(): { readonly arguments: JsonObject; readonly wereRead: () => boolean } {
  let wereRead = false;
  const read = <Value>(value: Value): Value => {
    wereRead = true;
    return value;
  };
  const watched = new Proxy<JsonObject>(
    {},
    {
      get: () => read(undefined),
      has: () => read(false),
      ownKeys: () => read([]),
      getOwnPropertyDescriptor: () => read(undefined),
    },
  );
  return { arguments: watched, wereRead: () => wereRead };
}

/** A policy wants somebody's yes first, and may say why. */
interface Asking {
  readonly wait: Pick<Wait, 'message' | 'mayRemember'>;
  readonly remember?: PolicyRemember;
}

/**
 * Nothing where a policy allows a call, why it does not, or that it asks. Fails closed: a policy that cannot
 * decide has not said yes.
 */
function wordOf(policy: ToolPolicy, call: Call): PolicyWord | Promise<PolicyWord> {
  const { tool, checked, scope, log } = call;
  const fail = (error: unknown): string => {
    if (scope.signal?.aborted) return 'the run was aborted';
    // Why it could not decide is no business of the model.
    log.ignored('A policy threw; the call was refused', { error });
    return 'the policy could not decide';
  };
  try {
    const decision = policy({ tool, arguments: checked, context: contextOf(call) });
    if (!isThenable(decision)) return wordIn(decision);
    return withinLimits(decision, limitsOf(call)).then(wordIn).catch(fail);
  } catch (error) {
    return fail(error);
  }
}

type PolicyWord = string | Asking | undefined;

function wordIn(decision: PolicyDecision | undefined): PolicyWord {
  if (decision === true) return undefined;
  if (typeof decision !== 'object' || decision === null) return 'it is not allowed';
  if ('ask' in decision) {
    if (decision.ask !== true) return decision.reason ?? 'it is not allowed';
    return askingOf(decision);
  }
  return decision.allow === true ? undefined : (decision.reason ?? 'it is not allowed');
}

function askingOf({ reason, remember }: Extract<PolicyDecision, { readonly ask: true }>): Asking {
  const message = reason === undefined ? {} : { message: reason };
  if (remember === undefined || remember.scopes.length === 0) return { wait: message };
  const { scopes, maxMs } = remember;
  const mayRemember = { scopes, ...(maxMs === undefined ? {} : { maxMs }), by: 'policy' as const };
  return { wait: { ...message, mayRemember }, remember };
}

/** The yes is to stand, and the policy that asked keeps it. The call itself has its yes, whatever comes of that. */
async function keepYes({ request, log }: Call, { remember }: Asking): Promise<void> {
  const wanted = request.journal?.remember;
  if (wanted?.by !== 'policy') return;
  try {
    if (!remember?.scopes.includes(wanted.scope)) throw new Error('the policy lets no yes stand any more');
    const { scope, expires } = wanted;
    await remember.keep({ scope, ...(expires === undefined ? {} : { expires }) });
  } catch (error) {
    log.ignored('A yes that was to stand could not be kept; somebody is asked again', { error });
  }
}

/** Whether somebody has said yes to calls like this one before. What a policy asks for, nobody has. */
async function hasStanding(call: Call): Promise<boolean> {
  const { environment, tool, checked, scope, log } = call;
  if (environment.standing === undefined || typeof tool.approval !== 'object' || !tool.approval.remember)
    return false;
  try {
    const { conversationId } = scope;
    const mayHaveGiven = (answeredBy: unknown): boolean => mayHaveApproved(call, answeredBy);
    call.standing = await environment.standing({ tool, arguments: checked, conversationId, mayHaveGiven });
  } catch (error) {
    log.ignored('Standing approvals could not be looked for; somebody is asked', { error });
  }
  return call.standing !== undefined;
}

async function askedBy(call: Call): Promise<Wait> {
  const { tool, checked, environment, log } = call;
  const wait = approvalWait(tool.approval, {
    arguments: checked,
    answerWithinMs: environment.answerWithinMs,
    onError: (error) => log.ignored('The description of an approval could not be written', { error }),
  });
  const preview = await previewOf(call);
  if (preview === undefined) return wait;
  const { description } = wait;
  return { ...wait, description: description === undefined ? preview : `${description}\n${preview}` };
}

/** Characters of what a call would come to. */
const MOST_PREVIEW = 20_000;

async function previewOf(call: Call): Promise<string | undefined> {
  const { tool, checked, environment, log } = call;
  if (tool.preview === undefined || !environment.canSuspend) return undefined;
  try {
    const given = await withinLimits(Promise.resolve(tool.preview(checked, contextOf(call))), limitsOf(call));
    if (given === undefined || given === '') return undefined;
    const text = String(given);
    return text.length > MOST_PREVIEW ? `${text.slice(0, MOST_PREVIEW)}\n… (cut)` : text;
  } catch (error) {
    log.ignored('What a call would come to could not be told', { error });
    return undefined;
  }
}

/** Fails closed: only a plain no, of the author or of the tool's own function, does without an approval. */
async function needsApproval(call: Call): Promise<boolean> {
  const { tool, checked, log } = call;
  const need = approvalNeed(tool.approval);
  if (typeof need !== 'function') return need;
  try {
    return (await withinLimits(need(checked, contextOf(call)), limitsOf(call))) !== false;
  } catch (error) {
    log.ignored('The approval function of a tool gave no answer; the call needs an approval', { error });
    return true;
  }
}

/** What stands in the end of a call that does not run. Of a tool that is gone, its name. */
type HinderedCall = Parameters<typeof writeEnd>[0] & Pick<Call, 'request' | 'checked'>;

/** The end of a call that does not run, or not now; one that a hook holds waits for nothing itself. */
export function hinderedEnd(call: HinderedCall, hindrance: Obstacle | BodyEnd | HeldEnd): CallEnd {
  if (hindrance.how === 'waits') return waitingEnd(call, hindrance);
  return hindrance.how === 'held'
    ? suspendedEnd(call.tool.name, { waits: [], journal: journalOf(call) })
    : writeEnd(call, hindrance);
}

/** A call that waits before its body has run: suspended, or refused where nobody can be asked. */
function waitingEnd(
  call: HinderedCall,
  { wait, because }: Extract<Obstacle, { readonly how: 'waits' }>,
): CallEnd {
  const { tool, environment } = call;
  if (!environment.canSuspend)
    return {
      status: 'refused',
      result: failedResult('NotExecutableHere', whyNotHere(tool.name, wait.kind, because)),
    };
  const journal = journalOf(call);
  return suspendedEnd(tool.name, {
    waits: [wait],
    journal: wait.kind === 'approval' ? withoutApproval(journal) : journal,
  });
}

/** What is known of a call, for when it is made again. */
export function journalOf(call: CheckedCall): CallJournal {
  const { answers = [], once = [], ...known } = call.request.journal ?? {};
  return { ...known, arguments: argumentsBefore(call), answers, once };
}

function whyNotHere(tool: string, kind: Wait['kind'], because: string | undefined): string {
  if (kind === 'client') return `The tool '${tool}' is executed by the client; it cannot run here.`;
  const why = because === undefined ? '' : ` Why it asks: ${because}`;
  return `The tool '${tool}' needs an approval, and nobody can give it here; it was not run.${why}`;
}

/** The end of a call that waits, with the error that stands for it where nobody can be asked. */
export function suspendedEnd(tool: string, suspension: Suspension): CallEnd {
  const message = `The call of '${tool}' waits for an answer, and nobody can give it here.`;
  return { status: 'suspended', result: failedResult('NotExecutableHere', message), suspension };
}

/** For whom tools are looked for. */
export interface AskedScope {
  readonly scope: CallScope;
  /** The run's, beside those of the registry. */
  readonly policy?: ToolPolicy;
  /** So many are enough. */
  readonly limit: number;
}

/** Names of the tools that no policy forbids: what may not be called is not found either. */
export async function allowedTools(
  environment: CallEnvironment,
  names: readonly string[],
  { scope, policy, limit }: AskedScope,
): Promise<readonly string[]> {
  const policies = [...(environment.policies ?? []), ...(policy ? [policy] : [])];
  if (policies.length === 0) return names.slice(0, limit);
  const allowed: string[] = [];
  for (const name of names) {
    if (allowed.length >= limit) break;
    const entry = environment.find(name);
    if (entry === undefined) continue;
    const { offered: tool } = entry;
    const request = { id: '', name, arguments: {} };
    const plan = planOf(entry, tool, environment.coerce);
    const isFound = await isAllowed({
      request,
      environment: { ...environment, policies },
      scope,
      attempt: 1,
      log: CallLog.none,
      trace: undefined,
      since: 0,
      tool,
      plan,
      facts: checkedFacts(request, plan, { isUnseen: true }),
      checked: {},
      args: {},
      transformed: undefined,
      context: undefined,
      standing: undefined,
      task: undefined,
    });
    if (isFound) allowed.push(name);
  }
  return allowed;
}

/** Two policies as one: a no of either is a no, what either asks about is asked about. */
export function bothPolicies(
  one: ToolPolicy | undefined,
  other: ToolPolicy | undefined,
): ToolPolicy | undefined {
  if (one === undefined || other === undefined || one === other) return one ?? other;
  return async (request) => {
    const first = await one(request);
    if (!isYes(first) && !asks(first)) return first;
    const second = await other(request);
    return isYes(second) ? first : asks(first) && asks(second) ? first : second;
  };
}

function isYes(word: PolicyDecision): boolean {
  return word === true || (isWord(word) && !('ask' in word) && word.allow === true);
}

function asks(word: PolicyDecision): boolean {
  return isWord(word) && 'ask' in word && word.ask === true;
}

/** What policies of plain JavaScript give may be anything. */
function isWord(word: PolicyDecision): word is Exclude<PolicyDecision, boolean> {
  return typeof word === 'object' && word !== null;
}
