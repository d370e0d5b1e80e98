import { Integer } from '../../core/contract/declaration.js';
import type { JsonSchema } from '../../core/contract/json-schema.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { defineTool } from '../../tools/discovery/define-tool.js';
import { ToolRegistry } from './tool-registry.js';

/** The types of a function's parameters. */
export type FunctionParameterType =
  | typeof Integer
  | NumberConstructor
  | BooleanConstructor
  | StringConstructor;

/** A parameter's name and type. */
export type FunctionParameter = readonly [name: string, type: FunctionParameterType];

const SCHEMAS: ReadonlyMap<unknown, JsonSchema> = new Map<unknown, JsonSchema>([
  [Integer, { type: 'integer' }],
  [Number, { type: 'number' }],
  [Boolean, { type: 'boolean' }],
  [String, { type: 'string' }],
]);

/**
 * Registers any function as a tool. Its schema follows from the parameters, all required, in order.
 *
 * @throws ToolwrightError `InvalidToolSignature` (502) with all faults, if the number of parameters differs from the
 * function's, a type is not one of the four, or a name occurs twice. The function is then not registered.
 *
 * @example
 * ```ts
 * registerFunction(registry, 'add', 'Add two integers', [['a', Integer], ['b', Integer]], (a, b) => a + b);
 * ```
 */
export function registerFunction(
  registry: ToolRegistry,
  name: string,
  description: string,
  params: readonly FunctionParameter[],
  // biome-ignore lint/suspicious/noExplicitAny: any function can be registered
  fn: (...args: any[]) => unknown,
): void {
  const problems = problemsOf({ registry, name, params, fn });
  if (problems.length > 0) {
    const place = typeof name === 'string' ? `registerFunction('${name}')` : 'registerFunction';
    throw new ToolwrightError('InvalidToolSignature', `${place}: ${problems.join('; ')}.`);
  }
  const names = params.map(([parameter]) => parameter);
  const properties = Object.fromEntries(
    params.map(([parameter, type]) => [parameter, SCHEMAS.get(type) ?? {}]),
  );
  const tool = defineTool({
    name,
    description,
    parameters: { type: 'object', properties, required: names },
    execute: (args) => fn(...names.map((parameter) => args[parameter])),
  });
  registry.register(Object.freeze({ ...tool, ignoresContext: true }));
}

/** All faults of the arguments, without relying on TypeScript's checks. */
function problemsOf({
  registry,
  name,
  params,
  fn,
}: Readonly<Record<'registry' | 'name' | 'params' | 'fn', unknown>>): readonly string[] {
  const problems: string[] = [];
  if (!(registry instanceof ToolRegistry)) problems.push('Its first argument is not a ToolRegistry');
  if (typeof name !== 'string') problems.push('Its name is not a string');
  if (typeof fn !== 'function') problems.push('Its last argument must be a function');
  if (!Array.isArray(params)) return [...problems, "Parameters are a list: [['a', Integer], ['b', String]]"];
  if (typeof fn === 'function' && fn.length !== params.length)
    problems.push(`Parameter name count (${params.length}) does not match function arity (${fn.length})`);
  const pairs = params.filter(
    (pair): pair is [string, unknown] => Array.isArray(pair) && typeof pair[0] === 'string',
  );
  if (pairs.length < params.length) problems.push("A parameter is a pair of name and type: ['a', Integer]");
  const names = pairs.map(([parameter]) => parameter);
  if (new Set(names).size !== names.length) problems.push(`Parameter names must differ: ${names.join(', ')}`);
  const untyped = pairs.filter(([, type]) => !SCHEMAS.has(type));
  problems.push(
    ...untyped.map(([parameter]) => `Parameter '${parameter}' must be Integer, Number, Boolean or String`),
  );
  return problems;
}
