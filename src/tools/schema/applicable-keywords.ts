import type { DescribedSchema, ParamOptions } from '../../core/contract/declaration.js';
import type { JsonSchema } from '../../core/contract/json-schema.js';
import { jsonType } from '../../core/kernel/json.js';
import { isSchemaNode, KEYWORDS, type Keyword } from './keywords.js';
import type { TypeFault } from './type-reference.js';
import type { ValueType } from './value-type.js';

/**
 * The keywords of rules that apply to a type. For example, `minLength: 1` of `@IsNotEmpty` does not apply to a
 * number, and comparisons of JSON values do not apply to a `Date` or an instance.
 */
export function applicableKeywords(type: ValueType, keywords: JsonSchema): JsonSchema {
  if (Object.keys(keywords).length === 0) return keywords;
  const groups = groupsOf(type);
  const entries = Object.entries(keywords).filter(([keyword, value]) => {
    // class-validator compares items by reference, JSON Schema by value: the result is the same only for scalars.
    if (keyword === 'uniqueItems')
      return type.kind === 'array' && (type.items.kind === 'scalar' || type.items.kind === 'enum');
    if (keyword === 'minLength' && type.kind === 'enum')
      return type.values.some((item) => typeof item === 'string' && [...item].length < Number(value));
    return groups.includes(KEYWORDS.get(keyword)?.of ?? 'any');
  });
  return Object.fromEntries(entries);
}

function groupsOf(type: ValueType): readonly (ValueGroup | 'any')[] {
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

/**
 * Keywords of `@Param` that have no effect on the type. If the type is open, or one of its branches can use a
 * keyword, it is not reported.
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

/** The options of `@Param` itself are not keywords, except `additionalProperties: false`. */
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

/** The JSON types of a value; `undefined` if any type is possible. */
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
