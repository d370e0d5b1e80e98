import type { JsonSchema } from '../contract/json-schema.js';
import { KEYWORDS, type Keyword } from './keywords.js';
import type { ValueType } from './value-type.js';

type Group = NonNullable<Keyword['of']> | 'any';

/**
 * The keywords of rules that mean something for a type: `minLength: 1` of `@IsNotEmpty` says nothing of a
 * number, and what compares JSON values says nothing of a `Date` or an instance.
 */
export function applicableKeywords(type: ValueType, keywords: JsonSchema): JsonSchema {
  if (Object.keys(keywords).length === 0) return keywords;
  const groups = groupsOf(type);
  const entries = Object.entries(keywords).filter(([keyword, value]) => {
    if (keyword === 'uniqueItems') return comparesItems(type);
    if (keyword === 'minLength' && type.kind === 'enum')
      return !type.values.every((one) => isLongEnough(one, value));
    return groups.includes(KEYWORDS.get(keyword)?.of ?? 'any');
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
