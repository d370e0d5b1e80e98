import type { ClassType } from '../../core/contract/declaration.js';
import type { JsonSchema } from '../../core/contract/json-schema.js';
import { isRecord } from '../../core/kernel/json.js';
import { nearest } from '../../core/metadata/class-record.js';
import { isJsonScalar, type PropertyRules, type TypeHint, type ValueRules } from './class-validator-rules.js';
import { BOUNDS, regularExpression } from './keywords.js';
import { enumValues, isEnumObject, resolveTypeReference } from './type-reference.js';
import type { ValueType } from './value-type.js';

/** The facts from OpenAPI's `@ApiProperty` on a property. They are documentation: validation rules win. */
export interface ApiProperty {
  readonly description?: string;
  readonly required?: boolean;
  readonly nullable?: boolean;
  readonly default?: unknown;
  readonly own: ValueRules;
  readonly items: ValueRules;
  /** The class of the property or of its items, or another type that rules cannot express. */
  readonly type?: ValueType;
}

/** The metadata keys of `@nestjs/swagger`; the package itself is not loaded. */
const PROPERTIES = 'swagger/apiModelPropertiesArray';
const PROPERTY = 'swagger/apiModelProperties';
const OPERATION = 'swagger/apiOperation';

type Metadata = Readonly<Record<string, unknown>>;

/** The properties of this class with `@ApiProperty`, without inherited and response-only properties. */
export function apiProperties(target: ClassType): readonly string[] {
  const keys = metadata(PROPERTIES, target.prototype);
  if (!Array.isArray(keys)) return [];
  return keys
    .map((key) => String(key).slice(1))
    .filter((key) => readMetadata(target, key)?.readOnly !== true);
}

/** The facts from `@ApiProperty` on a property of a class or its bases. */
export function apiProperty(target: ClassType, key: string): ApiProperty | undefined {
  const said = readMetadata(target, key);
  if (said === undefined) return undefined;
  const { isArray, type } = typeOf(said);
  const keywords = keywordsOf(said);
  const { items: nested } = said;
  const ofItems = isArray && isRecord(nested) ? { ...said, ...nested } : said;
  const values: ValueRules = {
    ...(hintOf(type) ? { hint: hintOf(type) } : {}),
    ...valuesOf(ofItems),
    keywords: isArray ? only(keywords, MOVED_TO_ITEMS) : keywords,
  };
  const array: ValueRules = { hint: 'array', keywords: without(keywords, MOVED_TO_ITEMS) };
  const hint = isArray ? 'array' : hintOf(type);
  return {
    description: textOf(said.description),
    required: flagOf(said.required),
    nullable: flagOf(said.nullable),
    default: isOfHint(said.default, hint) ? said.default : undefined,
    own: isArray ? array : values,
    items: isArray ? values : { keywords: {} },
    type: hintOf(type) === undefined ? type : undefined,
  };
}

/** The summary or description in `@ApiOperation` of a method, or both. */
export function apiDescription(method: unknown): string | undefined {
  if (typeof method !== 'function') return undefined;
  const said = metadata(OPERATION, method);
  if (!isRecord(said)) return undefined;
  const texts = [said.summary, said.description].filter((text) => typeof text === 'string' && text !== '');
  return texts.length === 0 ? undefined : [...new Set(texts)].join('\n');
}

/** Completes rules with facts of `@ApiProperty`, keyword by keyword. Conditional rules leave everything open. */
export function withApiProperty(
  rules: PropertyRules,
  api: ApiProperty | undefined,
  designType: unknown,
): PropertyRules {
  if (api === undefined || rules.isConditional) return rules;
  const isArray = designType === Array || (api.own.hint === 'array' && OPEN_TYPES.includes(designType));
  const isSingle = api.own.hint !== 'array';
  const [own, items] = isArray && isSingle ? [api.items, api.own] : [api.own, api.items];
  return {
    ...rules,
    own: combined(rules.own, own, designType),
    items: combined(rules.items, items, undefined),
    hasItems: rules.hasItems || isArray,
  };
}

const OPEN_TYPES: readonly unknown[] = [undefined, Object, Array];

function combined(rules: ValueRules, api: ValueRules, designType: unknown): ValueRules {
  // Documentation may state "text" for a `Date`, because JSON sends text; the method still receives a `Date`.
  const isOpen = OPEN_TYPES.includes(designType) || (designType === Number && api.hint === 'integer');
  const hint = rules.hint ?? (isOpen ? api.hint : undefined);
  const values = rules.values ?? fitting(api.values, rules.hint);
  return {
    ...(hint === undefined ? {} : { hint }),
    ...(values === undefined ? {} : { values }),
    keywords: { ...api.keywords, ...rules.keywords },
  };
}

/** Drops values that do not match the type of the rules. */
function fitting(values: ValueRules['values'], hint: TypeHint | undefined): ValueRules['values'] {
  if (values === undefined || hint === undefined) return values;
  const kind = hint === 'integer' ? 'number' : hint;
  return values.every((value) => typeof value === kind) ? values : undefined;
}

function typeOf(said: Metadata): { readonly isArray: boolean; readonly type?: ValueType } {
  const { items } = said;
  const isList = said.isArray === true || said.type === 'array';
  const reference = said.type === 'array' ? (isRecord(items) ? items.type : undefined) : said.type;
  if (reference === undefined || reference === Array || reference === 'file') return { isArray: isList };
  if (isRecord(reference) && !isEnumObject(reference)) return { isArray: isList };
  const resolved = resolveTypeReference(reference);
  if (!resolved.ok) return { isArray: isList };
  if (resolved.type.kind === 'array') return { isArray: true, type: resolved.type.items };
  return { isArray: isList, type: resolved.type };
}

function hintOf(type: ValueType | undefined): TypeHint | undefined {
  if (type?.kind === 'scalar') return type.name;
  if (type?.kind === 'date') return 'date';
  return type?.kind === 'schema' ? 'object' : undefined;
}

function valuesOf(said: Metadata): Pick<ValueRules, 'values'> {
  const { enum: source } = said;
  if (!Array.isArray(source) && !isEnumObject(source)) return {};
  const values = enumValues(source).filter(isJsonScalar);
  return values.length === 0 ? {} : { values };
}

/** Other formats (`int64`, `password`, `binary`) are OpenAPI's own and cannot be checked. */
const FORMATS: ReadonlySet<unknown> = new Set([
  ...['date-time', 'date', 'time', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uri', 'uuid'],
]);

/** On an array, `@nestjs/swagger` applies these to the items. */
const MOVED_TO_ITEMS = ['format', 'maximum', 'maxLength', 'minimum', 'minLength', 'pattern'];

function keywordsOf(said: Metadata): JsonSchema {
  const bounds = BOUNDS.filter((name) => Number.isFinite(said[name])).map((name) => [name, said[name]]);
  return {
    ...(textOf(said.title) ? { title: textOf(said.title) } : {}),
    ...(FORMATS.has(said.format) ? { format: String(said.format) } : {}),
    ...(typeof said.pattern === 'string' && regularExpression(said.pattern) ? { pattern: said.pattern } : {}),
    ...exclusiveBounds(said, Object.fromEntries(bounds)),
    ...(said.uniqueItems === true ? { uniqueItems: true } : {}),
    ...(said.deprecated === true ? { deprecated: true } : {}),
    ...examplesOf(said),
  };
}

/** OpenAPI 3.0 writes `exclusiveMinimum: true` beside `minimum`; JSON Schema has the number itself. */
function exclusiveBounds(said: Metadata, bounds: JsonSchema): JsonSchema {
  const { minimum, maximum, ...others } = bounds;
  return {
    ...(minimum === undefined
      ? {}
      : { [said.exclusiveMinimum === true ? 'exclusiveMinimum' : 'minimum']: minimum }),
    ...(maximum === undefined
      ? {}
      : { [said.exclusiveMaximum === true ? 'exclusiveMaximum' : 'maximum']: maximum }),
    ...others,
  };
}

function examplesOf({ example, examples }: Metadata): JsonSchema {
  const said = example === undefined ? examples : [example];
  const listed = isRecord(said)
    ? Object.values(said).map((each) => (isRecord(each) && 'value' in each ? each.value : each))
    : said;
  return Array.isArray(listed) && listed.length > 0 ? { examples: listed } : {};
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function flagOf(value: unknown): boolean | undefined {
  return typeof value === 'boolean' ? value : undefined;
}

/** A documented default may have any type; a default of another type is dropped. */
function isOfHint(value: unknown, hint: TypeHint | undefined): boolean {
  if (hint === 'array') return Array.isArray(value);
  if (hint === 'integer') return Number.isInteger(value);
  return hint === undefined || typeof value === hint;
}

function only(keywords: JsonSchema, names: readonly string[]): JsonSchema {
  return Object.fromEntries(Object.entries(keywords).filter(([name]) => names.includes(name)));
}

function without(keywords: JsonSchema, names: readonly string[]): JsonSchema {
  return Object.fromEntries(Object.entries(keywords).filter(([name]) => !names.includes(name)));
}

function readMetadata(target: ClassType, key: string): Metadata | undefined {
  return nearest(target, ({ prototype }) => {
    const said = metadata(PROPERTY, prototype, key);
    return isRecord(said) ? said : undefined;
  });
}

/** `undefined` if reflect-metadata is not loaded. */
function metadata(name: string, of: object, key?: string): unknown {
  const reflect = Reflect as { getOwnMetadata?(name: string, of: object, key?: string): unknown };
  return key === undefined ? reflect.getOwnMetadata?.(name, of) : reflect.getOwnMetadata?.(name, of, key);
}
