import type { JsonObject } from '../contract/json-schema.js';
import type { ToolDefinition } from '../contract/tool-definition.js';
import type { CallLog } from './call-log.js';
import type { CallEnvironment, CallRequest } from './invocation.js';

/** A call whose arguments are ready and which may run. */
export interface PermittedCall {
  readonly tool: ToolDefinition;
  readonly call: CallRequest;
  readonly environment: CallEnvironment;
  readonly args: JsonObject;
  readonly log: CallLog;
  /** When the call began, by `performance.now()`. */
  readonly since: number;
}
