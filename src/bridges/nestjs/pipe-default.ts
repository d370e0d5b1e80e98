import { DefaultValuePipe } from '@nestjs/common';
import type { ParamOptions } from '../../contract/param-options.js';
import type { ParameterRecord } from '../../metadata/tool-method-record.js';
import type { DecoratedParameter } from './decorated-parameters.js';

/** A parameter that a route gets from its request and a tool from its arguments. */
export interface PipedParameter {
  readonly decorated: DecoratedParameter;
  readonly designType: unknown;
  /** What this package's decorators say of it. */
  readonly records: readonly ParameterRecord[];
}

/**
 * The records of a parameter with what its `DefaultValuePipe` says: it may be left out, because the pipe fills it
 * in. What the author says in `@Param` comes first. A parameter that takes the whole body is no property.
 */
export function withPipeDefault({
  decorated,
  designType,
  records,
}: PipedParameter): readonly ParameterRecord[] {
  const pipe = decorated.pipes.find((one) => one instanceof DefaultValuePipe);
  const [record, ...others] = records;
  const isProperty = record === undefined ? isPart(decorated, designType) : record.role === 'property';
  if (pipe === undefined || !isProperty) return records;
  const said = record?.role === 'property' ? record.options : {};
  const options: ParamOptions = { required: false, ...offered(pipe, designType), ...said };
  return [{ role: 'property', options }, ...others];
}

/** A class takes all arguments; anything else that `@Query('page')` names is one of them. */
function isPart({ data }: DecoratedParameter, designType: unknown): boolean {
  const isNamed = typeof data === 'string' && UNTOLD.includes(designType);
  return isNamed || VALUES.has(designType);
}

const UNTOLD: readonly unknown[] = [undefined, Object, Array, Date];

const VALUES: ReadonlyMap<unknown, string> = new Map<unknown, string>([
  [String, 'string'],
  [Number, 'number'],
  [Boolean, 'boolean'],
]);

/** The pipe fills in anything; the model is told of what JSON and the parameter's type can say. */
function offered(pipe: object, designType: unknown): Pick<ParamOptions, 'default'> {
  const value: unknown = Reflect.get(pipe, 'defaultValue');
  const isOfType = typeof value === VALUES.get(designType);
  return isOfType && (typeof value !== 'number' || Number.isFinite(value)) ? { default: value } : {};
}
