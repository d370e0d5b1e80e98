import type { JsonObject, JsonSchema } from '../contract/json-schema.js';
import { setOwn } from '../kernel/json.js';
import { isSchemaNode } from '../schema/keywords.js';
import { fitsSchema } from './interpreter/interpret-schema.js';

/** Arguments with the defaults of what was left out; copied only where something was. */
type Filler = (args: JsonObject) => JsonObject;

/** The defaults of a schema's own properties, not of those below. */
export type DefaultsOf = (schema: JsonSchema) => readonly (readonly [name: string, value: unknown])[];

/**
 * What to fill in, within one whole schema: defaults that their own schema accepts. What it refuses, such as
 * the `null` of a number that some libraries write for "none", is left out as if it were not there.
 */
export function fittingDefaults(root: JsonSchema): DefaultsOf {
  return ({ properties = {} }) =>
    Object.entries(properties).flatMap(([name, property]) => {
      if (name === '__proto__' || !isSchemaNode(property) || property.default === undefined) return [];
      return fitsSchema(property.default, { schema: property, root })
        ? [[name, property.default] as const]
        : [];
    });
}

/** For tools whose author fills in for itself. */
export const NO_DEFAULTS: DefaultsOf = () => [];

/** Fills in the defaults of a schema's own properties, not of those below. */
export function createFiller(defaults: ReturnType<DefaultsOf>): Filler {
  if (defaults.length === 0) return (args) => args;
  return (args) => {
    let filled = args;
    for (const [name, fallback] of defaults) {
      if (Object.hasOwn(args, name) && args[name] !== undefined) continue;
      if (filled === args) filled = { ...args };
      setOwn(filled, name, typeof fallback === 'object' ? structuredClone(fallback) : fallback);
    }
    return filled;
  };
}
