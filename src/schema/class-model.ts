import type { ClassType, ParamOptions } from '../contract/declaration.js';
import { lineage, loadedDtoClasses, nearest, readDescription, readRecord } from '../metadata/class-record.js';
import { classTransforms } from '../validators/transform-rules.js';
import {
  copiedProperties,
  isBundledElsewhere,
  type ValidationRule,
  validatedProperties,
  validationRules,
} from '../validators/validation-rules.js';
import { apiProperties, apiProperty } from './api-property.js';
import { fromGenerated } from './from-generated.js';
import { type DecoratedProperty, fromProperty } from './from-property.js';
import type { PropertyFault } from './type-reference.js';
import type { ClassModel, PropertyModel, RemainingRules } from './value-type.js';

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
  if (rules.size > 0 && isBundledElsewhere()) faults.push(unseenDecorators(target));
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

/** `design:type`; nothing where nobody loaded reflect-metadata or the build tool emits none. */
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
    problem: `what class-transformer's decorators say of class ${target.name}, @Exclude for one, cannot be seen: class-validator was bundled with it, and toolwright was not`,
    causes: [],
    fix: 'all three in the bundle, or all of them external',
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
