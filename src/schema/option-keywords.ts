import type { JsonSchema } from '../contract/json-schema.js';
import type { ParamOptions } from '../contract/param-options.js';
import { jsonForm } from './json-form.js';

/** Options that decide about the type or the property as a whole; all others are keywords of JSON Schema. */
const NO_KEYWORDS: ReadonlySet<string> = new Set([
  'name',
  'description',
  'type',
  'items',
  'enum',
  'required',
  'nullable',
  'default',
  'additionalProperties',
  'schema',
]);

/** The keywords that `@Param` gives by their own names, in the author's order; description and default apart. */
export function constraintKeywords(options: ParamOptions): JsonSchema {
  const entries = Object.entries(options).filter(
    ([key, value]) => !NO_KEYWORDS.has(key) && value !== undefined,
  );
  const closed = options.additionalProperties === false ? { additionalProperties: false } : {};
  return { ...Object.fromEntries(entries), ...closed };
}

/** Description first, then the constraints, the default last: an order that does not depend on the source. */
export function orderedKeywords(of: {
  readonly description?: string;
  readonly constraints: JsonSchema;
  readonly defaultValue?: unknown;
}): JsonSchema {
  const fallback = jsonForm(of.defaultValue);
  return {
    ...(of.description === undefined ? {} : { description: of.description }),
    ...of.constraints,
    ...(fallback === undefined ? {} : { default: fallback }),
  };
}
