import type { JsonSchema } from '../contract/json-schema.js';

/** The name of the one parameter that takes a text, where a tool has that and no other. */
export function textParameter({ type = 'object', properties = {} }: JsonSchema): string | undefined {
  const [first, ...others] = Object.entries(properties);
  const isOne = type === 'object' && others.length === 0;
  return isOne && first?.[1].type === 'string' ? first[0] : undefined;
}
