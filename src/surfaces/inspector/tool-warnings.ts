import type { JsonSchema } from '../../core/contract/json-schema.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { isRecord } from '../../core/kernel/json.js';
import { schemaWarnings } from '../../tools/checking/schema-faults.js';

/** OpenAI refuses requests beyond these limits. */
const OPENAI = { description: 1_024, tools: 128, strictDepth: 10 };

/** Probable mistakes in a tool, and limits of providers that it exceeds. */
export function toolWarnings({ description = '', parameters }: ToolDefinition): readonly string[] {
  const parts = [...partsOf(parameters, '', 0)];
  const undescribed = Object.entries(parameters.properties ?? {}).filter(
    ([, { description: own, $ref }]) => !own && $ref === undefined,
  );
  const open = parts.filter(({ schema, path }) => path !== '' && isOpen(schema));
  const depth = Math.max(...parts.map((part) => part.depth));
  return [
    ...(description.trim() === '' ? ['It has no description, so models cannot know when to call it.'] : []),
    ...(description.length > OPENAI.description
      ? [`The description has ${description.length} characters; OpenAI accepts ${OPENAI.description}.`]
      : []),
    ...(undescribed.length > 0 ? [`Without a description: ${listed(undescribed.map(([key]) => key))}.`] : []),
    ...(open.length > 0
      ? [
          `Any value or any keys are allowed, so models have to guess: ${listed(open.map(({ path }) => path))}.`,
        ]
      : []),
    ...(depth > OPENAI.strictDepth
      ? [`The schema is nested ${depth} levels deep; OpenAI accepts ${OPENAI.strictDepth} in strict mode.`]
      : []),
    ...schemaWarnings(parameters, 'author').map(({ path, problem }) => `parameters.${path} ${problem}.`),
  ];
}

/** Limits of providers that all tools together exceed. */
export function listWarnings(tools: readonly unknown[]): readonly string[] {
  if (tools.length <= OPENAI.tools) return [];
  return [`There are ${tools.length} tools; OpenAI accepts ${OPENAI.tools} in a request.`];
}

interface SchemaPart {
  readonly path: string;
  readonly depth: number;
  readonly schema: JsonSchema;
}

/** A schema and its parts. `$ref` is not followed: definitions are listed under their names. */
function* partsOf(schema: unknown, path: string, depth: number): Generator<SchemaPart> {
  if (!isRecord(schema)) return;
  yield { path, depth, schema };
  const { properties, items, additionalProperties, $defs, definitions } = schema;
  for (const [key, part] of Object.entries(Object(properties)))
    yield* partsOf(part, path === '' ? key : `${path}.${key}`, depth + 1);
  for (const [name, part] of Object.entries({ ...Object($defs), ...Object(definitions) }))
    yield* partsOf(part, `#${name}`, depth);
  yield* partsOf(additionalProperties, `${path}.*`, depth + 1);
  for (const part of [items, schema.prefixItems].flat()) yield* partsOf(part, `${path}[]`, depth + 1);
  for (const part of [schema.anyOf, schema.oneOf, schema.allOf].flat()) yield* partsOf(part, path, depth);
}

const SAYS_NOTHING = new Set(['title', 'description', 'default', 'examples']);

function isOpen(schema: JsonSchema): boolean {
  if (Object.keys(schema).every((keyword) => SAYS_NOTHING.has(keyword))) return true;
  if (schema.type !== 'object') return false;
  const hasKeys = Object.keys(Object(schema.properties)).length > 0;
  return schema.additionalProperties === true || (!hasKeys && !isRecord(schema.additionalProperties));
}

const MOST_PATHS = 6;

function listed(all: readonly string[]): string {
  const paths = [...new Set(all)];
  const more = paths.length - MOST_PATHS;
  return paths.slice(0, MOST_PATHS).join(', ') + (more > 0 ? ` and ${more} more` : '');
}
