import type { JsonObject } from './json-schema.js';
import type { ToolContext } from './tool-context.js';
import type { ToolDefinition } from './tool-definition.js';

/** A call that is about to run: its arguments are checked, and nothing has happened yet. */
export interface PolicyRequest {
  readonly tool: ToolDefinition;
  readonly arguments: JsonObject;
  readonly context: ToolContext;
}

/** A policy's word. The reason of a refusal goes to the model. */
export type PolicyDecision = boolean | { readonly allow: boolean; readonly reason?: string };

/**
 * Decides whether a call may run. Fails closed: whatever is not plainly a yes is a no, a policy that throws
 * included.
 *
 * @example
 * ```ts
 * const policy: ToolPolicy = ({ tool, context }) =>
 *   tool.annotations?.readOnly || context.data.role === 'admin'
 *     ? true
 *     : { allow: false, reason: 'only administrators may change data' };
 * ```
 */
export type ToolPolicy = (request: PolicyRequest) => PolicyDecision | Promise<PolicyDecision>;
