import type { JsonSchema } from '../contract/json-schema.js';
import type { ValueType } from './value-type.js';

type Group = 'text' | 'number' | 'array' | 'object' | 'any';

const GROUPS: ReadonlyMap<string, Group> = new Map([
  ...['minLength', 'maxLength', 'pattern', 'format'].map((keyword) => [keyword, 'text'] as const),
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'].map(
    (keyword) => [keyword, 'number'] as const,
  ),
  ...['minItems', 'maxItems', 'uniqueItems', 'contains'].map((keyword) => [keyword, 'array'] as const),
  ['minProperties', 'object'],
]);

/**
 * The keywords of rules that mean something for a type: `minLength: 1` of `@IsNotEmpty` says nothing of a
 * number, and what compares JSON values says nothing of a `Date` or an instance.
 */
export function applicableKeywords(type: ValueType, keywords: JsonSchema): JsonSchema {
  const groups = groupsOf(type);
  const entries = Object.entries(keywords).filter(([keyword, value]) => {
    if (keyword === 'uniqueItems') return comparesItems(type);
    if (keyword === 'minLength' && type.kind === 'enum')
      return !type.values.every((one) => isLongEnough(one, value));
    return groups.includes(GROUPS.get(keyword) ?? 'any');
  });
  return Object.fromEntries(entries);
}

function groupsOf(type: ValueType): readonly Group[] {
  switch (type.kind) {
    case 'scalar':
      return [type.name === 'string' ? 'text' : 'number', 'any'];
    case 'any':
    case 'enum':
      return ['text', 'number', 'array', 'object', 'any'];
    case 'schema':
    case 'described':
      return type.schema.type === 'object' ? ['object'] : ['text', 'number', 'array', 'object', 'any'];
    case 'array':
      return ['array', 'any'];
    case 'record':
    case 'class':
    case 'tagged':
      return ['object'];
    default:
      return [];
  }
}

/** class-validator compares items by reference, JSON Schema by value: the same for scalars only. */
function comparesItems(type: ValueType): boolean {
  return type.kind === 'array' && (type.items.kind === 'scalar' || type.items.kind === 'enum');
}

function isLongEnough(value: unknown, least: unknown): boolean {
  return typeof value !== 'string' || [...value].length >= Number(least);
}
