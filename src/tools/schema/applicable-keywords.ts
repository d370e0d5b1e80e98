import type { DescribedSchema, ParamOptions } from '../../core/contract/declaration.js';
import type { JsonSchema } from '../../core/contract/json-schema.js';
import { jsonType } from '../../core/kernel/json.js';
import { isSchemaNode, KEYWORDS, type Keyword } from './keywords.js';
import type { TypeFault } from './type-reference.js';
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
      return !type.values.every((item) => isLongEnough(item, value));
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

/**
 * Keywords of `@Param` that are held against no value of the type: they would stand in the schema and do nothing.
 * Where the type leaves open what comes, or one of its branches can use them, nothing is said.
 */
export function misplacedFault(type: ValueType, options: ParamOptions): TypeFault | undefined {
  const misplaced: string[] = [];
  for (const name of Object.keys(options))
    if (GROUP_OF.has(name) && isMisplaced(name, type, options)) misplaced.push(name);
  if (misplaced.length === 0) return undefined;
  const types = [...new Set(jsonTypes(type))];
  const last = types.at(-1) ?? '';
  const found =
    types.length > 1 ? `${types.slice(0, -1).map(named).join(', ')} or ${named(last)}` : named(last);
  return {
    ok: false,
    problem: misplaced.map((name) => `its \`${name}\` says nothing of ${found}`).join(', '),
    causes: [],
    fix: misplaced.map((name) => insteadOf(name, types)).join('; '),
  };
}

type ValueGroup = NonNullable<Keyword['of']>;

/** What `@Param` takes for options of its own is none of them; of these only `additionalProperties: false` is a keyword. */
const GROUP_OF: ReadonlyMap<string, ValueGroup> = new Map(
  [...KEYWORDS].flatMap(([name, { of }]) =>
    of === undefined || name === 'items' || name === 'required' ? [] : [[name, of] as const],
  ),
);

function isMisplaced(name: string, type: ValueType, options: ParamOptions): boolean {
  const value = (options as JsonSchema)[name];
  if (value === undefined || (name === 'additionalProperties' && value !== false)) return false;
  const types = jsonTypes(type);
  // OpenAPI has formats of numbers.
  const takers = [GROUP_OF.get(name), name === 'format' ? 'number' : undefined];
  return types?.some((jsonType) => takers.includes(GROUPS[jsonType] ?? 'none')) === false;
}

const GROUPS: Readonly<Record<string, ValueGroup>> = {
  string: 'text',
  number: 'number',
  array: 'array',
  object: 'object',
};

function named(type: string): string {
  if (type === 'null') return type;
  return `${/^[ao]/.test(type) ? 'an' : 'a'} ${type}`;
}

const LEAST: Readonly<Record<string, string>> = {
  string: 'minLength',
  number: 'minimum',
  array: 'minItems',
  object: 'minProperties',
};
const MOST: Readonly<Record<string, string>> = {
  string: 'maxLength',
  number: 'maximum',
  array: 'maxItems',
  object: 'maxProperties',
};

function insteadOf(name: string, types: readonly string[]): string {
  const group = GROUP_OF.get(name);
  const item = Object.keys(GROUPS).find((type) => GROUPS[type] === group);
  if (types.includes('array') && (item === 'string' || item === 'number'))
    return `items: { type: '${item}', ${name}: … }, which is said of the items`;
  const bounds = /min/i.test(name) ? LEAST : /max/i.test(name) ? MOST : {};
  const meant = types.flatMap((type) => bounds[type] ?? []);
  if (meant.length === 0) return `no \`${name}\``;
  return `${meant.map((keyword) => `\`${keyword}\``).join(' or ')} in the place of \`${name}\``;
}

/** The types of JSON that a value may have; nothing where that is open. */
function jsonTypes(type: ValueType): readonly string[] | undefined {
  switch (type.kind) {
    case 'any':
      return undefined;
    case 'scalar':
      return [type.name === 'integer' ? 'number' : type.name];
    case 'enum':
      return type.values.map(jsonType);
    case 'array':
      return ['array'];
    case 'record':
    case 'class':
    case 'tagged':
      return ['object'];
    case 'schema':
    case 'described':
      return typesOfSchema(type.schema);
    default:
      return ['string'];
  }
}

function typesOfSchema(schema: JsonSchema | DescribedSchema): readonly string[] | undefined {
  const { type, enum: values, anyOf, oneOf, instanceOf } = schema;
  if (instanceOf !== undefined) return undefined;
  if (type !== undefined) return [type].flat().map((name) => (name === 'integer' ? 'number' : String(name)));
  if (Array.isArray(values)) return values.map(jsonType);
  const branches = anyOf ?? oneOf;
  if (!Array.isArray(branches)) return undefined;
  const found = branches.map((branch) => (isSchemaNode(branch) ? typesOfSchema(branch) : undefined));
  return found.every((types) => types !== undefined) ? found.flat() : undefined;
}
