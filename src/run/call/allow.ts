import type {
  CallScope,
  PolicyDecision,
  PolicyRemember,
  ToolPolicy,
  Wait,
} from '../../core/contract/call.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import { andThen, firstGiven, isThenable, withinLimits } from '../../core/kernel/async.js';
import { isObject, withoutUndefined } from '../../core/kernel/json.js';
import { logThrown } from './call-log.js';
import { type Call, contextOf, limitsOf, newCall, type ReceivedCall } from './context.js';
import type { Block, CallEnvironment, CallOutcome, MaybeLater } from './invocation.js';
import { planOf } from './plan.js';
import { missingScopes } from './required-scopes.js';
import { blockedResult } from './run-body.js';
import { approvalNeed, approvalWait, approverOf, askedAgain, expiryIn, mayApprove } from './waits.js';

/** Step "allow": evaluates the policies and approvals. A call that may not run now ends here. */
export function allow(call: Call): MaybeLater<CallOutcome | undefined> {
  return andThen(blockOf(call), (block) => block && blockedResult(call, block));
}

/** What prevents a call from running, according to policies and approvals. Synchronous if they are. */
export function blockOf(call: Call): MaybeLater<Block | undefined> {
  const { environment, plan, scope } = call;
  const { policies = NO_POLICIES } = environment;
  const missing = plan.needsScopes ? missingScopes(plan.tool, scope.scopes) : [];
  if (missing.length > 0)
    return { type: 'refused', reason: `the caller lacks the OAuth scopes ${missing.join(', ')}` };
  let asking: Asking | undefined;
  const take = (decided: Decided): Block | undefined => {
    if (typeof decided === 'string') return { type: 'refused', reason: decided };
    asking ??= decided;
    return undefined;
  };
  const refused = firstGiven(policies, (policy) => andThen(decide(policy, call), take));
  return andThen(refused, (block) => {
    if (block !== undefined) return block;
    if (asking !== undefined || plan.isGuarded) return blockOfPeople(call, asking);
    return scope.signal?.aborted ? { type: 'aborted' } : undefined;
  });
}

const NO_POLICIES: readonly ToolPolicy[] = [];

/** What a call waits for, if a policy asks, an approval is needed, or the client executes it. */
async function blockOfPeople(call: Call, asking: Asking | undefined): Promise<Block | undefined> {
  const { environment, plan, tool, scope } = call;
  const { approved, given } = call.request.journal ?? {};
  // Uses the tool's current rule for who may approve.
  const isApproved =
    approved === true &&
    mayHaveApproved(call, given?.findLast(({ kind }) => kind === 'approval')?.answeredBy);
  const needsAnswer =
    !isApproved && (asking !== undefined || (plan.isGuarded && (await needsApproval(call))));
  if (isApproved && asking !== undefined) await rememberApproval(call, asking);
  // An abort ends the call even if it would wait.
  if (scope.signal?.aborted) return { type: 'aborted' };
  if (needsAnswer) {
    const because = asking?.wait.message;
    const wait = { ...(await askedBy(call)), ...asking?.wait };
    const asked = call.change === undefined ? wait : askedAgain(wait, call.change, wait.index);
    return { type: 'waits', wait: asked, because };
  }
  if (tool.execution !== 'client') return undefined;
  return { type: 'waits', wait: { kind: 'client', index: 0, ...expiryIn(environment.answerWithinMs) } };
}

/** Whether the user who approved a call, or reported its outcome, may do so by the tool's current rule. */
export function mayHaveApproved(call: Call, answeredBy: unknown): boolean {
  const { tool, checked, scope } = call;
  const request = { answeredBy, owner: scope.owner, call: { tool: tool.name, arguments: checked } };
  return mayApprove(approverOf(tool.approval), request, (error) =>
    logThrown(call, 'The approver function of a tool threw; the approval does not count', error),
  );
}

/** A policy requires an approval first, and may state why. */
interface Asking {
  readonly wait: Pick<Wait, 'message' | 'mayRemember'>;
  readonly remember?: PolicyRemember;
}

/**
 * The decision of a policy: `undefined` if it allows the call, the reason of a refusal, or the request for an
 * approval.
 */
type Decided = string | Asking | undefined;

/** Evaluates a policy. If it fails, the call is refused. */
function decide(policy: ToolPolicy, call: Call): MaybeLater<Decided> {
  const { tool, checked, scope } = call;
  const fail = (error: unknown): string => {
    if (scope.signal?.aborted) return 'the run was aborted';
    // The model does not see why the policy failed.
    logThrown(call, 'A policy threw; the call was refused', error);
    return 'the policy could not decide';
  };
  try {
    const decision = policy({ tool, arguments: checked, context: contextOf(call) });
    if (!isThenable(decision)) return decisionIn(decision);
    return withinLimits(decision, limitsOf(call)).then(decisionIn).catch(fail);
  } catch (error) {
    return fail(error);
  }
}

/** Reads a decision. */
export function decisionIn(decision: PolicyDecision | undefined): Decided {
  if (decision === true) return undefined;
  if (!isObject(decision)) return 'it is not allowed';
  const isAsking = 'ask' in decision;
  if (!isAsking && decision.allow === true) return undefined;
  if (!isAsking || decision.ask !== true) return decision.reason ?? 'it is not allowed';
  const { reason, remember } = decision;
  const { scopes = [], maxMs } = remember ?? {};
  const rememberable = withoutUndefined({ scopes, maxMs, by: 'policy' as const });
  const mayRemember = scopes.length === 0 ? undefined : rememberable;
  return { wait: withoutUndefined({ message: reason, mayRemember }), remember };
}

/** Lets the policy that asked store an approval for later calls. The call itself is approved even if storing fails. */
async function rememberApproval(call: Call, { remember }: Asking): Promise<void> {
  const wanted = call.request.journal?.remember;
  if (wanted?.by !== 'policy') return;
  try {
    if (!remember?.scopes.includes(wanted.scope))
      throw new Error('the policy no longer accepts remembered approvals');
    const { scope, expires } = wanted;
    await remember.keep(withoutUndefined({ scope, expires }));
  } catch (error) {
    logThrown(call, 'An approval could not be remembered; the next call is asked about again', error);
  }
}

/** The question for the approver of a call with these arguments. */
export function approvalQuestion(call: ReceivedCall, args: JsonObject): Wait {
  return approvalWait(call.tool?.approval, {
    args,
    answerWithinMs: call.environment.answerWithinMs,
    onError: (error) => logThrown(call, 'The description of an approval could not be written', error),
  });
}

/** The most characters of a preview. */
const MOST_PREVIEW = 20_000;

/** The question for the approver, with the tool's preview of the call. */
async function askedBy(call: Call): Promise<Wait> {
  const { tool, checked, environment } = call;
  const wait = approvalQuestion(call, checked);
  if (tool.preview === undefined || !environment.canSuspend) return wait;
  try {
    const given = await withinLimits(Promise.resolve(tool.preview(checked, contextOf(call))), limitsOf(call));
    if (given === undefined || given === '') return wait;
    const text = String(given);
    const preview = text.length > MOST_PREVIEW ? `${text.slice(0, MOST_PREVIEW)}\n… (cut)` : text;
    const { description } = wait;
    return { ...wait, description: description === undefined ? preview : `${description}\n${preview}` };
  } catch (error) {
    logThrown(call, 'The preview of a call could not be created', error);
    return wait;
  }
}

/**
 * Whether the tool of a call needs an approval that no standing approval gives. Fails closed: only `false`, from the
 * author or the tool's own function, omits the approval.
 */
async function needsApproval(call: Call): Promise<boolean> {
  const { tool, checked, environment, scope } = call;
  const { approval } = tool;
  const need = approvalNeed(approval);
  if (need === false) return false;
  if (typeof need === 'function')
    try {
      if ((await withinLimits(need(checked, contextOf(call)), limitsOf(call))) === false) return false;
    } catch (error) {
      logThrown(call, 'The approval function of a tool failed; the call needs an approval', error);
    }
  const { standing } = environment;
  if (standing === undefined || typeof approval !== 'object' || !approval.remember) return true;
  try {
    const { conversationId } = scope;
    const mayHaveGiven = (answeredBy: unknown): boolean => mayHaveApproved(call, answeredBy);
    call.standing = await standing({ tool, arguments: checked, conversationId, mayHaveGiven });
  } catch (error) {
    logThrown(call, 'Remembered approvals could not be read; the call needs an approval', error);
  }
  return call.standing === undefined;
}

/** The caller for whom tools are searched. */
export interface AskedScope {
  readonly scope: CallScope;
  /** The run's policy, in addition to those of the registry. */
  readonly policy?: ToolPolicy;
  /** The most names to return. */
  readonly limit: number;
}

/**
 * Names of the tools that the caller's scopes and all policies allow: tools that may not be called are not found
 * either.
 */
export async function allowedTools(
  environment: CallEnvironment,
  names: readonly string[],
  { scope, policy, limit }: AskedScope,
): Promise<readonly string[]> {
  const policies = [...(environment.policies ?? []), ...(policy ? [policy] : [])];
  const allowed: string[] = [];
  for (const name of names) {
    if (allowed.length >= limit) break;
    const tool = environment.find(name)?.offered;
    if (tool === undefined || missingScopes(tool, scope.scopes).length > 0) continue;
    const isForbidden = policies.length > 0 && !(await isAllowed(policies, { environment, scope, tool }));
    if (!isForbidden) allowed.push(name);
  }
  return allowed;
}

/** Whether no policy forbids a call, as far as that is known before the call. */
async function isAllowed(
  policies: readonly ToolPolicy[],
  { environment, scope, tool }: Pick<Call, 'environment' | 'scope' | 'tool'>,
): Promise<boolean> {
  const request = { id: '', name: tool.name, arguments: {} };
  const call = newCall(environment, request, { scope, plan: planOf(tool, environment.coerce) }) as Call;
  for (const policy of policies) {
    let wereRead = false;
    const read = <Value>(value: Value): Value => {
      wereRead = true;
      return value;
    };
    const unknown = new Proxy<JsonObject>(
      {},
      {
        get: () => read(undefined),
        has: () => read(false),
        ownKeys: () => read([]),
        getOwnPropertyDescriptor: () => read(undefined),
      },
    );
    const decided = await decide(policy, { ...call, checked: unknown });
    // A decision that depends on the arguments is made when the call is made.
    if (typeof decided === 'string' && !wereRead) return false;
  }
  return true;
}

/** Combines two policies: if either refuses, the call is refused; if either asks, an approval is requested. */
export function bothPolicies(
  one: ToolPolicy | undefined,
  other: ToolPolicy | undefined,
): ToolPolicy | undefined {
  if (one === undefined || other === undefined || one === other) return one ?? other;
  return async (request) => {
    const first = await one(request);
    const asks = typeof decisionIn(first) === 'object';
    if (!asks && decisionIn(first) !== undefined) return first;
    const second = await other(request);
    const decided = decisionIn(second);
    return decided === undefined || (asks && typeof decided === 'object') ? first : second;
  };
}
