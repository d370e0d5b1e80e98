import type { DescribedSchema, ParamOptions, SchemaConstraints } from '../../core/contract/declaration.js';
import type { JsonSchema, SchemaSource } from '../../core/contract/json-schema.js';
import { type Fields, filterFields, isRecord, jsonType, setOwn } from '../../core/kernel/json.js';
import {
  ANY_VALUE,
  areRight,
  BOOLEAN,
  mistakenNames,
  optionTable,
  TEXT,
  wrongValues,
} from '../../core/kernel/options.js';
import type { TransformRule, TypeRule, ValidationRule } from '../validators/dto-rules.js';
import {
  isStandardRule,
  type PropertyRules,
  propertyRules,
  type TypeHint,
  type ValueRules,
} from './class-validator-rules.js';
import { allSchemas, isSchemaNode, KEYWORD_RULES, KEYWORDS, mergeKeywords } from './keywords.js';
import { readSchemaSource } from './schema-source.js';
import {
  asDeclared,
  type ClassModel,
  designToken,
  emptyReference,
  enumValues,
  isEnumObject,
  knownType,
  mapType,
  type PropertyModel,
  resolveDesignType,
  resolveTypeReference,
  type ScalarName,
  TEXTUAL_TYPES,
  type TypeFault,
  type TypeResult,
  unknownType,
  type ValueModel,
  type ValueType,
} from './value-type.js';

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
  const named = typeFromOptions(options, { designType, generated });
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

/** The decorators and metadata of one property of a class. */
export interface DecoratedProperty {
  readonly key: string;
  readonly options: ParamOptions;
  /** Its class-validator rules in the selected groups; `undefined` if it has no rules in any group. */
  readonly rules?: readonly ValidationRule[];
  /** Its rules in any group, which may determine its type if nothing else does. */
  readonly rulesOfAnyGroup?: readonly ValidationRule[];
  readonly transform?: TransformRule;
  readonly designType: unknown;
  readonly groups?: readonly string[];
  /** From the generated file. */
  readonly generated?: ValueModel & { readonly optional: boolean };
  /** From `@ApiProperty`. */
  readonly api?: ApiProperty;
}

/** A property, or why it cannot be described. */
type PropertyResult =
  | {
      readonly ok: true;
      readonly property: PropertyModel;
      readonly remaining: ClassModel['remaining'];
      /** The contradiction between types and rules, or between rules. */
      readonly disagreement?: string;
    }
  | TypeFault;

/** The model of one property of a DTO class. */
export function fromProperty(decorated: DecoratedProperty): PropertyResult {
  const { key, options, transform, generated, api, rules: all = [] } = decorated;
  const wrong = paramOptionFault(options);
  if (wrong !== undefined) return wrong;
  const designType = (generated && designToken(generated.type)) ?? decorated.designType;
  const eachIsOwn = !isCollection(designType);
  const rules = propertyRules(all, eachIsOwn);
  const said = withApiProperty(rules, api, designType);
  const facts: PropertyFacts = { ...decorated, designType, rules: said };
  let result = propertyType(facts);
  if (!result.ok)
    result = propertyType({ ...facts, rules: propertyRules(decorated.rulesOfAnyGroup ?? [], eachIsOwn) });
  if (!result.ok) return result;
  const { type } = result;
  const misplaced = misplacedFault(type, options);
  if (misplaced !== undefined) return misplaced;

  const transforms = transform?.transforms ?? [];
  const { own, inexact, isOptional } = rules;
  const isFit = own.hint === undefined || fitsHint(type, own.hint);
  // The rules may be written for another type than the schema has, or for the value after a `@Transform`.
  const mayDiffer = all.length > 0 && (transforms.length > 0 || namesType(options) || !isFit);
  let remaining: ClassModel['remaining'] = 'none';
  if (rules.needsValidator || mayDiffer) remaining = 'all';
  else if (inexact.length > 0)
    remaining = inexact.map(({ rule, meaning: { enough } }) => (instance) => {
      const value = (instance as Fields)[key];
      if ((value === undefined || value === null) && isOptional) return true;
      return (typeof value === 'string' && enough?.test(value)) || rule.passes(value, instance);
    });
  // Without the generated file, there is no second source to compare.
  const disagrees =
    generated !== undefined &&
    !isFit &&
    type.kind !== 'any' &&
    transforms.length === 0 &&
    !namesType(options);
  const name = options.name ?? transform?.name ?? key;
  const itemKeywords = type.kind === 'array' && applicableKeywords(type.items, said.items.keywords);
  // Documentation that `null` is allowed does not override rules that refuse it.
  const isDocumentedNull = api?.nullable === true && (isOptional || all.length === 0);
  return {
    ok: true,
    disagreement: disagreementOf(rules, disagrees ? type : undefined),
    remaining,
    property: {
      name,
      key: name === key ? undefined : key,
      type: itemKeywords && Object.keys(itemKeywords).length > 0 ? { ...type, keywords: itemKeywords } : type,
      required: isRequired(decorated, rules),
      nullable: options.nullable ?? (rules.isConditional || generated?.nullable === true || isDocumentedNull),
      keywords: keywordsOf(type, decorated, said),
      transforms: transforms.length > 0 ? transforms : undefined,
      transformedFirst: transformsFirst(decorated, type),
      cascades: rules.isNested || undefined,
    },
  };
}

/** The contradiction between rules, or between them and a type that they do not fit. */
function disagreementOf({ own, kinds }: PropertyRules, type: ValueType | undefined): string | undefined {
  if (type !== undefined)
    return `its type is ${typeName(type)}, but its class-validator rules are for ${own.hint}`;
  return kinds.size > 1 ? `its class-validator rules are for ${[...kinds].join(' and for ')}` : undefined;
}

function typeName(type: ValueType): string {
  if (type.kind === 'scalar') return type.name;
  return type.kind === 'class' ? type.class.name : type.kind;
}

function namesType({ schema, type, items, enum: values, additionalProperties }: ParamOptions): boolean {
  return [schema, type, items, values, additionalProperties].some((said) => said !== undefined);
}

/**
 * Whether the type is that of the value after a `@Transform`. Values that `@Type` turns into instances are checked
 * before the transform. So are properties whose `@Param` states another type: it describes the sent value.
 */
function transformsFirst(
  { options, transform, designType }: DecoratedProperty,
  type: ValueType,
): PropertyModel['transformedFirst'] {
  if (!transform?.transforms.length || transform.type !== undefined || !isPlain(type)) return undefined;
  const designed = designType === Array ? 'array' : kindOf(resolveDesignType(designType));
  const isOfResult =
    !namesType(options) || options.enum !== undefined || designed === kindOf(knownType(type));
  if (!isOfResult) return undefined;
  return transform.isExposed ? 'always' : 'sent';
}

/** Whether its values are the same in JSON and for the tool, or are one string in JSON. */
function isPlain(type: ValueType): boolean {
  switch (type.kind) {
    case 'scalar':
    case 'enum':
    case 'date':
    case 'url':
      return true;
    case 'array':
      return type.collection !== 'set' && isPlain(type.items);
    case 'record':
      return type.collection !== 'map' && isPlain(type.values);
    case 'schema':
      return type.standard === undefined;
    case 'described':
      return [...allSchemas(type.schema)].every(
        (part: DescribedSchema) => part.instanceOf === undefined && part.$ref === undefined,
      );
    default:
      return false;
  }
}

function kindOf(result: TypeResult): string | undefined {
  if (!result.ok) return undefined;
  const { type } = result;
  if (type.kind !== 'scalar') return type.kind;
  return type.name === 'integer' ? 'number' : type.name;
}

/** A property is required unless all its rules accept its absence; without rules, it is required. */
function isRequired(decorated: DecoratedProperty, rules: PropertyRules): boolean {
  const { options, rules: all, generated, api } = decorated;
  if (options.required !== undefined) return options.required;
  if (options.default !== undefined || rules.isOptional || rules.isConditional) return false;
  // Rules validate the instance, which has its initializer's value if no value was sent.
  if (initialOf(decorated, rules) !== undefined) return false;
  if (all !== undefined && !rules.acceptsMissing) return true;
  if (api?.required !== undefined) return api.required;
  return generated === undefined ? all === undefined : !generated.optional;
}

/** The value of its initializer, if it is known and a missing property may have it. */
function initialOf(
  { options, generated, api, rules: all = [] }: DecoratedProperty,
  rules: PropertyRules,
): unknown {
  const initial = options.schema === undefined ? (api?.default ?? generated?.keywords.default) : undefined;
  return initial !== undefined && acceptsInitial(initial, all, rules) ? initial : undefined;
}

/** An explicit schema is complete; otherwise `@Param` overrides the rules, keyword by keyword. */
function keywordsOf(type: ValueType, decorated: DecoratedProperty, rules: PropertyRules): JsonSchema {
  const { options, generated, api } = decorated;
  const isExplicit = options.schema !== undefined;
  const fromRules = isExplicit ? NO_KEYWORDS : applicableKeywords(type, rules.own.keywords);
  const { description, default: _, ...known } = (!isExplicit && generated?.keywords) || NO_KEYWORDS;
  // A default that is filled in before the check would pass through the `@Transform`, but the initializer's value is
  // its result.
  const fallback = decorated.transform?.transforms.length ? undefined : initialOf(decorated, rules);
  const constraints = constraintKeywords(options, mergeKeywords(known, fromRules));
  return orderedKeywords({
    description: options.description ?? api?.description ?? description,
    constraints,
    defaultValue: options.default ?? fallback,
  });
}

/** The facts about one property of a DTO class, with its rules combined. */
type PropertyFacts = Omit<DecoratedProperty, 'rules'> & { readonly rules: PropertyRules };

/**
 * The type of a DTO's property from, in this order: `@Param`, the generated file, class-transformer's `@Type`,
 * class-validator's rules, `@ApiProperty`, and decorator metadata. Only for a union of classes, `@Type` comes before
 * the generated file: it defines the tag of each class.
 */
function propertyType(facts: PropertyFacts): TypeResult {
  const { options, designType, groups, generated, transform, rules, api } = facts;
  // With a `@Transform`, `@Param` describes the sent value.
  const isSent = transform?.transforms.length && designType !== Array;
  const named = typeFromOptions(options, isSent ? {} : { designType, generated }, groups);
  if (named !== undefined) return named;
  if (generated && !transform?.type?.discriminator) {
    const { type } = generated;
    return knownType(
      type.kind === 'array'
        ? { ...type, items: narrowed(type.items, rules.items) }
        : narrowed(type, rules.own),
    );
  }
  const declared = isCollection(designType) ? (designType ?? transform?.type?.reflected) : designType;
  const isSetOrMap = declared === Set || declared === Map;
  if (!isSetOrMap && declared !== Array && !rules.hasItems && rules.own.hint !== 'array') {
    if (transform?.type) return fromTypeRule(transform.type, rules.own, groups);
    const { values, hint } = rules.own;
    if (isEnumObject(designType) && values === undefined) return resolveTypeReference(designType);
    const design = resolveDesignType(designType, groups);
    if (design.ok && values === undefined) return knownType(refine(design.type, hint));
    return fromRules(rules.own) ?? (api?.type ? knownType(api.type) : design);
  }
  const documented = api?.type ? knownType(api.type) : unknownType(designType ?? Array);
  const ofItems = transform?.type
    ? fromTypeRule(transform.type, rules.items, groups)
    : (fromRules(rules.items) ?? documented);
  return mapType(ofItems, (items): ValueType => {
    if (declared === Map) return { kind: 'record', values: items, collection: 'map' };
    return declared === Set ? { kind: 'array', items, collection: 'set' } : { kind: 'array', items };
  });
}

/** Whether `each: true` applies to items: on a scalar, class-validator validates the value itself. */
function isCollection(designType: unknown): boolean {
  return COLLECTIONS.includes(designType);
}

const COLLECTIONS: readonly unknown[] = [Array, Set, Map, Object, undefined];

/** Applies rules that allow less than the type: whole numbers, or some strings. */
function narrowed(type: ValueType, { values, hint }: ValueRules): ValueType {
  if (type.kind !== 'scalar') return type;
  if (values?.every((value) => typeof value === type.name)) return { kind: 'enum', values };
  return type.name === 'number' && hint === 'integer' ? { kind: 'scalar', name: 'integer' } : type;
}

/** The type from rules alone: the allowed values, or the only accepted type. */
function fromRules({ values, hint, keywords }: ValueRules): TypeResult | undefined {
  if (values !== undefined) return knownType({ kind: 'enum', values });
  const type = hint === undefined ? typeOfLiteral(keywords.const) : typeOfHint(hint);
  return type && knownType(type);
}

function typeOfHint(hint: TypeHint): ValueType | undefined {
  if (hint === 'date') return { kind: 'date' };
  if (hint === 'object') return { kind: 'schema', schema: { type: 'object' } };
  return hint === 'array' ? undefined : { kind: 'scalar', name: hint };
}

/**
 * Applies a rule that is narrower than the metadata (`@IsInt` on `number`) or more precise (`@IsDateString` on
 * `Date`).
 */
function refine(type: ValueType, hint: TypeHint | undefined): ValueType {
  if (hint === undefined || fitsHint(type, hint)) return type;
  return typeOfHint(hint) ?? type;
}

/** Whether a rule's type includes every value of a type. */
function fitsHint(type: ValueType, hint: TypeHint): boolean {
  switch (type.kind) {
    case 'scalar':
      return type.name === hint || (type.name === 'integer' && hint === 'number');
    case 'enum':
      return type.values.every((value) => value === null || typeof value === hint);
    case 'date':
      return hint === 'date';
    case 'array':
      return hint === 'array';
    case 'schema':
    case 'described':
      return type.schema.type === hint;
    default:
      return hint === 'object' && type.kind !== 'any';
  }
}

function fromTypeRule(rule: TypeRule, rules: ValueRules, groups: readonly string[] | undefined): TypeResult {
  const { discriminator } = rule;
  if (discriminator && discriminator.subTypes.length > 0) {
    const variants = discriminator.subTypes.map(({ name, value }) => ({ tag: name, class: value }));
    const { property, keepProperty } = discriminator;
    return knownType({ kind: 'tagged', property, keepProperty, variants, groups });
  }
  let reference: unknown;
  try {
    reference = rule.resolve();
  } catch (error) {
    return emptyReference(error);
  }
  const type = resolveTypeReference(reference, groups);
  if (!type.ok || type.type.kind !== 'scalar') return type;
  return rules.values === undefined
    ? knownType(refine(type.type, rules.hint))
    : knownType({ kind: 'enum', values: rules.values });
}

/**
 * Whether the rules accept the value of a property's initializer. For example, `@Length(2, 5) name = ''` means that a
 * name must be sent. Custom rules run when the tool is called.
 */
function acceptsInitial(
  value: unknown,
  all: readonly ValidationRule[],
  { isOptional, isConditional }: PropertyRules,
): boolean {
  if (isConditional || (value === null && isOptional)) return true;
  return all.every((rule) => {
    if (rule.role === 'defined') return value !== null;
    // class-validator refuses plain objects, and has no faults for an empty array.
    if (rule.role === 'nested') return Array.isArray(value) && value.length === 0;
    return !isStandardRule(rule) || rule.passes(value, {});
  });
}

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

/** Completes rules with facts of `@ApiProperty`, keyword by keyword. Conditional rules leave everything open. */
function withApiProperty(
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
  // Documented values of another type than the rules accept do not apply.
  const kind = rules.hint === 'integer' ? 'number' : rules.hint;
  const isFit = kind === undefined || api.values?.every((value) => typeof value === kind);
  const values = rules.values ?? (isFit ? api.values : undefined);
  return { hint, values, keywords: { ...api.keywords, ...rules.keywords } };
}

const SCALARS: readonly ScalarName[] = ['string', 'number', 'boolean'];

/** The type that TypeScript infers from a literal: `10` → number, `['a']` → an array of strings. */
function typeOfLiteral(literal: unknown): ValueType | undefined {
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
 * The type that `@Param`'s options name; `undefined` if they leave it to the metadata. If the metadata is `Array` or
 * `Set`, `type` and `enum` apply to the items.
 */
function typeFromOptions(
  options: ParamOptions,
  { designType, generated }: Pick<ParameterSource, 'designType' | 'generated'>,
  groups?: readonly string[],
): TypeResult | undefined {
  const stated = statedType(options, designType === Array || designType === Set, groups);
  return stated?.ok ? asDeclared(stated.type, designType, generated?.type) : stated;
}

function statedType(
  options: ParamOptions,
  isList: boolean,
  groups: readonly string[] | undefined,
): TypeResult | undefined {
  if (options.schema !== undefined) return fromSource(options.schema, 'schema');
  const type = options.type === undefined ? undefined : resolveTypeReference(options.type, groups);
  const isArray = type?.ok && type.type.kind === 'array';
  const inArray = isList || options.items !== undefined || isArray;
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
    const isItem = isList && !isArray;
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
  const problem = `its \`${option}\` is ignored, because its \`${beside}\` defines the value`;
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
function constraintKeywords(options: ParamOptions, known: JsonSchema = NO_KEYWORDS): JsonSchema {
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
function orderedKeywords(of: {
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

const PARAM = optionTable<Omit<ParamOptions, keyof SchemaConstraints> & Pick<ParamOptions, 'pattern'>>(
  '@Param',
  {
    ...Object.fromEntries([...KEYWORDS].map(([keyword, { takes }]) => [keyword, KEYWORD_RULES[takes]])),
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
    // Its syntax is checked with the schema, so that all faults of the method are reported together.
    pattern: { ...KEYWORD_RULES['a pattern'], accepts: TEXT.accepts },
  },
  {
    optional: 'required: false',
    min: 'minimum, minLength or minItems',
    max: 'maximum, maxLength or maxItems',
    isArray: 'items: () => X',
  },
);

/** The faults of `@Param`'s options, as one fault of their parameter or property. */
function paramOptionFault(options: ParamOptions): TypeFault | undefined {
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
function applicableKeywords(type: ValueType, keywords: JsonSchema): JsonSchema {
  if (Object.keys(keywords).length === 0) return keywords;
  const textual: ReadonlyMap<unknown, unknown> = TEXTUAL_TYPES;
  if (textual.has(type.kind)) return NO_KEYWORDS;
  const types = jsonTypes(type);
  return filterFields(keywords, (keyword, value) => {
    // class-validator compares items by reference, JSON Schema by value: the result is the same only for scalars.
    if (keyword === 'uniqueItems')
      return type.kind === 'array' && (type.items.kind === 'scalar' || type.items.kind === 'enum');
    if (keyword === 'minLength' && type.kind === 'enum')
      return type.values.some((item) => typeof item === 'string' && [...item].length < Number(value));
    const of = KEYWORDS.get(keyword)?.of;
    return of === undefined ? types?.join() !== 'object' : types?.includes(of) !== false;
  });
}

/**
 * Keywords of `@Param` that have no effect on the type. If the type is open, or one of its branches can use a
 * keyword, it is not reported.
 */
function misplacedFault(type: ValueType, options: ParamOptions): TypeFault | undefined {
  const types = [...new Set(jsonTypes(type))];
  if (types.length === 0) return undefined;
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
    return `items: { type: '${of}', ${name}: … }, for the items`;
  const [side] = /min|max/i.exec(name.toLowerCase()) ?? [];
  const meant = types.flatMap((type) => (side && BOUNDED[type] ? `${side}${BOUNDED[type]}` : []));
  if (meant.length === 0) return `no \`${name}\``;
  return `${meant.map((keyword) => `\`${keyword}\``).join(' or ')} instead of \`${name}\``;
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
