import type { JsonObject } from '../contract/json-schema.js';
import type { ToolDefinition } from '../contract/tool-definition.js';
import type { CallLog } from './call-log.js';
import type { CallPlan } from './call-plan.js';
import type { CallEnvironment, CallRequest } from './invocation.js';

/** A call whose arguments are ready. */
export interface PermittedCall {
  readonly tool: ToolDefinition;
  readonly plan: CallPlan;
  readonly call: CallRequest;
  readonly environment: CallEnvironment;
  /** In JSON form. */
  readonly checked: JsonObject;
  /** As `execute` takes them. */
  readonly args: JsonObject;
  /** As they were sent. */
  readonly sent: unknown;
  readonly log: CallLog;
  /** When the call began, by `performance.now()`; 0 where nobody wants to know. */
  readonly since: number;
}
