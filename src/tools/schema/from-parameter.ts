import type { DescribedSchema, ParamOptions } from '../../core/contract/declaration.js';
import type { JsonSchema, SchemaSource } from '../../core/contract/json-schema.js';
import { filterFields, isRecord, jsonType, setOwn } from '../../core/kernel/json.js';
import {
  ANY_VALUE,
  areRight,
  BOOLEAN,
  LIST,
  mistakenNames,
  NUMBER,
  optionTable,
  TEXT,
  WHOLE,
  wrongValues,
} from '../../core/kernel/options.js';
import { allSchemas, isSchemaNode, KEYWORDS } from './keywords.js';
import { readSchemaSource } from './schema-source.js';
import {
  enumValues,
  knownType,
  mapType,
  resolveDesignType,
  resolveTypeReference,
  type TypeFault,
  type TypeResult,
} from './type-reference.js';
import type { ScalarName, ValueModel, ValueType } from './value-type.js';

/** All sources of facts about one parameter. */
interface ParameterSource {
  readonly options?: ParamOptions;
  /** The entry of `design:paramtypes`. */
  readonly designType?: unknown;
  /** The parameter's literal default, if it has one: `limit = 10`. */
  readonly defaultValue?: { readonly value: unknown };
  /** From the generated file. */
  readonly generated?: ValueModel;
}

/** `required` is `false` if the value may be omitted, and absent if that is not stated. */
type ParameterResult = ({ readonly ok: true; readonly required?: boolean } & ValueModel) | TypeFault;

const NO_OPTIONS: ParamOptions = {};
const NO_KEYWORDS: JsonSchema = {};

/**
 * The model of one parameter from, in this order: an explicit schema, `@Param`'s options, the generated file,
 * decorator metadata, and the type of its literal default. It never guesses: an unknown type is a fault.
 *
 * @example
 * ```ts
 * fromParameter({ designType: Number, options: { minimum: 1 } });
 * // { ok: true, type: { kind: 'scalar', name: 'number' }, nullable: false, keywords: { minimum: 1 } }
 * ```
 */
export function fromParameter(source: ParameterSource): ParameterResult {
  const { options = NO_OPTIONS, designType, generated } = source;
  const wrong = paramOptionFault(options);
  if (wrong !== undefined) return wrong;
  const literal = options.default === undefined ? source.defaultValue : { value: options.default };
  const named = typeFromOptions(options, designType);
  const isUntyped = designType === undefined || designType === Object;
  const inferred = isUntyped ? (typeOfLiteral(options.const) ?? typeOfLiteral(literal?.value)) : undefined;
  const type = generated?.type ?? inferred;
  const result = named ?? (type ? knownType(type) : resolveDesignType(designType));
  if (!result.ok) return result;
  const isNull = literal?.value === null || (named === undefined && generated?.nullable === true);
  // An explicit schema is complete.
  const { description, ...known } = (options.schema === undefined && generated?.keywords) || NO_KEYWORDS;
  const constraints = constraintKeywords(options, known);
  const misplaced = constraints === known ? undefined : misplacedFault(result.type, options);
  if (misplaced !== undefined) return misplaced;
  return {
    ok: true,
    type: result.type,
    nullable: options.nullable ?? isNull,
    keywords: orderedKeywords({
      description: options.description ?? description,
      constraints,
      defaultValue: literal?.value,
    }),
    required: options.required ?? (literal === undefined ? undefined : false),
  };
}

const SCALARS: readonly ScalarName[] = ['string', 'number', 'boolean'];

/** The type that TypeScript infers from a literal: `10` → number, `['a']` → an array of strings. */
export function typeOfLiteral(literal: unknown): ValueType | undefined {
  if (literal instanceof Date) return { kind: 'date' };
  if (Array.isArray(literal)) {
    const [first] = literal;
    const items = typeOfLiteral(first);
    const alike = literal.every((each) => typeof each === typeof first);
    return items?.kind === 'scalar' && alike ? { kind: 'array', items } : undefined;
  }
  const name = SCALARS.find((scalar) => scalar === typeof literal);
  return name && { kind: 'scalar', name };
}

/**
 * The type that `@Param`'s options name; `undefined` if they leave it to the metadata. If the metadata is `Array`,
 * `type` and `enum` apply to the items.
 */
export function typeFromOptions(
  options: ParamOptions,
  designType: unknown,
  groups?: readonly string[],
): TypeResult | undefined {
  if (options.schema !== undefined) return fromSource(options.schema, 'schema');
  const type = options.type === undefined ? undefined : resolveTypeReference(options.type, groups);
  const isArray = type?.ok && type.type.kind === 'array';
  const inArray = designType === Array || options.items !== undefined || isArray;
  if (options.enum !== undefined) {
    const values: ValueType = { kind: 'enum', values: enumValues(options.enum) };
    return knownType(inArray ? { kind: 'array', items: values } : values);
  }
  if (options.items !== undefined) {
    return mapType(fromReference('items', options.items, groups), (items) => ({ kind: 'array', items }));
  }
  const { additionalProperties: values } = options;
  const hasValues = values !== undefined && values !== false;
  // `type: () => Object`
  const isAnyObject = type?.ok && type.type.kind === 'schema';
  if (type !== undefined && !(hasValues && isAnyObject)) {
    if (hasValues && type.ok) return unheard('additionalProperties', 'type', 'type: () => Object');
    const isItem = designType === Array && !isArray;
    return isItem ? mapType(type, (items) => ({ kind: 'array', items })) : type;
  }
  if (!hasValues) return undefined;
  const ofValues =
    values === true ? knownType({ kind: 'any' }) : fromReference('additionalProperties', values, groups);
  return mapType(ofValues, (known) => ({ kind: 'record', values: known }));
}

/** Names of other libraries, which `@Param` reports itself: in a schema they would have no effect. */
const OF_OTHERS = ['min', 'max', 'isArray'];

type SchemaOption = 'schema' | 'items' | 'additionalProperties';

/** An object that is not a function is a schema; every other value names a type. */
function fromReference(
  option: SchemaOption,
  reference: object | string,
  groups: readonly string[] | undefined,
): TypeResult {
  return isSchemaSource(reference)
    ? fromSource(reference as SchemaSource, option)
    : resolveTypeReference(reference, groups);
}

function isSchemaSource(reference: unknown): boolean {
  return isRecord(reference) || '~standard' in Object(reference);
}

function fromSource(source: SchemaSource, option: SchemaOption): TypeResult {
  const read = readSchemaSource(source);
  if (!read.ok) return { ...read, problem: `its schema ${read.problem}` };
  const { schema, standard } = read;
  const parts = standard === undefined ? [...allSchemas(schema)] : [];
  const name = OF_OTHERS.find((other) => parts.some((part) => Object.hasOwn(part, other)));
  if (name === undefined) return knownType({ kind: 'schema', schema, standard });
  const problem = `\`${name}\` in its \`${option}\` is not a keyword of JSON Schema`;
  return { ok: false, problem, fix: String(PARAM.meant[name]) };
}

function unheard(option: string, beside: string, fix: string): TypeFault {
  const problem = `its \`${option}\` is ignored beside its \`${beside}\`, which defines the value`;
  return { ok: false, problem, fix };
}

/** Options about the type or the property as a whole; all others are keywords of JSON Schema. */
const OTHER_OPTIONS: ReadonlySet<string> = new Set([
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

/**
 * Adds `@Param`'s keywords, in the author's order, to the known keywords; returns the same object if there are none.
 */
export function constraintKeywords(options: ParamOptions, known: JsonSchema = NO_KEYWORDS): JsonSchema {
  const said = options as JsonSchema;
  let keywords: Record<string, unknown> | undefined;
  for (const name of Object.keys(said)) {
    if (OTHER_OPTIONS.has(name) || said[name] === undefined) continue;
    keywords ??= { ...known };
    setOwn(keywords, name, said[name]);
  }
  if (options.additionalProperties === false)
    keywords = { ...(keywords ?? known), additionalProperties: false };
  return keywords ?? known;
}

/** Description first, then the constraints, the default last, independent of the source. */
export function orderedKeywords(of: {
  readonly description?: string;
  readonly constraints: JsonSchema;
  readonly defaultValue?: unknown;
}): JsonSchema {
  const { description, constraints, defaultValue } = of;
  const keywords = description === undefined ? constraints : { description, ...constraints };
  const fallback = defaultValue === undefined ? undefined : jsonForm(defaultValue);
  return fallback === undefined ? keywords : { ...keywords, default: fallback };
}

/**
 * A default in JSON form: dates and URLs as text, bytes in base64. Returns `undefined` if JSON cannot represent the
 * value; the default is then not offered.
 */
function jsonForm(value: unknown): unknown {
  if (typeof value === 'string' || typeof value === 'boolean') return value;
  // JSON has no -0.
  if (Number.isFinite(value)) return Number(value) + 0;
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (value instanceof Date && Number.isNaN(value.getTime())) return undefined;
  if (value instanceof Set) return [...value].map(jsonForm);
  try {
    // JSON would write `null` for other numbers, but `limit = Infinity` does not mean `null`.
    const text = JSON.stringify(value, (_key, part: unknown) => {
      if (typeof part === 'number' && !Number.isFinite(part)) throw new TypeError('JSON has no such number');
      return part;
    });
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Other keywords of JSON Schema are allowed in addition to these. */
const PARAM = optionTable<ParamOptions>(
  '@Param',
  {
    name: TEXT,
    description: TEXT,
    type: ANY_VALUE,
    items: ANY_VALUE,
    enum: ANY_VALUE,
    required: BOOLEAN,
    nullable: BOOLEAN,
    default: ANY_VALUE,
    additionalProperties: ANY_VALUE,
    schema: ANY_VALUE,
    title: TEXT,
    format: TEXT,
    pattern: { accepts: TEXT.accepts, fix: 'the expression’s source, a string' },
    minLength: WHOLE,
    maxLength: WHOLE,
    minimum: NUMBER,
    maximum: NUMBER,
    exclusiveMinimum: NUMBER,
    exclusiveMaximum: NUMBER,
    multipleOf: NUMBER,
    minItems: WHOLE,
    maxItems: WHOLE,
    uniqueItems: BOOLEAN,
    minProperties: WHOLE,
    maxProperties: WHOLE,
    const: ANY_VALUE,
    examples: LIST,
    deprecated: BOOLEAN,
  },
  {
    optional: 'required: false',
    min: 'minimum, minLength or minItems',
    max: 'maximum, maxLength or maxItems',
    isArray: 'items: () => X',
  },
);

/** The faults of `@Param`'s options, as one fault of their parameter or property. */
export function paramOptionFault(options: ParamOptions): TypeFault | undefined {
  if (!areRight(options, PARAM)) {
    const faults = [...wrongValues(options, PARAM), ...mistakenNames(options, PARAM)];
    if (faults.length > 0)
      return {
        ok: false,
        problem: faults.map(({ problem }) => problem).join(', '),
        fix: faults.map(({ fix }) => fix).join('; '),
      };
  }
  // Options without effect, because another option already defines the values.
  const { schema, enum: values, items, type, additionalProperties } = options;
  const ofValues = additionalProperties === false ? undefined : additionalProperties;
  if (schema !== undefined) {
    const said = { type, items, enum: values, additionalProperties: ofValues };
    const beside = Object.entries(said).find(([, value]) => value !== undefined)?.[0];
    if (beside !== undefined) return unheard(beside, 'schema', `schema: { …, ${beside}: … }`);
  }
  if (values !== undefined && isSchemaSource(items))
    return unheard('items', 'enum', 'items: { …, enum: […] }');
  if (ofValues === undefined || (values ?? items) === undefined) return undefined;
  return unheard('additionalProperties', values !== undefined ? 'enum' : 'items', 'no additionalProperties');
}

/**
 * The keywords of rules that apply to a type. For example, `minLength: 1` of `@IsNotEmpty` does not apply to a
 * number, and comparisons of JSON values do not apply to a `Date` or an instance.
 */
export function applicableKeywords(type: ValueType, keywords: JsonSchema): JsonSchema {
  if (Object.keys(keywords).length === 0) return keywords;
  const groups = groupsOf(type);
  return filterFields(keywords, (keyword, value) => {
    // class-validator compares items by reference, JSON Schema by value: the result is the same only for scalars.
    if (keyword === 'uniqueItems')
      return type.kind === 'array' && (type.items.kind === 'scalar' || type.items.kind === 'enum');
    if (keyword === 'minLength' && type.kind === 'enum')
      return type.values.some((item) => typeof item === 'string' && [...item].length < Number(value));
    return groups.includes(KEYWORDS.get(keyword)?.of ?? 'any');
  });
}

const ALL_GROUPS = ['string', 'number', 'array', 'object', 'any'];

function groupsOf(type: ValueType): readonly string[] {
  switch (type.kind) {
    case 'scalar':
      return [type.name === 'string' ? 'string' : 'number', 'any'];
    case 'any':
    case 'enum':
      return ALL_GROUPS;
    case 'schema':
    case 'described':
      return type.schema.type === 'object' ? ['object'] : ALL_GROUPS;
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
  const all = jsonTypes(type);
  if (all === undefined) return undefined;
  const types = [...new Set(all)];
  const misplaced: string[] = [];
  for (const [name, value] of Object.entries(options)) {
    // The options of `@Param` itself are not keywords, except `additionalProperties: false`.
    const isOption = name === 'items' || name === 'required' || (name === 'additionalProperties' && value);
    const of = isOption || value === undefined ? undefined : KEYWORDS.get(name)?.of;
    // OpenAPI has formats of numbers.
    const isOfNumber = name === 'format' && types.includes('number');
    if (of !== undefined && !types.includes(of) && !isOfNumber) misplaced.push(name);
  }
  if (misplaced.length === 0) return undefined;
  const named = types.map((each) => (each === 'null' ? each : `${/^[ao]/.test(each) ? 'an' : 'a'} ${each}`));
  const last = named.pop();
  const found = named.length > 0 ? `${named.join(', ')} or ${last}` : last;
  return {
    ok: false,
    problem: misplaced.map((name) => `its \`${name}\` does not apply to ${found}`).join(', '),
    fix: misplaced.map((name) => insteadOf(name, types)).join('; '),
  };
}

/** The ends of the keywords for the bounds of each type. */
const BOUNDED: Readonly<Record<string, string>> = {
  string: 'Length',
  number: 'imum',
  array: 'Items',
  object: 'Properties',
};

function insteadOf(name: string, types: readonly string[]): string {
  const of = KEYWORDS.get(name)?.of;
  if (types.includes('array') && (of === 'string' || of === 'number'))
    return `items: { type: '${of}', ${name}: … }, which is said of the items`;
  const [side] = /min|max/i.exec(name.toLowerCase()) ?? [];
  const meant = types.flatMap((type) => (side && BOUNDED[type] ? `${side}${BOUNDED[type]}` : []));
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
