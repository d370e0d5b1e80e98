import type { ClassType } from '../contract/class-type.js';
import { lineage } from '../metadata/class-record.js';
import { propertyOptions } from '../metadata/property-options.js';
import { readDescription } from '../metadata/record-description.js';
import { isBundledElsewhere } from '../validators/loaded-copies.js';
import {
  excludesAll,
  isExposed,
  transformedProperties,
  transformRule,
} from '../validators/transform-rules.js';
import { validatedProperties, validationRules } from '../validators/validation-rules.js';
import { apiProperties, apiProperty } from './api-property.js';
import { type DecoratedProperty, describeProperty } from './describe-property.js';
import { describedValue } from './described-type.js';
import { inheritedOptions, mappedProperties } from './mapped-properties.js';
import { mergeOrders } from './merge-orders.js';
import type { PropertyFault } from './type-result.js';
import type { ClassModel, PropertyModel, RemainingRules } from './value-type.js';

/** A class, described; or every property that cannot be. */
export type ClassModelResult =
  | { readonly ok: true; readonly model: ClassModel }
  | { readonly ok: false; readonly faults: readonly PropertyFault[] };

// By reference, never by name: tool inputs are always called `Input` or `Args`.
const models = new WeakMap<ClassType, Map<string, ClassModelResult>>();

/** Names that would reach an object's prototype instead of the object. */
const UNSAFE: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

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
export function classModel(target: ClassType, groups: readonly string[] = []): ClassModelResult {
  const key = JSON.stringify([...new Set(groups)].sort());
  const ofClass = models.get(target) ?? new Map<string, ClassModelResult>();
  const before = ofClass.get(key);
  if (before !== undefined) return before;
  const result = describeClass(target, groups);
  // A class that two files import in a circle may be whole the next time.
  if (result.ok) models.set(target, ofClass.set(key, result));
  return result;
}

function describeClass(target: ClassType, groups: readonly string[]): ClassModelResult {
  const sources = new Map(lineage(target).flatMap((one) => [...mappedProperties(one)]));
  const keys = propertyKeys(target);
  const rules = validationRules(target, groups);
  const rulesOfAnyGroup = groups.length > 0 ? validationRules(target) : rules;
  const options = inheritedOptions(target);
  const described = keys.map((key) => ({
    key,
    result: describeProperty({
      key,
      options: options.get(key),
      rules: rules.get(key),
      rulesOfAnyGroup: rulesOfAnyGroup.get(key),
      transform: transformRule(target, key),
      designType: designType(target, key) ?? designType(sources.get(key) ?? target, key),
      groups: groups.length > 0 ? groups : undefined,
      described: describedProperty(target, key),
      api: apiProperty(target, key) ?? apiProperty(sources.get(key) ?? target, key),
    }),
  }));
  const faults = described.flatMap(({ key, result }) => (result.ok ? [] : [faultOf(target, key, result)]));
  if (keys.length === 0) faults.push(emptyClass(target));
  if (rules.size > 0 && isBundledElsewhere()) faults.push(unseenDecorators(target));
  if (faults.length > 0) return { ok: false, faults };
  const properties = described.flatMap(({ result }) => (result.ok ? [result.property] : []));
  const remaining = described.flatMap(({ result }) => (result.ok ? [result.remaining] : []));
  const disagreements = described.flatMap(({ key, result }) =>
    result.ok && result.disagreement ? [`property ${target.name}.${key}: ${result.disagreement}`] : [],
  );
  const model = { class: target, properties: unique(properties), remaining: sum(remaining) };
  return { ok: true, model: disagreements.length > 0 ? { ...model, disagreements } : model };
}

function sum(remaining: readonly RemainingRules[]): RemainingRules {
  if (remaining.includes('all')) return 'all';
  const rules = remaining.flatMap((one) => (typeof one === 'string' ? [] : one));
  return rules.length === 0 ? 'none' : rules;
}

/** The properties that a decorator stands on and that arguments may set. */
function propertyKeys(target: ClassType): readonly string[] {
  const ofClasses = lineage(target).flatMap((one) =>
    mergeOrders([
      Object.keys(readDescription(one)?.properties ?? {}),
      apiProperties(one),
      validatedProperties(one),
      transformedProperties(one),
      [...propertyOptions(one).keys()],
      [...mappedProperties(one).keys()],
    ]),
  );
  const isOpen = !excludesAll(target);
  return [...new Set(ofClasses)].filter(
    (key) =>
      typeof key === 'string' &&
      !UNSAFE.has(key) &&
      !transformRule(target, key)?.withheld &&
      (isOpen || isExposed(target, key)),
  );
}

/** What the generated file says of a property, in the class or the nearest base that it describes. */
function describedProperty(target: ClassType, key: string): DecoratedProperty['described'] {
  for (const one of [...lineage(target)].reverse()) {
    const { properties = {}, $defs } = readDescription(one) ?? {};
    const property = Object.hasOwn(properties, key) ? properties[key] : undefined;
    if (property === undefined) continue;
    return { ...describedValue(property.schema, $defs), optional: property.optional ?? false };
  }
  return undefined;
}

/** `design:type`; nothing where nobody loaded reflect-metadata or the build tool emits none. */
function designType(target: ClassType, key: string): unknown {
  const reflect = Reflect as { getMetadata?(name: string, of: object, key: string): unknown };
  return reflect.getMetadata?.('design:type', target.prototype, key);
}

/** Two properties of one name in JSON: the later declaration stands. */
function unique(properties: readonly PropertyModel[]): readonly PropertyModel[] {
  return [...new Map(properties.map((property) => [property.name, property])).values()];
}

function faultOf(target: ClassType, key: string, fault: Omit<PropertyFault, 'property'>): PropertyFault {
  const { causes, fix } = fault;
  return { property: key, problem: `property ${target.name}.${key}: ${fault.problem}`, causes, fix };
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
