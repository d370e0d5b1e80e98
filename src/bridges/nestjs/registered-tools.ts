import { Injectable } from '@nestjs/common';
import type { ToolDefinition } from '../../contract/tool-definition.js';
import type { CallTarget, HandlerFunction } from './call-target.js';
import type { ToolHost } from './provider-target.js';

/** Stands for the tools that no provider has: `getClass()` gives it where they are called. */
@Injectable()
export class RegisteredTools {}

/**
 * A tool that was registered as an object, as the target of calls. Decorators of Nest's on its class and on its
 * `execute` count as they do on a provider.
 */
export function registeredTarget(tool: ToolDefinition, host: ToolHost): CallTarget {
  const isPlain = Object.getPrototypeOf(tool) === Object.prototype || tool.constructor === undefined;
  return {
    declared: isPlain ? host.wrapper.instance : tool,
    handler: tool.execute as HandlerFunction,
    parameterPipes: [],
    ...host,
    layOut: (args, context) => [{ value: args, metadata: { type: 'custom' } }, { value: context }],
    invoke: (_host, [args, context]) => Reflect.apply(tool.execute, tool, [args, context]),
  };
}
