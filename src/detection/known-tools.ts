import type { JsonSchema } from '../contract/json-schema.js';

/** A tool as a parser may be told of it: its name, itself, its schema for providers, or anything alike. */
export type KnownTool =
  | string
  | { readonly name: string; readonly parameters?: JsonSchema }
  | { readonly function: { readonly name: string; readonly parameters?: JsonSchema } };

/** The tools a parser accepts: a list, or a registry (anything with `list()`, and `get(name)` for types). */
export type KnownToolSource =
  | readonly KnownTool[]
  | {
      list(): readonly string[];
      get?(name: string): { readonly parameters?: JsonSchema } | undefined;
    };

/** Which names are tools, and what their arguments look like. */
export interface KnownTools {
  /** Every name counts as a tool, because none were given. */
  readonly any: boolean;
  has(name: string): boolean;
  /** Schema of a parameter, where it is known. */
  parameter(tool: string, name: string): JsonSchema | undefined;
}

/** Looks names up in what was given; a registry is asked anew each time this is called. */
export function knownTools(source: KnownToolSource | undefined): KnownTools {
  if (source === undefined) {
    return { any: true, has: (name) => name.trim() !== '', parameter: () => undefined };
  }
  // A Map, because names come from a model: `constructor` is found only if it is a tool.
  const schemas = new Map(entriesOf(source));
  return {
    any: false,
    has: (name) => schemas.has(name),
    parameter: (tool, name) => {
      const properties = schemas.get(tool)?.()?.properties;
      return properties !== undefined && Object.hasOwn(properties, name) ? properties[name] : undefined;
    },
  };
}

type SchemaReader = () => JsonSchema | undefined;

function entriesOf(source: KnownToolSource): [string, SchemaReader][] {
  if ('list' in source) return source.list().map((name) => [name, () => source.get?.(name)?.parameters]);
  return source.map((tool) => {
    if (typeof tool === 'string') return [tool, () => undefined];
    const { name, parameters } = 'function' in tool ? tool.function : tool;
    return [name, () => parameters];
  });
}
