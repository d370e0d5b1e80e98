import type { JsonObject, JsonSchema } from '../contract/json-schema.js';

/** Arguments with the defaults of what was left out; copied only where something was. */
export type Filler = (args: JsonObject) => JsonObject;

/** Fills in the defaults of a schema's own properties, not of those below. */
export function createFiller({ properties = {} }: JsonSchema): Filler {
  const defaults = Object.entries(properties).filter(
    ([name, property]) => name !== '__proto__' && property?.default !== undefined,
  );
  if (defaults.length === 0) return (args) => args;
  return (args) => {
    let filled = args;
    for (const [name, { default: fallback }] of defaults) {
      if (Object.hasOwn(args, name) && args[name] !== undefined) continue;
      if (filled === args) filled = { ...args };
      filled[name] = typeof fallback === 'object' ? structuredClone(fallback) : fallback;
    }
    return filled;
  };
}
