import type { ClassType, DescribedSchema, ParamOptions } from '../../core/contract/declaration.js';
import type { JsonSchema } from '../../core/contract/json-schema.js';
import type { OrFaults } from '../../core/errors/author-fault.js';
import { type Fields, filterFields, isRecord, withoutUndefined } from '../../core/kernel/json.js';
import { isBundled } from '../../core/kernel/optional-package.cjs';
import {
  lineage,
  loadedDtoClasses,
  nearest,
  readDescription,
  readRecord,
} from '../../core/metadata/class-record.js';
import { classTransforms, type TransformRule, type TypeRule } from '../validators/transform-rules.js';
import {
  copiedProperties,
  isOutOfReach,
  type ValidationRule,
  validatedProperties,
  validationRules,
} from '../validators/validation-rules.js';
import {
  isJsonScalar,
  isStandardRule,
  type PropertyRules,
  propertyRules,
  type TypeHint,
  type ValueRules,
} from './class-validator-rules.js';
import { fromGenerated } from './from-generated.js';
import {
  applicableKeywords,
  constraintKeywords,
  misplacedFault,
  orderedKeywords,
  paramOptionFault,
  typeFromOptions,
  typeOfLiteral,
} from './from-parameter.js';
import { allSchemas, BOUNDS, mergeKeywords, regularExpression } from './keywords.js';
import {
  designToken,
  emptyReference,
  enumValues,
  isEnumObject,
  knownType,
  mapType,
  type PropertyFault,
  resolveDesignType,
  resolveTypeReference,
  type TypeFault,
  type TypeResult,
  unknownType,
} from './type-reference.js';
import type { ClassModel, PropertyModel, ValueModel, ValueType } from './value-type.js';

/** The decorators and metadata of one property of a class. */
interface DecoratedProperty {
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
      /** The contradiction between types and rules. */
      readonly disagreement?: string;
    }
  | TypeFault;

/** The model of one property of a DTO class. */
function fromProperty(decorated: DecoratedProperty): PropertyResult {
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
    disagreement: disagrees
      ? `its type is ${typeName(type)}, and its class-validator rules are for ${own.hint}`
      : undefined,
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

const NO_KEYWORDS: JsonSchema = {};

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
  const named = typeFromOptions(options, designType, groups);
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

/** The model of a class, or all properties that cannot be described. */
type ClassModelResult = OrFaults<{ readonly model: ClassModel }, PropertyFault>;

// By reference, not by name: many tool inputs are called `Input` or `Args`.
const models = new WeakMap<ClassType, Map<string, ClassModelResult>>();

/** Names that would change an object's prototype instead of the object. */
const UNSAFE: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

const NO_GROUPS: readonly string[] = [];

/**
 * The model of a DTO class, from class-validator, class-transformer, `@Param`, the generated file and decorator
 * metadata of the class and its bases; properties of bases come first. The class is never instantiated. The same
 * class and groups return the same object.
 *
 * @example
 * ```ts
 * const read = classModel(CreateOrderDto, ['create']);
 * if (!read.ok) throw new Error(read.faults.map(({ problem }) => problem).join('; '));
 * ```
 */
export function classModel(target: ClassType, groups = NO_GROUPS): ClassModelResult {
  const key = groups.length === 0 ? '' : JSON.stringify([...new Set(groups)].sort());
  const ofClass = models.get(target) ?? new Map<string, ClassModelResult>();
  const before = ofClass.get(key);
  if (before !== undefined) return before;
  const result = buildModel(target, groups);
  // A failure is not stored: with circular imports, the class may be complete later.
  if (result.ok) models.set(target, ofClass.set(key, result));
  return result;
}

function buildModel(target: ClassType, groups: readonly string[]): ClassModelResult {
  const rules = validationRules(target, groups);
  const properties = new Map<string, PropertyModel>();
  const remaining: ClassModel['remaining'][] = [];
  const disagreements: string[] = [];
  const faults: PropertyFault[] = [];
  const decorated = decoratedProperties(target, groups, rules);
  for (const property of decorated) {
    const where = `property ${target.name}.${property.key}`;
    const result = fromProperty(property);
    if (!result.ok) {
      const { problem, causes, fix } = result;
      faults.push({ property: property.key, problem: `${where}: ${problem}`, causes, fix });
      continue;
    }
    // If two properties have the same JSON name, the later declaration wins.
    properties.set(result.property.name, result.property);
    remaining.push(result.remaining);
    if (result.disagreement !== undefined) disagreements.push(`${where}: ${result.disagreement}`);
  }
  if (decorated.length === 0)
    faults.push({
      property: '',
      problem: `nothing is known of the properties of class ${target.name}`,
      causes: [
        'no property of the class has a decorator',
        'its decorators come from a second copy of class-validator or class-transformer',
        'it is a mapped type (PartialType, PickType, …) of a class with nothing but @Param: mapped types keep only properties with a decorator of class-validator, of class-transformer or @ApiProperty',
      ],
      fix: '@Param, or a decorator of class-validator, on every property of the class',
    });
  if (rules.size > 0 && isOutOfReach())
    faults.push({
      property: '',
      problem: `the class-validator that class ${target.name} was declared with is in a bundle, where it cannot be reached`,
      fix: isBundled()
        ? "import 'toolwright/dto' before the class, so that the bundle provides it"
        : 'class-validator, class-transformer and toolwright in the bundle, or all of them external',
    });
  if (faults.length > 0) return { ok: false, faults };
  const single = remaining.flatMap((ofProperty) => (typeof ofProperty === 'string' ? [] : ofProperty));
  const rest = single.length === 0 ? 'none' : single;
  const model: ClassModel = {
    class: target,
    properties: [...properties.values()],
    remaining: remaining.includes('all') ? 'all' : rest,
  };
  return { ok: true, model: disagreements.length > 0 ? { ...model, disagreements } : model };
}

/** The decorated properties that arguments may set. */
function decoratedProperties(
  target: ClassType,
  groups: readonly string[],
  rules: ReadonlyMap<string, readonly ValidationRule[]>,
): readonly DecoratedProperty[] {
  const ancestors = lineage(target);
  const transforms = classTransforms(target);
  const mapped = ancestors.map(mappedProperties);
  const sources = new Map(mapped.flatMap((sourcesOf) => [...sourcesOf]));
  const keys = ancestors.flatMap((ancestor, index) =>
    [
      Object.keys(readDescription(ancestor)?.properties ?? {}),
      apiProperties(ancestor),
      validatedProperties(ancestor),
      transforms.ownProperties(ancestor),
      [...propertyOptions(ancestor).keys()],
      [...(mapped[index]?.keys() ?? [])],
    ].reduce<readonly string[]>(mergeOrders, []),
  );
  const options = inheritedOptions(target);
  const rulesOfAnyGroup = groups.length > 0 ? validationRules(target) : rules;
  const reflect = Reflect as { getMetadata?(name: string, of: object, key: string): unknown };
  const found: DecoratedProperty[] = [];
  for (const key of new Set(keys)) {
    if (typeof key !== 'string' || UNSAFE.has(key) || transforms.withholds(key)) continue;
    const source = sources.get(key) ?? target;
    // Without a type if reflect-metadata is not loaded or the build tool emits none.
    const designType = (owner: ClassType): unknown =>
      reflect.getMetadata?.('design:type', owner.prototype, key);
    found.push({
      key,
      options: options.get(key) ?? {},
      rules: rules.get(key),
      rulesOfAnyGroup: rulesOfAnyGroup.get(key),
      transform: transforms.ruleOf(key),
      designType: designType(target) ?? designType(source),
      groups: groups.length > 0 ? groups : undefined,
      // The class's own description, or that of the nearest base that has one.
      generated: nearest(target, (ancestor) => {
        const { properties, $defs } = readDescription(ancestor) ?? {};
        if (properties === undefined || !Object.hasOwn(properties, key)) return undefined;
        const property = properties[key];
        return property && { ...fromGenerated(property.schema, $defs), optional: property.optional ?? false };
      }),
      api: apiProperty(target, key) ?? apiProperty(source, key),
    });
  }
  return found;
}

/**
 * Merges partial orders of declaration: each decorator package has its own list of decorated properties. A
 * name is inserted before the next name that both lists contain, otherwise at the end.
 */
function mergeOrders(known: readonly string[], added: readonly string[]): readonly string[] {
  if (added.length === 0) return known;
  if (known.length === 0) return [...new Set(added)];
  const merged = [...known];
  for (const [index, name] of added.entries()) {
    if (merged.includes(name)) continue;
    const next = added.slice(index + 1).find((later) => known.includes(later));
    merged.splice(next === undefined ? merged.length : merged.indexOf(next), 0, name);
  }
  return merged;
}

/**
 * The properties of a class that a mapped type created (`PartialType`, `PickType`, …), with the class that each was
 * taken from. Such a class has no base class and no `@Param` records. Its source is found by the class-validator
 * rules that were copied, or by its name if it has no rules.
 */
function mappedProperties(target: ClassType): ReadonlyMap<string, ClassType> {
  const copied = copiedProperties(target);
  const named = namedSource(target);
  if (copied.size === 0 && named.length === 0) return copied;
  const sources = new Map(copied);
  for (const source of new Set([...copied.values(), ...named])) {
    const known = [...validatedProperties(target), ...apiProperties(target)];
    // Whether it took every property, also those without rules, according to its name.
    const { name } = target;
    const takesAll =
      name === `Partial${source.name}` || (name.startsWith('Intersection') && name.includes(source.name));
    for (const ancestor of lineage(source))
      for (const key of [...propertyOptions(ancestor).keys(), ...apiProperties(ancestor)])
        if (!sources.has(key) && (takesAll || known.includes(key))) sources.set(key, source);
  }
  return sources;
}

/**
 * The `@Param` options of a class's properties; a subclass that decorates a property again overrides single options.
 */
function inheritedOptions(target: ClassType): ReadonlyMap<string, ParamOptions> {
  const options = new Map<string, ParamOptions>();
  const add = (key: string, more: ParamOptions) => options.set(key, { ...options.get(key), ...more });
  for (const ancestor of lineage(target)) {
    for (const [key, source] of mappedProperties(ancestor)) {
      const said = inheritedOptions(source).get(key);
      const isUnruled = ancestor.name.startsWith('Partial') && !validatedProperties(ancestor).includes(key);
      const isMarked = (owner: ClassType): boolean =>
        validationRules(owner)
          .get(key)
          ?.some(({ role }) => role === 'conditional') === true;
      if (isUnruled || (isMarked(ancestor) && !isMarked(source))) add(key, { ...said, required: false });
      else if (said !== undefined) add(key, said);
    }
    for (const [key, own] of propertyOptions(ancestor)) add(key, own);
  }
  return options;
}

/** The source of a mapped class without rules: the class whose name is part of its own. */
function namedSource(target: ClassType): readonly ClassType[] {
  const mapped = MAPPED_NAME.exec(target.name)?.[1];
  if (mapped === undefined || !MAPPED_CLASS.test(Function.prototype.toString.call(target))) return [];
  const named = loadedDtoClasses().filter(({ name }) => mapped.startsWith(name));
  const longest = Math.max(0, ...named.map(({ name }) => name.length));
  const meant = named.filter(({ name }) => name !== '' && name.length === longest);
  return meant.length === 1 ? meant : [];
}

/** The beginning of the constructors of all mapped types. */
const MAPPED_CLASS = /inheritPropertyInitializers\)?\(this\b/;
const MAPPED_NAME = /^(?:Partial|Pick|Omit)(.+)$/;

const NO_PROPERTIES: ReadonlyMap<string, ParamOptions> = new Map();

/** The `@Param` options of this class's own properties, in declaration order. */
function propertyOptions(target: ClassType): ReadonlyMap<string, ParamOptions> {
  return readRecord(target)?.properties ?? NO_PROPERTIES;
}

/** The facts from OpenAPI's `@ApiProperty` on a property. They are documentation: validation rules win. */
interface ApiProperty {
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

/** The properties of this class with `@ApiProperty`, without inherited and response-only properties. */
function apiProperties(target: ClassType): readonly string[] {
  const keys = metadata(PROPERTIES, target.prototype);
  if (!Array.isArray(keys)) return [];
  return keys
    .map((key) => String(key).slice(1))
    .filter((key) => readMetadata(target, key)?.readOnly !== true);
}

/** The facts from `@ApiProperty` on a property of a class or its bases. */
function apiProperty(target: ClassType, key: string): ApiProperty | undefined {
  const said = readMetadata(target, key);
  if (said === undefined) return undefined;
  const { isArray, type } = typeOf(said);
  const keywords = saidKeywords(said);
  const { items: nested } = said;
  const ofItems = isArray && isRecord(nested) ? { ...said, ...nested } : said;
  const isMoved = (name: string): boolean => MOVED_TO_ITEMS.includes(name);
  const { enum: source } = ofItems;
  const listed = Array.isArray(source) || isEnumObject(source) ? enumValues(source).filter(isJsonScalar) : [];
  const values: ValueRules = {
    hint: hintOf(type),
    values: listed.length === 0 ? undefined : listed,
    keywords: isArray ? filterFields(keywords, isMoved) : keywords,
  };
  const array: ValueRules = { hint: 'array', keywords: filterFields(keywords, (name) => !isMoved(name)) };
  const hint = isArray ? 'array' : hintOf(type);
  const { default: initial } = said;
  const isOfType =
    (hint === 'array' && Array.isArray(initial)) ||
    (hint === 'integer' && Number.isInteger(initial)) ||
    hint === undefined ||
    typeof initial === hint;
  return {
    description: textOf(said.description),
    required: flagOf(said.required),
    nullable: flagOf(said.nullable),
    // A documented default may have any type.
    default: isOfType ? initial : undefined,
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

function typeOf(said: Fields): { readonly isArray: boolean; readonly type?: ValueType } {
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

/** Other formats (`int64`, `password`, `binary`) are OpenAPI's own and cannot be checked. */
const FORMATS: ReadonlySet<unknown> = new Set([
  ...['date-time', 'date', 'time', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uri', 'uuid'],
]);

/** On an array, `@nestjs/swagger` applies these to the items. */
const MOVED_TO_ITEMS = ['format', 'maximum', 'maxLength', 'minimum', 'minLength', 'pattern'];

function saidKeywords(said: Fields): JsonSchema {
  const { title, format, pattern, exclusiveMinimum, exclusiveMaximum, uniqueItems, deprecated } = said;
  const bounds = BOUNDS.filter((name) => Number.isFinite(said[name])).map((name) => [name, said[name]]);
  const { minimum, maximum, ...others } = Object.fromEntries(bounds);
  const shown = said.example === undefined ? said.examples : [said.example];
  const examples = isRecord(shown)
    ? Object.values(shown).map((each) => (isRecord(each) && 'value' in each ? each.value : each))
    : shown;
  return withoutUndefined({
    title: textOf(title),
    format: FORMATS.has(format) ? String(format) : undefined,
    pattern: typeof pattern === 'string' && regularExpression(pattern) ? pattern : undefined,
    // OpenAPI 3.0 writes `exclusiveMinimum: true` beside `minimum`; JSON Schema has the number itself.
    [exclusiveMinimum === true ? 'exclusiveMinimum' : 'minimum']: minimum,
    [exclusiveMaximum === true ? 'exclusiveMaximum' : 'maximum']: maximum,
    ...others,
    uniqueItems: uniqueItems === true || undefined,
    deprecated: deprecated === true || undefined,
    examples: Array.isArray(examples) && examples.length > 0 ? examples : undefined,
  });
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function flagOf(value: unknown): boolean | undefined {
  return typeof value === 'boolean' ? value : undefined;
}

function readMetadata(target: ClassType, key: string): Fields | undefined {
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
