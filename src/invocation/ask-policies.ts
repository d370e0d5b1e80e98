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
    const asked = policy(request);
    const decision: PolicyDecision | undefined =
      typeof asked === 'boolean' ? asked : await unlessAborted(asked, request.context.signal);
    if (decision === true) return undefined;
    if (typeof decision !== 'object' || decision === null) return 'it is not allowed';
    return decision.allow === true ? undefined : (decision.reason ?? 'it is not allowed');
  } catch (error) {
    if (request.context.signal.aborted) return 'the run was aborted';
    // Fail closed: a policy that cannot decide has not said yes.
    return `the policy failed: ${errorMessage(error)}`;
  }
}

/** A policy may ask somebody who never answers; an abort does not wait for that. */
function unlessAborted<Value>(asked: Value | Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    Promise.resolve(asked)
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', abort));
  });
}
