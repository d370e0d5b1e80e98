import type { ArgumentsHost, ContextType } from '@nestjs/common';
import type { ToolContext } from '../../contract/tool-context.js';
import type { ToolDefinition } from '../../contract/tool-definition.js';
import { checkArguments } from '../../errors/invalid-options.js';
import { withMethods } from '../../kernel/option-rules.js';

/** What `ExecutionContext.getType()` says where tools are called, too: `context.getType<ToolContextType>()`. */
export type ToolContextType = ContextType | 'tool';

/** The call that a guard, an interceptor or an exception filter is concerned with. */
export interface ToolCallInfo {
  /** The tool as it is offered: name, annotations, schema. */
  readonly tool: ToolDefinition;
  /** As the tool gets them: checked, mended, defaults filled in. In JSON form, unless the call came around the registry. */
  readonly arguments: unknown;
  /** The context of the call: `callId`, `data`, `signal`, … */
  readonly context: ToolContext;
  /** The HTTP request that started the loop, or what was given as `request`; absent where nobody asked over HTTP. */
  readonly request?: object;
}

/** Where the call stands among the arguments of a handler. Before it is what HTTP has there: request, response, next. */
const CALL_POSITION = 3;

/**
 * The arguments that guards, interceptors and filters see. The request comes first, where those written for
 * HTTP look for it (`switchToHttp().getRequest()`); a tool call has no response.
 */
export function handlerArguments(call: ToolCallInfo): unknown[] {
  return [call.request, undefined, undefined, call];
}

/**
 * The tool call of an `ExecutionContext` or `ArgumentsHost` whose `getType()` is `'tool'`; `undefined` for any
 * other.
 *
 * @example
 * ```ts
 * @Injectable()
 * class WritersOnly implements CanActivate {
 *   canActivate(context: ExecutionContext) {
 *     const call = toolCallOf(context);
 *     return call === undefined || call.tool.annotations?.readOnly === true || call.context.data.role === 'writer';
 *   }
 * }
 * ```
 */
export function toolCallOf(host: ArgumentsHost): ToolCallInfo | undefined {
  checkArguments({ of: 'toolCallOf', given: { host }, rules: { host: HOST } });
  return host.getType<ToolContextType>() === 'tool' ? host.getArgByIndex(CALL_POSITION) : undefined;
}

const HOST = withMethods(['getType', 'getArgByIndex'], 'the ExecutionContext or ArgumentsHost of the call');
