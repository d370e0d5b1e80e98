import type { ExecutionContext } from '@nestjs/common';
import { CUSTOM_ROUTE_ARGS_METADATA, ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import { RouteParamtypes } from '@nestjs/common/enums/route-paramtypes.enum.js';
import type { ClassType } from '../../contract/class-type.js';

/** A parameter with a decorator of Nest's, and what a tool call has for it. */
export interface DecoratedParameter {
  readonly data: unknown;
  /** Classes or instances, as they were given to the decorator. */
  readonly pipes: readonly unknown[];
  /**
   * `model`: it is one of the tool's arguments, as the body of a route is; `http`: a tool call has nothing for it;
   * `call`: a custom decorator (`createParamDecorator`) or `@Req()` reads it from the execution context.
   */
  readonly source: 'model' | 'http' | 'call';
  /** `@Param()` of Nest: a part of a route's path. */
  readonly isOfPath?: boolean;
  read(execution: ExecutionContext): unknown;
}

/** What Nest's parameter decorators record of one parameter, under a key that begins with the decorator's type. */
interface ParameterMetadata {
  readonly index: number;
  readonly data?: unknown;
  readonly pipes?: readonly unknown[];
  readonly factory?: (data: unknown, execution: ExecutionContext) => unknown;
}

/** `@Payload()`, `@MessageBody()` and GraphQL's `@Args()` are recorded as `@Body()` is. */
const FROM_MODEL = [RouteParamtypes.BODY, RouteParamtypes.QUERY, RouteParamtypes.PARAM];

/** The parameters of a method that carry a decorator of Nest's, by position. */
export function decoratedParameters(
  declaredIn: ClassType,
  key: string | symbol,
): ReadonlyMap<number, DecoratedParameter> {
  // Parameter decorators know only the class within, where a class decorator has put a proxy around it.
  const within: object = declaredIn.prototype.constructor;
  const recorded: Readonly<Record<string, ParameterMetadata>> =
    Reflect.getMetadata(ROUTE_ARGS_METADATA, declaredIn, key) ??
    Reflect.getMetadata(ROUTE_ARGS_METADATA, within, key) ??
    {};
  return new Map(Object.entries(recorded).map(([type, metadata]) => [metadata.index, read(type, metadata)]));
}

function read(type: string, { data, pipes = [], factory }: ParameterMetadata): DecoratedParameter {
  if (type.includes(CUSTOM_ROUTE_ARGS_METADATA))
    return { data, pipes, source: 'call', read: (execution) => factory?.(data, execution) };
  const kind = Number(type.split(':')[0]);
  const request = (execution: ExecutionContext): unknown => execution.switchToHttp().getRequest();
  if (kind === RouteParamtypes.REQUEST) return { data, pipes, source: 'call', read: request };
  const isOfPath = kind === RouteParamtypes.PARAM;
  return { data, pipes, source: FROM_MODEL.includes(kind) ? 'model' : 'http', isOfPath, read: request };
}
