import type { JsonSchema } from '../../core/contract/json-schema.js';

/**
 * A tool in any form that a parser accepts: its name, the tool itself, its schema for providers, or similar objects.
 */
type KnownTool =
  | string
  | { readonly name: string; readonly parameters?: JsonSchema }
  | { readonly function: { readonly name: string; readonly parameters?: JsonSchema } };

/** The tools that a parser accepts: a list, or a registry (anything with `list()`, and `get(name)` for types). */
export type KnownToolSource =
  | readonly KnownTool[]
  | {
      list(): readonly string[];
      get?(name: string): { readonly parameters?: JsonSchema } | undefined;
    };

/** The names of tools, and the schemas of their arguments. */
export interface KnownTools {
  /** Every name counts as a tool, because no tools were given. */
  readonly any: boolean;
  /** Calls of other tools are reported too, between marks that only calls have. */
  readonly reportsUnknown: boolean;
  has(name: string): boolean;
  /** Whether a call of this name should be read further. */
  mayBe(name: string): boolean;
  /** Whether a tool may have a parameter of this name: any, if its schema is unknown. */
  takes(tool: string, name: string): boolean;
  /** Schema of a parameter, if it is known. */
  parameter(tool: string, name: string): JsonSchema | undefined;
}

/** How calls of unknown tools are handled: as text; or as calls, if they are between marks that only calls have. */
export type UnknownTools = 'text' | 'call';

const PLAUSIBLE = /^[\w.:-]{1,64}$/;

/** Looks up names in the given tools; a registry is read again each time that this is called. */
export function knownTools(source: KnownToolSource | undefined, unknown: UnknownTools = 'text'): KnownTools {
  if (source === undefined) {
    const has = (name: string) => name.trim() !== '';
    return {
      any: true,
      reportsUnknown: false,
      has,
      mayBe: has,
      takes: () => true,
      parameter: () => undefined,
    };
  }
  // A Map, because names come from a model: `constructor` is found only if it is a tool.
  const schemas = new Map(entriesOf(source));
  // Without offered tools, there are no calls.
  const reportsUnknown = unknown === 'call' && schemas.size > 0;
  const parameter = (tool: string, name: string) => {
    const properties = schemas.get(tool)?.()?.properties;
    return properties !== undefined && Object.hasOwn(properties, name) ? properties[name] : undefined;
  };
  return {
    any: false,
    reportsUnknown,
    has: (name) => schemas.has(name),
    mayBe: (name) => schemas.has(name) || (reportsUnknown && PLAUSIBLE.test(name)),
    takes: (tool, name) =>
      parameter(tool, name) !== undefined ||
      Object.keys(schemas.get(tool)?.()?.properties ?? {}).length === 0,
    parameter,
  };
}

/** The names of tools with functions that return their schemas. */
function entriesOf(source: KnownToolSource): [string, () => JsonSchema | undefined][] {
  if ('list' in source) return source.list().map((name) => [name, () => source.get?.(name)?.parameters]);
  return source.map((tool) => {
    if (typeof tool === 'string') return [tool, () => undefined];
    const { name, parameters } = 'function' in tool ? tool.function : tool;
    return [name, () => parameters];
  });
}
