import { Integer } from '../contract/integer.js';
import type { JsonSchema } from '../contract/json-schema.js';
import { defineTool } from '../discovery/define-tool.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import type { ToolRegistry } from './tool-registry.js';

/** The types a function's parameters may have. */
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
 * Registers any function as a tool; its schema follows from the parameters, all required, in order.
 *
 * @throws ToolwrightError `InvalidToolSignature` (502) where the number of parameters is not the function's
 *   own, a type is none of the four, or a name stands twice; then nothing is registered.
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
  if (!Array.isArray(params)) refuse(name, "Parameters are a list: [['a', Integer], ['b', String]]");
  const names = params.map(([parameter]) => parameter);
  if (fn.length !== params.length) {
    refuse(name, `Parameter name count (${params.length}) does not match function arity (${fn.length})`);
  }
  if (new Set(names).size !== names.length) refuse(name, `Parameter names must differ: ${names.join(', ')}`);
  const properties = Object.fromEntries(
    params.map(([parameter, type]) => [parameter, schemaOf(name, parameter, type)]),
  );
  const tool = defineTool({
    name,
    description,
    parameters: { type: 'object', properties, required: names },
    execute: (args) => fn(...names.map((parameter) => args[parameter])),
  });
  registry.register(Object.freeze({ ...tool, ignoresContext: true }));
}

function schemaOf(name: string, parameter: string, type: unknown): JsonSchema {
  const schema = SCHEMAS.get(type);
  return schema ?? refuse(name, `Parameter '${parameter}' must be Integer, Number, Boolean or String`);
}

function refuse(name: string, problem: string): never {
  throw new ToolwrightError('InvalidToolSignature', `registerFunction('${name}'): ${problem}.`);
}
