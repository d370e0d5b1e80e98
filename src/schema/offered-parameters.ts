import type { JsonSchema } from '../contract/json-schema.js';
import { allSchemas } from './keywords.js';
import { Definitions, embedSchema } from './write-schema.js';

/** Parameters as a provider takes them. */
interface OfferedParameters {
  readonly schema: JsonSchema;
  /** The property that holds the arguments, where they had to be put into one. */
  readonly wrapper?: string;
}

/** What providers refuse at the root, and the whole request with it: a tool takes one object. */
const REFUSED_AT_ROOT = ['anyOf', 'oneOf', 'allOf', 'not', 'enum', '$ref'] as const;

const offers = new WeakMap<JsonSchema, OfferedParameters>();

/**
 * Parameters as they are offered to a model: as they are, unless their root is a union or the like. Then they
 * stand in a property, and so do the arguments that the model sends.
 */
export function offeredParameters(parameters: JsonSchema): OfferedParameters {
  const before = offers.get(parameters);
  if (before !== undefined) return before;
  const isTaken = REFUSED_AT_ROOT.every((keyword) => parameters[keyword] === undefined);
  const offered = isTaken ? { schema: parameters } : wrapped(parameters);
  offers.set(parameters, offered);
  return offered;
}

function wrapped(parameters: JsonSchema): OfferedParameters {
  const wrapper = freeName(parameters);
  const { $schema, ...inner } = parameters;
  const definitions = new Definitions();
  const properties = { [wrapper]: embedSchema(inner, definitions) };
  const schema = definitions.attachTo({
    ...($schema === undefined ? {} : { $schema }),
    type: 'object',
    properties,
    required: [wrapper],
  });
  return { schema, wrapper };
}

/** No name that the arguments themselves may have, so that both forms can be told apart. */
function freeName(parameters: JsonSchema): string {
  const taken = new Set<string>();
  for (const { properties = {} } of allSchemas(parameters))
    for (const name of Object.keys(properties)) taken.add(name);
  let name = 'input';
  for (let count = 2; taken.has(name); count += 1) name = `input_${count}`;
  return name;
}
