import type { ClassType, DescribedSchema } from '../../../core/contract/declaration.js';
import type { JsonObject, JsonSchema } from '../../../core/contract/json-schema.js';
import type { Hydrate, Hydrated, ReviewFault } from '../../../core/contract/tool.js';
import { childPath, isRecord, setOwn } from '../../../core/kernel/json.js';
import { classModel } from '../../schema/class-model.js';
import { fromGenerated, referredDefinition } from '../../schema/from-generated.js';
import { isSchemaNode, subschemas } from '../../schema/keywords.js';
import type {
  ArgumentsModel,
  DescribedType,
  PropertyModel,
  TaggedType,
  ValueType,
} from '../../schema/value-type.js';
import { typeSchema } from '../../schema/write-schema.js';
import { validateInstance } from '../../validators/validation-rules.js';
import { levelOf } from '../schema-level.js';
import { type SchemaTest, schemaTest } from '../schema-test.js';
import {
  ChildPlace,
  type Holder,
  type HydrateValue,
  type Hydration,
  hydrateClass,
  hydrateItems,
  hydrateMap,
  hydrateSet,
  hydrateValues,
  type Place,
  TEXTUAL,
  type Validation,
} from './hydrate-class.js';
import { hydrateStandard } from './standard-hydrator.js';

/**
 * Creates the function that converts arguments that match the schema to the tool's types: DTO instances, dates, URLs,
 * bytes, parsed values. Returns `undefined` if there is nothing to convert, so that most calls cost nothing.
 *
 * The function returns synchronously, unless it needs class-validator or an asynchronous schema. It throws only
 * errors of the author's code: constructors, `@Transform`, custom validators.
 *
 * @example
 * ```ts
 * const hydrate = createHydrator({ class: CreateOrderDto });
 * const hydrated = await hydrate?.({ sku: 'A-1', due: '2030-01-01T00:00:00Z' });
 * // { ok: true, value: CreateOrderDto { sku: 'A-1', due: Date } }
 * ```
 */
export function createHydrator(source: ArgumentsModel, accepts?: JsonSchema): Hydrate | undefined {
  const hydrateValue = hydratorFor(source);
  if (hydrateValue === undefined) return undefined;
  const hydrate = (args: JsonObject, isTransformed = false): Hydrated | Promise<Hydrated> => {
    const whole = new WholePlace(isTransformed);
    whole.put(hydrateValue(args, whole));
    const { pending, faults } = whole.hydration;
    return pending.length === 0 && (faults.length > 0 || !needsValidator(whole.hydration))
      ? hydrated(whole, args)
      : settle(whole.hydration).then(() => hydrated(whole, args));
  };
  return Object.assign(hydrate, { accepts, review: (args: JsonObject) => review(hydrateValue, args) });
}

/** The place of the arguments as a whole. */
class WholePlace implements Place {
  readonly hydration: Hydration;
  readonly path = '';
  value: unknown;

  constructor(isTransformed: boolean) {
    this.hydration = { faults: [], pending: [], validations: [], doubtful: [], isTransformed };
  }

  put(value: unknown): void {
    this.value = value;
  }
}

function hydrated({ hydration: { faults, changed }, value }: WholePlace, args: JsonObject): Hydrated {
  if (faults.length > 0) return { ok: false, faults };
  return changed === undefined
    ? { ok: true, value }
    : { ok: true, value, transformed: withChanges(args, changed) as JsonObject };
}

/** A copy of JSON in which the transformed properties replace the originals. */
function withChanges(value: unknown, changed: ReadonlyMap<object, JsonObject>): unknown {
  if (Array.isArray(value)) return value.map((item) => withChanges(item, changed));
  if (!isRecord(value)) return value;
  const copy: JsonObject = {};
  for (const [name, member] of Object.entries({ ...value, ...changed.get(value) }))
    if (member !== undefined) setOwn(copy, name, withChanges(member, changed));
  return copy;
}

/** If a value cannot be hydrated, its rules are skipped: the schema has already reported its faults. */
async function review(hydrate: HydrateValue, args: JsonObject): Promise<readonly ReviewFault[]> {
  const hydration: Hydration = { faults: [], pending: [], validations: [], doubtful: [], isReview: true };
  try {
    hydrate(args, { hydration, path: '', put: () => {} });
    await Promise.all(hydration.pending);
    const own = hydration.faults.map((fault) => ({ ...fault, isAuthored: false }));
    return [...own, ...(await runValidations(hydration.validations))];
  } catch {
    return [];
  }
}

function needsValidator({ validations, doubtful }: Hydration): boolean {
  if (validations.length === 0) return false;
  return doubtful.length > 0 || validations.some(({ isCertain }) => isCertain);
}

function hydratorFor(source: ArgumentsModel): HydrateValue | undefined {
  if ('properties' in source) return hydrateProperties(source.properties);
  if ('class' in source) return hydratorOf({ kind: 'class', class: source.class, groups: source.groups });
  return hydratorOf(source.type);
}

/** Faults of values come first: validating an incomplete instance would only report their consequences. */
async function settle(hydration: Hydration): Promise<void> {
  await Promise.all(hydration.pending);
  if (hydration.faults.length > 0 || !needsValidator(hydration)) return;
  for (const { path, message } of await runValidations(hydration.validations))
    hydration.faults.push({ path, message });
}

/** Hydrates the properties that need it; the others do not change. */
function hydrateProperties(properties: readonly PropertyModel[]): HydrateValue | undefined {
  const steps = properties.flatMap(({ name, type }) => {
    const hydrate = hydratorOf(type);
    return hydrate === undefined ? [] : [{ name, hydrate }];
  });
  if (steps.length === 0) return undefined;
  return (args, { hydration, path }: Place) => {
    const hydrated: JsonObject = { ...(args as JsonObject) };
    for (const { name, hydrate } of steps) {
      if (!Object.hasOwn(hydrated, name)) continue;
      const put = (later: unknown) => {
        hydrated[name] = later;
      };
      put(hydrate(hydrated[name], { hydration, path: childPath(path, name), put }));
    }
    return hydrated;
  };
}

/**
 * The hydrator of a type; `undefined` if the JSON value is already the tool's value. `cascaded`: class-validator
 * reaches the value from the object around it.
 */
function hydratorOf(type: ValueType, cascaded = false): HydrateValue | undefined {
  // A Standard Schema treats `null` itself; for other types, the schema has already accepted it as a value.
  if (type.kind === 'schema') return type.standard && hydrateStandard(type.standard);
  const hydrate = hydratorOfValue(type, cascaded);
  return hydrate && ((value, place) => (value === null ? null : hydrate(value, place)));
}

function hydratorOfValue(type: ValueType, cascaded: boolean): HydrateValue | undefined {
  switch (type.kind) {
    case 'date':
    case 'url':
    case 'bytes':
    case 'buffer':
    case 'bigint':
      return TEXTUAL[type.kind];
    case 'array': {
      const item = hydratorOf(type.items, cascaded);
      const array = item && hydrateItems(item);
      return type.collection === 'set' ? hydrateSet(array) : array;
    }
    case 'record': {
      // class-validator does not visit the values of plain objects, but it visits those of a Map.
      const value = hydratorOf(type.values, cascaded && type.collection === 'map');
      const record = value && hydrateValues(value);
      return type.collection === 'map' ? hydrateMap(record, type.keys) : record;
    }
    case 'class':
      return hydrateClass(type, cascaded, hydratorOf);
    case 'described':
      return hydrateDescribed(type);
    case 'tagged':
      return hydrateTagged(type, cascaded);
    default:
      return undefined;
  }
}

/** Runs class-validator on the instances. Paths use the JSON names of the properties. */
async function runValidations(validations: readonly Validation[]): Promise<readonly ReviewFault[]> {
  const faults = await Promise.all(
    validations.map(async ({ instance, path, groups, isCertain }) => {
      const nameOf = (owner: object, key: string) => jsonName({ owner, key, groups });
      try {
        return await validateInstance(instance, { path, groups, nameOf });
      } catch (error) {
        // If all rules are class-validator's own, the value made them throw.
        if (isCertain) throw error;
        return [{ path, message: 'has a value that its rules cannot check', isAuthored: false }];
      }
    }),
  );
  return faults.flat();
}

interface Named {
  readonly owner: object;
  readonly key: string;
  readonly groups?: readonly string[];
}

function jsonName({ owner, key, groups }: Named): string {
  // Items and values of collections keep their index or key.
  if (Array.isArray(owner) || owner instanceof Map || owner instanceof Set) return key;
  const read = classModel(owner.constructor as ClassType, groups);
  const property = read.ok
    ? read.model.properties.find((candidate) => (candidate.key ?? candidate.name) === key)
    : undefined;
  return property?.name ?? key;
}

/** The hydrator of a described type; `undefined` if it contains no dates, classes or similar types. */
function hydrateDescribed(described: DescribedType): HydrateValue | undefined {
  const { schema, definitions } = described;
  if (!holdsInstances(schema, definitions, new Set())) return undefined;
  if (schema.$ref !== undefined) return hydrateReferred(schema.$ref, definitions);
  const partOf: HydratorOfPart = (part) =>
    isSchemaNode(part) ? hydratorOf(fromGenerated(part, definitions).type) : undefined;
  if (schema.anyOf !== undefined) return hydrateUnion(schema.anyOf, definitions);
  if (schema.items !== undefined || schema.prefixItems !== undefined) return hydrateTuple(schema, partOf);
  return hydrateObject(schema, partOf);
}

/** Whether any part of a schema needs hydration; otherwise the values stay unchanged without cost. */
function holdsInstances(
  schema: DescribedSchema,
  definitions: DescribedType['definitions'],
  seen: Set<DescribedSchema>,
): boolean {
  if (seen.has(schema)) return false;
  seen.add(schema);
  if (schema.instanceOf !== undefined) return true;
  const referred = schema.$ref === undefined ? undefined : referredDefinition(schema.$ref, definitions);
  if (referred !== undefined && holdsInstances(referred.schema, definitions, seen)) return true;
  return subschemas(schema).some((part) => holdsInstances(part, definitions, seen));
}

/** By definition. The entry exists before its hydrator, because a definition may contain itself. */
const referredHydrators = new WeakMap<DescribedSchema, { hydrate?: HydrateValue }>();

function hydrateReferred(
  reference: string,
  definitions: DescribedType['definitions'],
): HydrateValue | undefined {
  const referred = referredDefinition(reference, definitions);
  if (referred === undefined) return undefined;
  const before = referredHydrators.get(referred.schema);
  const slot = before ?? {};
  if (before === undefined) {
    referredHydrators.set(referred.schema, slot);
    slot.hydrate = hydratorOf(fromGenerated(referred.schema, definitions).type);
  }
  return (value, place) => slot.hydrate?.(value, place) ?? value;
}

/** A branch of a union. */
interface Choice {
  readonly schema: JsonSchema;
  readonly fits: SchemaTest;
  readonly hydrate: HydrateValue | undefined;
}

/**
 * Hydrates with the branch that the value matches, by the schemas of the check. If several match, the branch that
 * lists most of the value's keys wins. The branches are read for the first value, because they may contain the union.
 */
function hydrateUnion(
  branches: readonly DescribedSchema[],
  definitions: DescribedType['definitions'],
): HydrateValue {
  let choices: readonly Choice[] | undefined;
  return (value, place) => {
    choices ??= branches.map((branch) => {
      const schema = offeredSchema({ kind: 'described', schema: branch, definitions });
      return {
        schema,
        fits: schemaTest(schema),
        hydrate: hydratorOf(fromGenerated(branch, definitions).type),
      };
    });
    const choice = best(
      choices.filter(({ fits }) => fits(value)),
      value,
    );
    return choice?.hydrate === undefined ? value : choice.hydrate(value, place);
  };
}

function best([first, ...others]: readonly Choice[], value: unknown): Choice | undefined {
  if (first === undefined || others.length === 0 || typeof value !== 'object' || value === null) return first;
  const keys = Object.keys(value);
  const known = ({ schema }: Choice): number => {
    const { positions } = levelOf(schema);
    return keys.filter((key) => positions.has(key)).length;
  };
  return others.reduce((chosen, other) => (known(other) > known(chosen) ? other : chosen), first);
}

/** The schema that the model was offered for a type. Classes that cannot be described were faults at start-up. */
function offeredSchema(type: DescribedType): JsonSchema {
  const written = typeSchema(type);
  return written.ok ? (written.accepted ?? written.schema) : {};
}

/** The hydrator of a part of a described type. */
type HydratorOfPart = (part: unknown) => HydrateValue | undefined;

function hydrateTuple({ prefixItems, items }: DescribedSchema, partOf: HydratorOfPart): HydrateValue {
  const fixed = Array.isArray(prefixItems) ? prefixItems.map(partOf) : [];
  const rest = partOf(items);
  return (value, place) => {
    if (!Array.isArray(value)) return value;
    const hydrated: unknown[] = [...value];
    for (const [index, item] of value.entries()) {
      const hydrate = index < fixed.length ? fixed[index] : rest;
      if (hydrate === undefined) continue;
      hydrated[index] = hydrate(item, new ChildPlace(place, index, hydrated as unknown as Holder));
    }
    return hydrated;
  };
}

function hydrateObject(
  { properties = {}, additionalProperties }: DescribedSchema,
  partOf: HydratorOfPart,
): HydrateValue {
  const known = new Map(Object.entries(properties).map(([name, property]) => [name, partOf(property)]));
  const values = partOf(additionalProperties);
  return (value, place) => {
    if (!isRecord(value)) return value;
    const hydrated: Holder = {};
    for (const [name, member] of Object.entries(value)) {
      const hydrate = known.has(name) ? known.get(name) : values;
      setOwn(hydrated, name, hydrate ? hydrate(member, new ChildPlace(place, name, hydrated)) : member);
    }
    return hydrated;
  };
}

/** Creates instances of the class that the tag names. The schema accepts no other tag. */
function hydrateTagged(type: TaggedType, cascaded: boolean): HydrateValue {
  const { property, keepProperty, groups } = type;
  const variants = new Map(
    type.variants.map((variant) => [
      variant.tag,
      hydrateClass({ kind: 'class', class: variant.class, groups }, cascaded, hydratorOf),
    ]),
  );
  return (value, place) => {
    const tag = Object.hasOwn(value as object, property) ? (value as JsonObject)[property] : undefined;
    const instance = variants.get(tag as string)?.(value, place);
    if (keepProperty && instance !== undefined) (instance as JsonObject)[property] = tag;
    return instance ?? value;
  };
}
