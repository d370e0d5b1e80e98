import type { PolicyDecision, PolicyRequest, ToolPolicy } from '../contract/tool-policy.js';
import { errorMessage } from './error-message.js';

/** The reason of the first policy that does not plainly allow the call; `undefined` where all do. */
export async function askPolicies(
  policies: readonly ToolPolicy[],
  request: PolicyRequest,
): Promise<string | undefined> {
  for (const policy of policies) {
    const reason = await refusal(policy, request);
    if (reason !== undefined) return reason;
  }
  return undefined;
}

async function refusal(policy: ToolPolicy, request: PolicyRequest): Promise<string | undefined> {
  try {
    const decision: PolicyDecision | undefined = await policy(request);
    if (decision === true) return undefined;
    if (typeof decision !== 'object' || decision === null) return 'it is not allowed';
    return decision.allow === true ? undefined : (decision.reason ?? 'it is not allowed');
  } catch (error) {
    // Fail closed: a policy that cannot decide has not said yes.
    return `the policy failed: ${errorMessage(error)}`;
  }
}
