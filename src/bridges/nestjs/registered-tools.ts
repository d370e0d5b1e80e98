import { Injectable } from '@nestjs/common';
import type { ToolDefinition } from '../../contract/tool-definition.js';
import { boundMethodOf } from '../../discovery/bound-method.js';
import { toolMethods } from '../../metadata/tool-methods.js';
import type { CallTarget, HandlerFunction } from './call-target.js';
import { declaredMethod } from './declared-method.js';
import type { ToolHost } from './provider-target.js';

/** Stands for the tools that no provider has: `getClass()` gives it where they are called. */
@Injectable()
export class RegisteredTools {}

/**
 * A tool that was registered as an object, as the target of calls. Decorators of Nest's on its class and on its
 * `execute` count as they do on a provider; of a tool that `discoverTools` made, those on class and method.
 */
export function registeredTarget(tool: ToolDefinition, host: ToolHost): CallTarget {
  return {
    ...handlerOf(tool, host),
    parameterPipes: [],
    ...host,
    layOut: (args, context) => [{ value: args, metadata: { type: 'custom' } }, { value: context }],
    invoke: (_host, [args, context]) => Reflect.apply(tool.execute, tool, [args, context]),
  };
}

function handlerOf(tool: ToolDefinition, host: ToolHost): Pick<CallTarget, 'declared' | 'handler'> {
  const bound = boundMethodOf(tool);
  const method = bound && toolMethods(bound.class).find(({ record }) => record.key === bound.key);
  if (bound !== undefined && method !== undefined) {
    const declared: object = Object.create(bound.class.prototype, { constructor: { value: bound.class } });
    return { declared, handler: declaredMethod(bound.class, method) };
  }
  const isPlain = Object.getPrototypeOf(tool) === Object.prototype || tool.constructor === undefined;
  return { declared: isPlain ? host.wrapper.instance : tool, handler: tool.execute as HandlerFunction };
}
