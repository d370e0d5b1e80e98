import type { ClassType, DescribedSchema, ParamOptions } from '../../core/contract/declaration.js';
import type { JsonSchema } from '../../core/contract/json-schema.js';
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
import { type ApiProperty, apiProperties, apiProperty, withApiProperty } from './api-property.js';
import { applicableKeywords, misplacedFault } from './applicable-keywords.js';
import {
  isStandardRule,
  type PropertyRules,
  propertyRules,
  type TypeHint,
  type ValueRules,
} from './class-validator-rules.js';
import { fromGenerated } from './from-generated.js';
import { constraintKeywords, orderedKeywords, paramOptionFault, typeFromOptions } from './from-parameter.js';
import { allSchemas, mergeKeywords } from './keywords.js';
import {
  designToken,
  emptyReference,
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
import type {
  ClassModel,
  PropertyModel,
  RemainingRules,
  ScalarName,
  ValueModel,
  ValueType,
} from './value-type.js';

/** What decorators and metadata say of one property of a class. */
interface DecoratedProperty {
  readonly key: string;
  readonly options?: ParamOptions;
  /** Its class-validator rules in the groups asked for; nothing where it never had any. */
  readonly rules?: readonly ValidationRule[];
  /** Its rules in any group, which may tell its type where nothing else does. */
  readonly rulesOfAnyGroup?: readonly ValidationRule[];
  readonly transform?: TransformRule;
  readonly designType: unknown;
  readonly groups?: readonly string[];
  /** What the generated file says of it. */
  readonly generated?: ValueModel & { readonly optional: boolean };
  /** What `@ApiProperty` says of it. */
  readonly api?: ApiProperty;
}

/** A property, or why nothing can be said of it. */
type PropertyResult =
  | {
      readonly ok: true;
      readonly property: PropertyModel;
      readonly remaining: RemainingRules;
      /** What the types say, and what the rules do. */
      readonly disagreement?: string;
    }
  | TypeFault;

/** The model of one property of a DTO class. */
function fromProperty(decorated: DecoratedProperty): PropertyResult {
  const { key, options = {}, transform, groups, generated, api } = decorated;
  const wrong = paramOptionFault(options);
  if (wrong !== undefined) return wrong;
  const designType = (generated && designToken(generated.type)) ?? decorated.designType;
  const eachIsOwn = !isCollection(designType);
  const rules = propertyRules(decorated.rules ?? [], eachIsOwn);
  const said = withApiProperty(rules, api, designType);
  const facts = { options, rules: said, transform, designType, groups, generated, apiType: api?.type };
  const applicable = propertyType(facts);
  const result = applicable.ok
    ? applicable
    : propertyType({ ...facts, rules: propertyRules(decorated.rulesOfAnyGroup ?? [], eachIsOwn) });
  if (!result.ok) return result;
  const misplaced = misplacedFault(result.type, options);
  if (misplaced !== undefined) return misplaced;
  const name = options.name ?? transform?.name ?? key;
  const transforms = transform?.transforms ?? [];
  return {
    ok: true,
    disagreement: disagreementOf(decorated, rules, result.type),
    remaining:
      rules.needsValidator || mayDiffer(decorated, rules, result.type) ? 'all' : remainingOf(key, rules),
    property: {
      name,
      ...(name === key ? {} : { key }),
      type: withItemKeywords(result.type, said),
      required: isRequired(decorated, rules),
      nullable: options.nullable ?? isNullable(decorated, rules),
      keywords: keywordsOf(result.type, decorated, said),
      ...(transforms.length > 0 ? { transforms } : {}),
      ...(transformsFirst(decorated, result.type)
        ? { transformedFirst: transform?.isExposed ? 'always' : 'sent' }
        : {}),
      ...(rules.isNested ? { cascades: true } : {}),
    },
  };
}

function remainingOf(key: string, { inexact, isOptional }: PropertyRules): RemainingRules {
  if (inexact.length === 0) return 'none';
  return inexact.map(({ rule, meaning: { enough } }) => (instance) => {
    const value = (instance as Readonly<Record<string, unknown>>)[key];
    if ((value === undefined || value === null) && isOptional) return true;
    return (typeof value === 'string' && enough?.test(value)) || rule.passes(value, instance);
  });
}

/** The rules were written for another type than the schema has, or for the value after a `@Transform`. */
function mayDiffer(decorated: DecoratedProperty, rules: PropertyRules, type: ValueType): boolean {
  if ((decorated.rules ?? []).length === 0) return false;
  if (isTransformed(decorated) || namesType(decorated.options ?? {})) return true;
  return rules.own.hint !== undefined && !fitsHint(type, rules.own.hint);
}

/** Only if the type came from the generated file: otherwise there is no second source to compare. */
function disagreementOf(
  decorated: DecoratedProperty,
  { own: { hint } }: PropertyRules,
  type: ValueType,
): string | undefined {
  const { options = {}, generated } = decorated;
  if (generated === undefined || hint === undefined || namesType(options)) return undefined;
  if (isTransformed(decorated) || type.kind === 'any' || fitsHint(type, hint)) return undefined;
  return `its type is ${typeName(type)}, and its class-validator rules are for ${hint}`;
}

function typeName(type: ValueType): string {
  if (type.kind === 'scalar') return type.name;
  return type.kind === 'class' ? type.class.name : type.kind;
}

function namesType({ schema, type, items, enum: values, additionalProperties }: ParamOptions): boolean {
  return [schema, type, items, values, additionalProperties].some((said) => said !== undefined);
}

function isTransformed({ transform }: DecoratedProperty): boolean {
  return (transform?.transforms ?? []).length > 0;
}

/**
 * Whether the type is that of the value after a `@Transform`. What `@Type` makes an instance of is checked before, as
 * is what `@Param` gives another type than the property has: then it says what is sent.
 */
function transformsFirst(decorated: DecoratedProperty, type: ValueType): boolean {
  const { options = {}, transform, designType } = decorated;
  if (!isTransformed(decorated) || transform?.type !== undefined || !isPlain(type)) return false;
  if (!namesType(options) || options.enum !== undefined) return true;
  const designed = designType === Array ? 'array' : kindOf(resolveDesignType(designType));
  return designed === kindOf({ ok: true, type });
}

/** Whether its values are the same in JSON and for the tool, or are written in JSON as one text. */
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

/** What only documents that `null` is a value does not say so to rules that refuse it. */
function isNullable({ generated, api, rules: all = [] }: DecoratedProperty, rules: PropertyRules): boolean {
  if (rules.isConditional || generated?.nullable === true) return true;
  return api?.nullable === true && (rules.isOptional || all.length === 0);
}

/** Rules make a property required unless all of them accept its absence; so does having no rules at all. */
function isRequired(decorated: DecoratedProperty, rules: PropertyRules): boolean {
  const { options, rules: all, generated, api } = decorated;
  if (options?.required !== undefined) return options.required;
  if (options?.default !== undefined || rules.isOptional || rules.isConditional) return false;
  // Rules validate the instance, and that has its initialiser's value where nothing was sent.
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
  const initial = options?.schema === undefined ? (api?.default ?? generated?.keywords.default) : undefined;
  return initial !== undefined && acceptsInitial(initial, all, rules) ? initial : undefined;
}

const NO_KEYWORDS: JsonSchema = {};

/** An explicit schema is complete; otherwise what `@Param` says wins over the rules, keyword by keyword. */
function keywordsOf(type: ValueType, decorated: DecoratedProperty, rules: PropertyRules): JsonSchema {
  const { options = {}, generated, api } = decorated;
  const isExplicit = options.schema !== undefined;
  const fromRules = isExplicit ? NO_KEYWORDS : applicableKeywords(type, rules.own.keywords);
  const { description, default: _, ...known } = (!isExplicit && generated?.keywords) || NO_KEYWORDS;
  // An initialiser's value is what a `@Transform` leads to: filled in before, it would go through it.
  const fallback = isTransformed(decorated) ? undefined : initialOf(decorated, rules);
  const constraints = constraintKeywords(options, mergeKeywords(known, fromRules));
  return orderedKeywords({
    description: options.description ?? api?.description ?? description,
    constraints,
    defaultValue: options.default ?? fallback,
  });
}

function withItemKeywords(type: ValueType, rules: PropertyRules): ValueType {
  if (type.kind !== 'array') return type;
  const keywords = applicableKeywords(type.items, rules.items.keywords);
  return Object.keys(keywords).length === 0 ? type : { ...type, keywords };
}

/** All that is known of one property of a DTO class. */
interface PropertyFacts {
  readonly options: ParamOptions;
  readonly rules: PropertyRules;
  readonly transform?: TransformRule;
  readonly designType: unknown;
  readonly groups?: readonly string[];
  /** What the generated file says of it. */
  readonly generated?: ValueModel;
  /** What `@ApiProperty` names beyond what can be said in rules: a class. */
  readonly apiType?: ValueType;
}

/**
 * The type of a DTO's property from, in this order: `@Param`, the generated file, class-transformer's `@Type`,
 * class-validator's rules, `@ApiProperty`, and decorator metadata. Only a union of classes needs `@Type` before
 * the generated file: it says by which tag instances are made.
 */
function propertyType(facts: PropertyFacts): TypeResult {
  const { options, designType, groups } = facts;
  const named = typeFromOptions(options, { designType, groups });
  if (named !== undefined) return named;
  if (facts.generated && !facts.transform?.type?.discriminator) {
    return knownType(narrowed(facts.generated.type, facts.rules));
  }
  switch (collectionOf(facts)) {
    case 'array':
      return mapType(itemType(facts), (items) => ({ kind: 'array', items }));
    case 'set':
      return mapType(itemType(facts), (items) => ({ kind: 'array', items, collection: 'set' }));
    case 'map':
      return mapType(itemType(facts), (values) => ({ kind: 'record', values, collection: 'map' }));
    default:
      return singleType(facts);
  }
}

/** Whether `each: true` is about items: on a scalar class-validator validates the value itself. */
function isCollection(designType: unknown): boolean {
  return COLLECTIONS.includes(designType);
}

const COLLECTIONS: readonly unknown[] = [Array, Set, Map, Object, undefined];

/** Rules may allow less than the type: whole numbers, some of the texts. */
function narrowed(type: ValueType, rules: PropertyRules): ValueType {
  if (type.kind === 'array') return { ...type, items: narrowedBy(type.items, rules.items) };
  return narrowedBy(type, rules.own);
}

function narrowedBy(type: ValueType, { values, hint }: ValueRules): ValueType {
  if (type.kind !== 'scalar') return type;
  if (values?.every((value) => typeof value === type.name)) return { kind: 'enum', values };
  return type.name === 'number' && hint === 'integer' ? { kind: 'scalar', name: 'integer' } : type;
}

function collectionOf({ designType, transform, rules }: PropertyFacts): 'array' | 'set' | 'map' | undefined {
  const declared = isCollection(designType) ? (designType ?? transform?.type?.reflected) : designType;
  if (declared === Set) return 'set';
  if (declared === Map) return 'map';
  return declared === Array || rules.hasItems || rules.own.hint === 'array' ? 'array' : undefined;
}

function itemType({ transform, rules, designType, groups, apiType }: PropertyFacts): TypeResult {
  if (transform?.type) return fromTypeRule(transform.type, rules.items, groups);
  return fromRules(rules.items) ?? (apiType ? knownType(apiType) : unknownType(designType ?? Array));
}

function singleType({ transform, rules, designType, groups, apiType }: PropertyFacts): TypeResult {
  if (transform?.type) return fromTypeRule(transform.type, rules.own, groups);
  if (isEnumObject(designType) && rules.own.values === undefined) return resolveTypeReference(designType);
  const design = resolveDesignType(designType, groups);
  if (design.ok && rules.own.values === undefined) return knownType(refine(design.type, rules.own.hint));
  return fromRules(rules.own) ?? (apiType ? knownType(apiType) : design);
}

/** What rules alone tell: the values they allow, or the one kind of value that they accept. */
function fromRules({ values, hint, keywords }: ValueRules): TypeResult | undefined {
  if (values !== undefined) return knownType({ kind: 'enum', values });
  const type = hint === undefined ? typeOfConst(keywords.const) : typeOfHint(hint);
  return type && knownType(type);
}

function typeOfHint(hint: TypeHint): ValueType | undefined {
  if (hint === 'date') return { kind: 'date' };
  if (hint === 'object') return { kind: 'schema', schema: { type: 'object' } };
  return hint === 'array' ? undefined : { kind: 'scalar', name: hint };
}

function typeOfConst(value: unknown): ValueType | undefined {
  const name = (['string', 'number', 'boolean'] as readonly ScalarName[]).find(
    (scalar) => scalar === typeof value,
  );
  return name && { kind: 'scalar', name };
}

/** A rule is narrower than the metadata (`@IsInt` on `number`) or knows better (`@IsDateString` on `Date`). */
function refine(type: ValueType, hint: TypeHint | undefined): ValueType {
  if (hint === undefined || fitsHint(type, hint)) return type;
  return typeOfHint(hint) ?? type;
}

/** Whether every value of a type is of the kind that a rule accepts. */
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
  const type = resolved(rule, groups);
  if (!type.ok || type.type.kind !== 'scalar') return type;
  return rules.values === undefined
    ? knownType(refine(type.type, rules.hint))
    : knownType({ kind: 'enum', values: rules.values });
}

function resolved(rule: TypeRule, groups: readonly string[] | undefined): TypeResult {
  let reference: unknown;
  try {
    reference = rule.resolve();
  } catch (error) {
    return emptyReference(error);
  }
  return resolveTypeReference(reference as ClassType, groups);
}

/**
 * Whether the rules accept the value of a property's initialiser. `@Length(2, 5) name = ''` means that a name
 * must be sent. Rules that are not class-validator's own are asked when the tool is called.
 */
function acceptsInitial(
  value: unknown,
  all: readonly ValidationRule[],
  { isOptional, isConditional }: PropertyRules,
): boolean {
  if (isConditional || (value === null && isOptional)) return true;
  return all.every((rule) => {
    if (rule.role === 'defined') return value !== null;
    // class-validator refuses plain objects, and finds nothing in an empty list.
    if (rule.role === 'nested') return Array.isArray(value) && value.length === 0;
    return !isStandardRule(rule) || rule.passes(value, {});
  });
}

/** What is known of a class, or every property of which nothing can be said. */
type ClassModelResult =
  | { readonly ok: true; readonly model: ClassModel }
  | { readonly ok: false; readonly faults: readonly PropertyFault[] };

// By reference, never by name: tool inputs are always called `Input` or `Args`.
const models = new WeakMap<ClassType, Map<string, ClassModelResult>>();

/** Names that would reach an object's prototype instead of the object. */
const UNSAFE: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

const NO_GROUPS: readonly string[] = [];

/**
 * What is known of a DTO class, from class-validator, class-transformer, `@Param`, the generated file and
 * decorator metadata of the class and its bases; properties of bases first. The class is never instantiated. The same class and
 * groups give the same model object.
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
  // A class that two files import in a circle may be whole the next time.
  if (result.ok) models.set(target, ofClass.set(key, result));
  return result;
}

function buildModel(target: ClassType, groups: readonly string[]): ClassModelResult {
  const rules = validationRules(target, groups);
  const properties = new Map<string, PropertyModel>();
  const remaining: RemainingRules[] = [];
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
    // Two properties of one name in JSON: the later declaration stands.
    properties.set(result.property.name, result.property);
    remaining.push(result.remaining);
    if (result.disagreement !== undefined) disagreements.push(`${where}: ${result.disagreement}`);
  }
  if (decorated.length === 0) faults.push(emptyClass(target));
  if (rules.size > 0 && isOutOfReach()) faults.push(unseenDecorators(target));
  if (faults.length > 0) return { ok: false, faults };
  const model = { class: target, properties: [...properties.values()], remaining: sum(remaining) };
  return { ok: true, model: disagreements.length > 0 ? { ...model, disagreements } : model };
}

function sum(remaining: readonly RemainingRules[]): RemainingRules {
  if (remaining.includes('all')) return 'all';
  const rules = remaining.flatMap((ofProperty) => (typeof ofProperty === 'string' ? [] : ofProperty));
  return rules.length === 0 ? 'none' : rules;
}

/** What is known of the properties that a decorator stands on and that arguments may set. */
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
    mergeOrders([
      Object.keys(readDescription(ancestor)?.properties ?? {}),
      apiProperties(ancestor),
      validatedProperties(ancestor),
      transforms.ownProperties(ancestor),
      [...propertyOptions(ancestor).keys()],
      [...(mapped[index]?.keys() ?? [])],
    ]),
  );
  const options = inheritedOptions(ancestors, mapped);
  const rulesOfAnyGroup = groups.length > 0 ? validationRules(target) : rules;
  const isSettable = (key: unknown): key is string =>
    typeof key === 'string' && !UNSAFE.has(key) && !transforms.withholds(key);
  return [...new Set(keys)].filter(isSettable).map((key) => {
    const source = sources.get(key) ?? target;
    return {
      key,
      options: options.get(key),
      rules: rules.get(key),
      rulesOfAnyGroup: rulesOfAnyGroup.get(key),
      transform: transforms.ruleOf(key),
      designType: designType(target, key) ?? (source === target ? undefined : designType(source, key)),
      groups: groups.length > 0 ? groups : undefined,
      generated: generatedProperty(target, key),
      api: apiProperty(target, key) ?? (source === target ? undefined : apiProperty(source, key)),
    };
  });
}

/** What the generated file says of a property, in the class or the nearest base that it describes. */
function generatedProperty(target: ClassType, key: string): DecoratedProperty['generated'] {
  return nearest(target, (ancestor) => {
    const { properties, $defs } = readDescription(ancestor) ?? {};
    if (properties === undefined || !Object.hasOwn(properties, key)) return undefined;
    const property = properties[key];
    return property && { ...fromGenerated(property.schema, $defs), optional: property.optional ?? false };
  });
}

/** `design:type`; `undefined` if reflect-metadata is not loaded or the build tool emits none. */
function designType(target: ClassType, key: string): unknown {
  const reflect = Reflect as { getMetadata?(name: string, of: object, key: string): unknown };
  return reflect.getMetadata?.('design:type', target.prototype, key);
}

function emptyClass(target: ClassType): PropertyFault {
  return {
    property: '',
    problem: `nothing is known of the properties of class ${target.name}`,
    causes: [
      'no property of the class has a decorator',
      'its decorators come from a second copy of class-validator or class-transformer',
      'it is a mapped type (PartialType, PickType, …) of a class with nothing but @Param: mapped types keep only properties with a decorator of class-validator, of class-transformer or @ApiProperty',
    ],
    fix: '@Param, or a decorator of class-validator, on every property of the class',
  };
}

function unseenDecorators(target: ClassType): PropertyFault {
  return {
    property: '',
    problem: `the class-validator that class ${target.name} was declared with is in a bundle, where it cannot be reached`,
    causes: [],
    fix: isBundled()
      ? "import 'toolwright/dto' before the class, so that the bundle provides it"
      : 'class-validator, class-transformer and toolwright in the bundle, or all of them external',
  };
}

/**
 * One order out of several that each keep the order of declaration but know only some of the names: each
 * decorator package has its own list of the properties that it stands on. A name goes before the next one
 * that both lists know, otherwise to the end.
 */
function mergeOrders(orders: readonly (readonly string[])[]): readonly string[] {
  return orders.reduce<readonly string[]>(mergeTwo, []);
}

function mergeTwo(known: readonly string[], added: readonly string[]): readonly string[] {
  if (added.length === 0) return known;
  if (known.length === 0) return [...new Set(added)];
  const merged = [...known];
  added.forEach((name, index) => {
    if (merged.includes(name)) return;
    const next = added.slice(index + 1).find((later) => known.includes(later));
    merged.splice(next === undefined ? merged.length : merged.indexOf(next), 0, name);
  });
  return merged;
}

/**
 * The properties of a class that a mapped type made (`PartialType`, `PickType`, …), with the class that each was
 * taken from. Such a class extends nothing and knows nothing of `@Param`; but class-validator's rules are copied to
 * it, and by them the class is found that they were written for; where there are none, by its name.
 */
function mappedProperties(target: ClassType): ReadonlyMap<string, ClassType> {
  const copied = copiedProperties(target);
  const named = namedSource(target);
  if (copied.size === 0 && named.length === 0) return copied;
  const sources = new Map(copied);
  for (const source of new Set([...copied.values(), ...named])) {
    const known = [...validatedProperties(target), ...apiProperties(target)];
    const kept = takesAll(target, source) ? undefined : known;
    for (const key of decoratedKeys(source))
      if (!sources.has(key) && kept?.includes(key) !== false) sources.set(key, source);
  }
  return sources;
}

/** What `@Param` says of the properties of a class; a subclass that decorates one again says only what is different. */
function inheritedOptions(
  ancestors: readonly ClassType[],
  mapped: readonly ReadonlyMap<string, ClassType>[] = ancestors.map(mappedProperties),
): ReadonlyMap<string, ParamOptions> {
  const options = new Map<string, ParamOptions>();
  const add = (key: string, more: ParamOptions) => options.set(key, { ...options.get(key), ...more });
  for (const [index, ancestor] of ancestors.entries()) {
    for (const [key, source] of mapped[index] ?? []) {
      const said = inheritedOptions(lineage(source)).get(key);
      if (isMadeOptional(ancestor, { key, source })) add(key, { ...said, required: false });
      else if (said !== undefined) add(key, said);
    }
    for (const [key, own] of propertyOptions(ancestor)) add(key, own);
  }
  return options;
}

/** The properties of a class and its bases on which decorators stand that mapped types know nothing of. */
function decoratedKeys(source: ClassType): readonly string[] {
  return lineage(source).flatMap((ancestor) => [
    ...propertyOptions(ancestor).keys(),
    ...apiProperties(ancestor),
  ]);
}

/** What a class was made from that has no rules to tell it: the one whose name stands in its own. */
function namedSource(target: ClassType): readonly ClassType[] {
  const mapped = MAPPED_NAME.exec(target.name)?.[1];
  if (mapped === undefined || !MAPPED_CLASS.test(Function.prototype.toString.call(target))) return [];
  const named = loadedDtoClasses().filter(({ name }) => mapped.startsWith(name));
  const longest = Math.max(0, ...named.map(({ name }) => name.length));
  const meant = named.filter(({ name }) => name !== '' && name.length === longest);
  return meant.length === 1 ? meant : [];
}

/** What the constructors of all mapped types begin with. */
const MAPPED_CLASS = /inheritPropertyInitializers\)?\(this\b/;
const MAPPED_NAME = /^(?:Partial|Pick|Omit)(.+)$/;

/** The name says whether a mapped type took every property, also those that no rule stands on. */
function takesAll({ name }: ClassType, source: ClassType): boolean {
  return name === `Partial${source.name}` || (name.startsWith('Intersection') && name.includes(source.name));
}

function isMadeOptional(
  target: ClassType,
  { key, source }: { readonly key: string; readonly source: ClassType },
): boolean {
  const isMarked = (owner: ClassType): boolean =>
    (validationRules(owner).get(key) ?? []).some(({ role }) => role === 'conditional');
  const isUnruled = !validatedProperties(target).includes(key) && target.name.startsWith('Partial');
  return isUnruled || (isMarked(target) && !isMarked(source));
}

const NONE: ReadonlyMap<string, ParamOptions> = new Map();

/** What `@Param` said about properties of a DTO class, in declaration order; that very class only. */
function propertyOptions(target: ClassType): ReadonlyMap<string, ParamOptions> {
  return readRecord(target)?.properties ?? NONE;
}
