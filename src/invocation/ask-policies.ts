import type { PolicyDecision, PolicyRequest, ToolPolicy } from '../contract/tool-policy.js';
import type { CallLog } from './call-log.js';
import { type Limits, withinLimits } from './unless-aborted.js';

/** What is asked of whom. */
export interface PolicyQuestion {
  readonly policies: readonly ToolPolicy[];
  readonly request: PolicyRequest;
  readonly limits: Limits;
  readonly log: CallLog;
}

/** The reason of the first policy that does not plainly allow the call; `undefined` where all do. */
export async function askPolicies({ policies, ...question }: PolicyQuestion): Promise<string | undefined> {
  for (const policy of policies) {
    const reason = await refusal(policy, question);
    if (reason !== undefined) return reason;
  }
  return undefined;
}

async function refusal(
  policy: ToolPolicy,
  { request, limits, log }: Omit<PolicyQuestion, 'policies'>,
): Promise<string | undefined> {
  try {
    const decision: PolicyDecision | undefined = await withinLimits(policy(request), limits);
    if (decision === true) return undefined;
    if (typeof decision !== 'object' || decision === null) return 'it is not allowed';
    return decision.allow === true ? undefined : (decision.reason ?? 'it is not allowed');
  } catch (error) {
    if (limits.signal?.aborted) return 'the run was aborted';
    // Fail closed: a policy that cannot decide has not said yes. Why it could not is no business of the model.
    log.ignored('A policy threw; the call was refused', { error });
    return 'the policy could not decide';
  }
}
