import type { ElicitRequestFormParams } from '@modelcontextprotocol/server';
import type { JsonSchema } from '../../contract/json-schema.js';
import type { Wait } from '../../contract/suspension.js';

/** A question as a client can put it to its user, and how its answer is read. */
export interface QuestionForm {
  readonly requestedSchema: ElicitRequestFormParams['requestedSchema'];
  readonly valueOf: (content: Readonly<Record<string, unknown>>) => unknown;
}

/**
 * The keywords that a form may have (MCP, elicitation); the answer is checked against the whole schema
 * anyway.
 */
const KEYWORDS = [
  ...['type', 'title', 'description', 'default', 'enum', 'enumNames', 'oneOf', 'items'],
  ...['minLength', 'maxLength', 'minimum', 'maximum', 'minItems', 'maxItems'],
];
const FORMATS: ReadonlySet<unknown> = new Set(['email', 'uri', 'date', 'date-time']);
const PLAIN_TYPES: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean']);
const CONFIRMATION: QuestionForm = {
  requestedSchema: { type: 'object', properties: {} },
  valueOf: () => undefined,
};

/**
 * The form for a wait; nothing where no form can hold the answer. An object of plain fields is a form of its
 * own; a single plain value becomes the field `answer`.
 */
export function questionForm({ kind, schema }: Wait): QuestionForm | undefined {
  if (kind === 'client') return undefined;
  if (kind === 'approval') return CONFIRMATION;
  if (schema?.type === 'object') return formOfObject(schema);
  const field = schema === undefined ? { type: 'string' } : fieldOf(schema);
  if (field === undefined) return undefined;
  return {
    requestedSchema: toForm({ answer: field }, ['answer']),
    valueOf: ({ answer }) => answer,
  };
}

function formOfObject({ properties = {}, required }: JsonSchema): QuestionForm | undefined {
  const fields = Object.entries(properties).map(([name, schema]) => [name, fieldOf(schema)] as const);
  if (fields.some(([, field]) => field === undefined)) return undefined;
  return { requestedSchema: toForm(Object.fromEntries(fields), required), valueOf: (content) => content };
}

function toForm(properties: object, required?: readonly string[]): QuestionForm['requestedSchema'] {
  return {
    type: 'object',
    properties,
    ...(required?.length ? { required } : {}),
  } as QuestionForm['requestedSchema'];
}

function fieldOf(schema: JsonSchema): JsonSchema | undefined {
  const isChoice = schema.type === 'array' && isListOfChoices(schema.items);
  if (!isChoice && !PLAIN_TYPES.has(schema.type)) return undefined;
  const known = KEYWORDS.filter((keyword) => schema[keyword] !== undefined);
  const field = Object.fromEntries(known.map((keyword) => [keyword, schema[keyword]]));
  return FORMATS.has(schema.format) ? { ...field, format: schema.format } : field;
}

function isListOfChoices(items: JsonSchema['items']): boolean {
  return typeof items === 'object' && ('enum' in items || 'anyOf' in items);
}
