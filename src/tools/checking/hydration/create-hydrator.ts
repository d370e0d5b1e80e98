import { Buffer } from 'node:buffer';
import type { ClassType, DescribedSchema } from '../../../core/contract/declaration.js';
import type {
  JsonObject,
  JsonSchema,
  StandardIssue,
  StandardResult,
  StandardSchema,
} from '../../../core/contract/json-schema.js';
import type { ArgumentFault, Hydrate, Hydrated, ReviewFault } from '../../../core/contract/tool.js';
import { cached } from '../../../core/kernel/cached.js';
import { childPath, isRecord, mapFields, plainJson, setOwn } from '../../../core/kernel/json.js';
import { nodeUtil } from '../../../core/kernel/node-module.js';
import { classModel } from '../../schema/class-model.js';
import { isSchemaNode, subschemas } from '../../schema/keywords.js';
import type {
  ArgumentsModel,
  ClassModel,
  DescribedType,
  PropertyModel,
  RemainingRule,
  TaggedType,
  ValueType,
} from '../../schema/value-type.js';
import { fromGenerated, referredDefinition } from '../../schema/value-type.js';
import { typeSchema, writeParameters } from '../../schema/write-schema.js';
import type { PropertyTransform } from '../../validators/dto-rules.js';
import { validateInstance } from '../../validators/dto-rules.js';
import { describeErrors } from '../faults.js';
import { generatedLater, interpretSchema, schemaTest } from '../interpreter/interpret-schema.js';
import { levelOf } from '../schema-level.js';

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
  const hydrateValue =
    'properties' in source
      ? hydrateProperties(source.properties)
      : hydratorOf('class' in source ? { kind: 'class', ...source } : source.type);
  if (hydrateValue === undefined) return undefined;
  const hydrate = (args: JsonObject, isTransformed = false): Hydrated | Promise<Hydrated> => {
    const hydration: Hydration = { faults: [], pending: [], validations: [], doubtful: [], isTransformed };
    const { faults, pending, validations, doubtful } = hydration;
    let value: unknown;
    const put = (whole: unknown): void => {
      value = whole;
    };
    put(hydrateValue(args, { hydration, path: '', put }));
    const result = (): Hydrated => {
      if (faults.length > 0) return { ok: false, faults };
      const { changed } = hydration;
      const transformed = changed && (withChanges(args, changed) as JsonObject);
      return transformed === undefined ? { ok: true, value } : { ok: true, value, transformed };
    };
    const needsValidator = (): boolean =>
      faults.length === 0 &&
      validations.length > 0 &&
      (doubtful.length > 0 || validations.some(({ isCertain }) => isCertain));
    if (pending.length === 0 && !needsValidator()) return result();
    return Promise.all(pending).then(async () => {
      // Faults of values come first: validating an incomplete instance would only report their consequences.
      if (needsValidator())
        for (const { path, message } of await runValidations(validations)) faults.push({ path, message });
      return result();
    });
  };
  const review = async (args: JsonObject): Promise<readonly ReviewFault[]> => {
    const hydration: Hydration = { faults: [], pending: [], validations: [], doubtful: [], isReview: true };
    try {
      hydrateValue(args, { hydration, path: '', put: () => {} });
      await Promise.all(hydration.pending);
      const own = hydration.faults.map((fault) => ({ ...fault, isAuthored: false }));
      return [...own, ...(await runValidations(hydration.validations))];
    } catch {
      // If a value cannot be hydrated, its rules are skipped: the schema has already reported its faults.
      return [];
    }
  };
  return Object.assign(hydrate, { accepts, review });
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

/** Hydrates the properties that need it; the others do not change. */
function hydrateProperties(properties: readonly PropertyModel[]): HydrateValue | undefined {
  const known = new Map<string, HydrateValue>();
  for (const { name, type } of properties) {
    const hydrate = hydratorOf(type);
    if (hydrate !== undefined) known.set(name, hydrate);
  }
  return known.size === 0 ? undefined : hydrateValues(undefined, known);
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
      return type.collection === 'set' ? collect(array, (items) => new Set(items as unknown[])) : array;
    }
    case 'record': {
      // class-validator does not visit the values of plain objects, but it visits those of a Map.
      const value = hydratorOf(type.values, cascaded && type.collection === 'map');
      const record = value && hydrateValues(value);
      if (type.collection !== 'map') return record;
      return collect(record, (values) => {
        const entries: [unknown, unknown][] = Object.entries(values as object);
        return new Map(type.keys === 'number' ? entries.map(([key, each]) => [Number(key), each]) : entries);
      });
    }
    case 'class':
      return hydrateClass(type, cascaded);
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
      const nameOf = (owner: object, key: string): string => {
        // Items and values of collections keep their index or key.
        if (Array.isArray(owner) || owner instanceof Map || owner instanceof Set) return key;
        const read = classModel(owner.constructor as ClassType, groups);
        const properties = read.ok ? read.model.properties : [];
        return properties.find((property) => (property.key ?? property.name) === key)?.name ?? key;
      };
      try {
        return await validateInstance(instance, { path, groups, nameOf });
      } catch (error) {
        // If all rules are class-validator's own, the value made them throw.
        if (isCertain) throw error;
        return [{ path, message: 'has a value that the rules cannot check', isAuthored: false }];
      }
    }),
  );
  return faults.flat();
}

/** The hydrator of a described type; `undefined` if it contains no dates, classes or similar types. */
function hydrateDescribed(described: DescribedType): HydrateValue | undefined {
  const { schema, definitions } = described;
  if (!holdsInstances(schema, definitions, new Set())) return undefined;
  if (schema.$ref !== undefined) {
    const referred = referredDefinition(schema.$ref, definitions)?.schema;
    if (referred === undefined) return undefined;
    // Created for the first value, because a definition may contain itself.
    return (value, place) => {
      const { hydrate } = cached(referredHydrators, referred, () => ({
        hydrate: hydratorOf(fromGenerated(referred, definitions).type),
      }));
      return hydrate?.(value, place) ?? value;
    };
  }
  const partOf = (part: unknown): HydrateValue | undefined =>
    isSchemaNode(part) ? hydratorOf(fromGenerated(part, definitions).type) : undefined;
  const { anyOf, items, prefixItems, properties = {}, additionalProperties } = schema;
  if (anyOf !== undefined) return hydrateUnion(anyOf, definitions);
  if (items !== undefined || prefixItems !== undefined)
    return hydrateItems(partOf(items), Array.isArray(prefixItems) ? prefixItems.map(partOf) : []);
  return hydrateValues(partOf(additionalProperties), new Map(Object.entries(mapFields(properties, partOf))));
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

const referredHydrators = new WeakMap<DescribedSchema, { readonly hydrate: HydrateValue | undefined }>();

/** A branch of a union. */
interface Choice {
  readonly schema: JsonSchema;
  readonly fits: (value: unknown) => boolean;
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
    choices ??= branches.map((branch): Choice => {
      // The schema that the model was offered. Classes that cannot be described were faults at start-up.
      const written = typeSchema({ kind: 'described', schema: branch, definitions });
      const schema = written.ok ? (written.accepted ?? written.schema) : {};
      const hydrate = hydratorOf(fromGenerated(branch, definitions).type);
      return { schema, fits: schemaTest(schema), hydrate };
    });
    const fitting = choices.filter(({ fits }) => fits(value));
    let [chosen] = fitting;
    if (fitting.length > 1 && typeof value === 'object' && value !== null) {
      const keys = Object.keys(value);
      let most = -1;
      for (const choice of fitting) {
        const { positions } = levelOf(choice.schema);
        const known = keys.filter((key) => positions.has(key)).length;
        if (known <= most) continue;
        most = known;
        chosen = choice;
      }
    }
    return chosen?.hydrate === undefined ? value : chosen.hydrate(value, place);
  };
}

/** Creates instances of the class that the tag names. The schema accepts no other tag. */
function hydrateTagged(type: TaggedType, cascaded: boolean): HydrateValue {
  const { property, keepProperty, groups } = type;
  const variants = new Map<unknown, HydrateValue>();
  for (const { tag, class: target } of type.variants)
    variants.set(tag, hydrateClass({ kind: 'class', class: target, groups }, cascaded));
  return (value, place) => {
    const tag = Object.hasOwn(value as object, property) ? (value as JsonObject)[property] : undefined;
    const instance = variants.get(tag)?.(value, place);
    if (keepProperty && instance !== undefined) (instance as JsonObject)[property] = tag;
    return instance ?? value;
  };
}

/** Hydrates the items of an array; `fixed` are the hydrators of the first ones. */
function hydrateItems(
  rest: HydrateValue | undefined,
  fixed: readonly (HydrateValue | undefined)[] = [],
): HydrateValue {
  return (value, place) => {
    if (!Array.isArray(value)) return value;
    const items = new Array<unknown>(value.length);
    const holder = items as unknown as Holder;
    for (let index = 0; index < value.length; index += 1) {
      const hydrate = index < fixed.length ? fixed[index] : rest;
      items[index] = hydrate ? hydrate(value[index], new ChildPlace(place, index, holder)) : value[index];
    }
    return items;
  };
}

/** Hydrates the properties of an object; `known` are the hydrators of those with a name. */
function hydrateValues(
  others: HydrateValue | undefined,
  known: ReadonlyMap<string, HydrateValue | undefined> = new Map(),
): HydrateValue {
  return (value, place) => {
    if (!isRecord(value)) return value;
    const values: Holder = { ...value };
    for (const name of others === undefined ? known.keys() : Object.keys(value)) {
      const hydrate = known.has(name) ? known.get(name) : others;
      if (hydrate === undefined || !Object.hasOwn(value, name)) continue;
      setOwn(values, name, hydrate(value[name], new ChildPlace(place, name, values)));
    }
    return values;
  };
}

/** Builds a collection, again after all asynchronous members. */
function collect(hydrate: HydrateValue | undefined, build: (plain: unknown) => unknown): HydrateValue {
  return (value, place: Place) => {
    const before = place.hydration.pending.length;
    const plain = hydrate ? hydrate(value, place) : value;
    const later = place.hydration.pending.slice(before);
    if (later.length > 0) {
      place.hydration.pending.push(Promise.all(later).then(() => place.put(build(plain))));
    }
    return build(plain);
  };
}

/** Hydrators for strings that represent values outside JSON. An invalid string is a fault. */
const TEXTUAL = {
  date: textual('must be a valid date', (text) => {
    const date = new Date(text);
    return Number.isNaN(date.getTime()) ? undefined : date;
  }),
  url: textual('must be a valid URL', (text) => URL.parse(text) ?? undefined),
  buffer: textual('must be valid base64', decode),
  bigint: textual('must be a whole number as a string of digits', (text) =>
    /^-?[0-9]+$/.test(text) ? BigInt(text) : undefined,
  ),
  bytes: textual('must be valid base64', (text) => {
    const buffer = decode(text);
    return buffer && new Uint8Array(buffer);
  }),
};

// @__NO_SIDE_EFFECTS__
function textual(message: string, read: (text: string) => unknown): HydrateValue {
  return (value, { hydration, path }) => {
    const hydrated = typeof value === 'string' ? read(value) : undefined;
    if (hydrated === undefined) hydration.faults.push({ path, message });
    return hydrated;
  };
}

/**
 * Decodes both alphabets of RFC 4648, with or without padding. Node's decoder ignores invalid characters, so the text
 * is checked first.
 */
function decode(text: string): Buffer | undefined {
  const digits = text.replace(/={1,2}$/, '');
  return /^[A-Za-z0-9+/_-]*$/.test(digits) && digits.length % 4 !== 1
    ? Buffer.from(digits, 'base64')
    : undefined;
}

/** Parses a single value with a Standard Schema; its issues become faults. It may be asynchronous. */
function hydrateStandard(standard: StandardSchema): HydrateValue {
  return (value, place) => {
    const settle = (result: StandardResult<unknown>): unknown => {
      if (result.issues === undefined) return result.value;
      for (const fault of issueFaults(result.issues, place.path)) place.hydration.faults.push(fault);
      return undefined;
    };
    const result = standard['~standard'].validate(value);
    if (!('then' in result)) return settle(result);
    place.hydration.pending.push(result.then((later) => place.put(settle(later))));
    return undefined;
  };
}

/** An instance that class-validator checks after hydration. */
interface Validation {
  readonly instance: object;
  readonly path: string;
  readonly groups?: readonly string[];
  /** Some rules need class-validator in any case; otherwise it runs only if another rule fails. */
  readonly isCertain: boolean;
}

/** The state of hydrating one call's arguments. */
interface Hydration {
  readonly faults: ArgumentFault[];
  /** The arguments do not match the schema: all rules run, to report their faults too. */
  readonly isReview?: boolean;
  /** Asynchronous values of Standard Schemas. */
  readonly pending: Promise<void>[];
  readonly validations: Validation[];
  /** Instances with a failed rule: class-validator writes the messages. */
  readonly doubtful: object[];
  /** The values were already transformed, and must not be transformed again. */
  readonly isTransformed?: boolean;
  /** Values that were transformed before their check, in JSON form, by the object that contained them. */
  changed?: Map<object, JsonObject>;
}

/** The position of a value. */
interface Place {
  readonly hydration: Hydration;
  /** With dots: `items.0.sku`. */
  readonly path: string;
  /** Sets the value when it arrives later. */
  put(value: unknown): void;
}

/** The container of a value: an instance, an array, or an object used as a map. */
type Holder = Record<PropertyKey, unknown>;

/**
 * The position of a child in its container. Its path is built only when it is needed, because most values are valid.
 */
class ChildPlace implements Place {
  readonly hydration: Hydration;
  readonly #parent: Place;
  readonly #name: string | number;
  readonly #holder: Holder;

  constructor(parent: Place, name: string | number, holder: Holder) {
    this.hydration = parent.hydration;
    this.#parent = parent;
    this.#name = name;
    this.#holder = holder;
  }

  get path(): string {
    return childPath(this.#parent.path, this.#name);
  }

  put(value: unknown): void {
    setOwn(this.#holder, this.#name, value);
  }
}

/** Converts a JSON value that matches the schema to the tool's value. */
type HydrateValue = (value: unknown, place: Place) => unknown;

type ClassValue = ValueType & { readonly kind: 'class' };

/** One property of the class: its names, and the conversions of its value. */
interface Step {
  /** The name in JSON. */
  readonly name: string;
  /** The name on the instance. */
  readonly key: string;
  /** `Object.prototype` has a property with this name, so only an own property counts. */
  readonly isInherited: boolean;
  /** The same for the key: plain assignment may not reach the instance. */
  readonly isShadowing: boolean;
  /** `null` means absent. */
  readonly dropsNull: boolean;
  readonly isRequired: boolean;
  /** The property is processed even if no value was sent. */
  readonly isAlways: boolean;
  readonly transforms?: readonly PropertyTransform[];
  /** Checks a value that was transformed before its check. */
  readonly checkTransformed?: (json: unknown, isAbsent: boolean) => readonly ArgumentFault[];
  readonly hydrate?: HydrateValue;
}

/** How instances of one class are created. */
interface Plan {
  readonly create: new () => Record<string, unknown>;
  readonly groups?: readonly string[];
  readonly need: ValidationNeed;
  /** Rules that run separately; empty if class-validator runs in any case. */
  readonly rules: readonly RemainingRule[];
  readonly assemble: Assemble;
}

/** Assigns the sent values to a new instance. */
type Assemble = (instance: Holder, source: JsonObject, place: Place) => void;

const plans = new WeakMap<ClassModel, Plan>();

/**
 * Creates instances of a DTO class. Only properties of the class are assigned, so that other sent values do not reach
 * the instance. `cascaded`: class-validator reaches it from the object around it.
 */
function hydrateClass(type: ClassValue, cascaded: boolean): HydrateValue {
  let known: Plan | undefined;
  return (value, place) => {
    known ??= planOf(type);
    const plan = known;
    const instance = new plan.create();
    plan.assemble(instance, value as JsonObject, place);
    const { isReview } = place.hydration;
    if (!isReview)
      for (const holds of plan.rules) if (!holds(instance)) place.hydration.doubtful.push(instance);
    if ((plan.need !== 'none' || isReview) && !cascaded) {
      const isCertain = plan.need === 'always' || isReview === true;
      place.hydration.validations.push({ instance, path: place.path, groups: plan.groups, isCertain });
    }
    return instance;
  };
}

/** Created for the first value of the class, so that recursive classes end and start-up costs nothing. */
function planOf({ class: target, groups }: ClassValue): Plan {
  const read = classModel(target, groups);
  if (!read.ok) throw new Error(read.faults.map(({ problem }) => problem).join('; '));
  const before = plans.get(read.model);
  if (before !== undefined) return before;
  const steps: Step[] = [];
  for (const property of read.model.properties) {
    const { name, key = name, required, nullable, transforms, transformedFirst, type, cascades } = property;
    if (!isSettable(target.prototype, key)) continue;
    steps.push({
      name,
      key,
      isInherited: name in Object.prototype,
      isShadowing: key in Object.prototype,
      dropsNull: !required && !nullable && transformedFirst === undefined,
      isRequired: required,
      isAlways: transformedFirst === 'always',
      transforms,
      checkTransformed: transformedFirst && transformedCheck(property),
      hydrate: hydratorOf(type, cascades),
    });
  }
  const { remaining } = read.model;
  const plan: Plan = {
    create: target as unknown as Plan['create'],
    groups,
    need: validationNeed(read.model),
    rules: typeof remaining === 'string' ? [] : remaining,
    assemble: generatedLater<Parameters<Assemble>, void>(
      (instance, source, place) => assembleByStep(steps, { instance, source, place }),
      () => generateAssembly(steps),
    ),
  };
  plans.set(read.model, plan);
  return plan;
}

/** Assigning to a getter without a setter would throw. */
function isSettable(prototype: object | null, key: string): boolean {
  if (prototype === null) return true;
  const own = Object.getOwnPropertyDescriptor(prototype, key);
  if (own === undefined) return isSettable(Object.getPrototypeOf(prototype), key);
  return own.get === undefined || own.set !== undefined;
}

/** Checks against the offered schema of the property. */
function transformedCheck(property: PropertyModel): Step['checkTransformed'] {
  const { name } = property;
  const written = writeParameters({
    properties: [{ ...property, transforms: undefined, transformedFirst: undefined }],
  });
  if (!written.ok) return undefined;
  const { schema } = written;
  const check = interpretSchema(schema).check;
  return (json, isAbsent) => {
    const errors = check(isAbsent ? {} : { [name]: json });
    return errors === undefined ? [] : describeErrors(errors, schema);
  };
}

/** An instance that is being filled. */
interface Assembly {
  readonly instance: Holder;
  readonly source: JsonObject;
  readonly place: Place;
}

function assembleByStep(steps: readonly Step[], assembly: Assembly): void {
  const { source } = assembly;
  for (const step of steps) {
    const { name } = step;
    const isSent = source[name] !== undefined && (!step.isInherited || Object.hasOwn(source, name));
    if (!isSent && !step.isAlways) continue;
    if (source[name] === null && step.dropsNull) continue;
    assign(step, assembly);
  }
}

/** The same as one generated function with a code path for each property: about three times as fast. */
function generateAssembly(steps: readonly Step[]): Assemble {
  const code = steps.map((step, index) => {
    const { name, key, isInherited, isShadowing, dropsNull, isAlways, transforms, hydrate } = step;
    if (isAlways) return `assign(steps[${index}], { instance, source, place });`;
    const [from, to] = [`source[${JSON.stringify(name)}]`, `instance[${JSON.stringify(key)}]`];
    const isSent = isInherited
      ? `${from} !== undefined && Object.hasOwn(source, ${JSON.stringify(name)})`
      : `${from} !== undefined`;
    const isTaken = dropsNull ? `${isSent} && ${from} !== null` : isSent;
    if (transforms !== undefined || isShadowing || (hydrate !== undefined && key !== name))
      return `if (${isTaken}) assign(steps[${index}], { instance, source, place });`;
    if (hydrate === undefined) return `if (${isTaken}) ${to} = ${from};`;
    const child = `new ChildPlace(place, ${JSON.stringify(name)}, instance)`;
    return `if (${isTaken}) ${to} = steps[${index}].hydrate(${from}, ${child});`;
  });
  const parameters = ['steps', 'assign', 'ChildPlace'];
  const make = new Function(...parameters, `return (instance, source, place) => {${code.join('\n')}}`);
  return make(steps, assign, ChildPlace) as Assemble;
}

function assign(step: Step, assembly: Assembly): void {
  const { instance, source, place } = assembly;
  const { name, key, transforms, hydrate } = step;
  if (step.checkTransformed !== undefined) assignChecked(step, step.checkTransformed, assembly);
  else if (transforms !== undefined) assignTransformed(step, assembly);
  else if (hydrate === undefined) put(step, instance, source[name]);
  else {
    // Sets an asynchronous value if the name on the instance differs from the name in JSON.
    const set = (value: unknown): void => put(step, instance, value);
    const holder = key === name ? instance : Object.defineProperty({}, name, { set });
    put(step, instance, hydrate(source[name], new ChildPlace(place, name, holder)));
  }
}

function put({ key, isShadowing }: Step, instance: Holder, value: unknown): void {
  if (isShadowing) setOwn(instance, key, value);
  else instance[key] = value;
}

/** Applies the transforms of a property; if a transform throws, the argument has a fault. */
function transform(
  { name, key, transforms = [] }: Step,
  value: unknown,
  { source, place }: Assembly,
): { readonly ok: true; readonly value: unknown } | { readonly ok: false } {
  try {
    return { ok: true, value: transforms.reduce((before, one) => one(before, { key, source }), value) };
  } catch (cause) {
    const path = childPath(place.path, name);
    place.hydration.faults.push({ path, message: 'cannot be transformed', cause });
    return { ok: false };
  }
}

/** Transforms the sent value and then checks it, in the order of class-transformer and class-validator. */
function assignChecked(step: Step, check: NonNullable<Step['checkTransformed']>, assembly: Assembly): void {
  const { instance, source, place } = assembly;
  const { name, hydrate } = step;
  const { hydration } = place;
  const sent = Object.hasOwn(source, name) ? source[name] : undefined;
  const transformed = hydration.isTransformed
    ? ({ ok: true, value: sent } as const)
    : transform(step, sent, assembly);
  if (!transformed.ok) return;
  const { value } = transformed;
  const json = plainJson(value);
  const faults = check(json, value === undefined || (value === null && !step.isRequired));
  if (faults.length > 0) {
    for (const fault of faults) hydration.faults.push({ ...fault, path: childPath(place.path, fault.path) });
    return;
  }
  if (json !== sent && !hydration.isTransformed) {
    hydration.changed ??= new Map();
    hydration.changed.set(source, { ...hydration.changed.get(source), [name]: json });
  }
  if (value === undefined) return;
  const isJson = hydrate !== undefined && nodeUtil().isDeepStrictEqual(value, json);
  put(step, instance, isJson ? hydrate(value, new ChildPlace(place, name, instance)) : value);
}

/** Runs the transform once, after all asynchronous parts of the value. */
function assignTransformed(step: Step, { instance, source, place }: Assembly): void {
  const { name, hydrate } = step;
  const { pending } = place.hydration;
  const hydrated: Holder = { [name]: source[name] };
  const set = (): void => {
    const transformed = transform(step, hydrated[name], { instance, source, place });
    if (transformed.ok) put(step, instance, transformed.value);
  };
  const before = pending.length;
  if (hydrate) hydrated[name] = hydrate(source[name], new ChildPlace(place, name, hydrated));
  const later = pending.slice(before);
  if (later.length > 0) pending.push(Promise.all(later).then(set));
  else set();
}

/** Whether instances of a class need class-validator: never, only after a failed rule, or always. */
type ValidationNeed = 'none' | 'doubt' | 'always';

/** Considers the rules of the class and of the classes that `@ValidateNested` reaches. */
function validationNeed(model: ClassModel): ValidationNeed {
  const reached = new Set([model]);
  const remaining = new Set<ClassModel['remaining']>();
  for (const each of reached) {
    remaining.add(each.remaining);
    for (const { cascades, type } of each.properties)
      if (cascades === true) for (const member of classesIn(type)) reached.add(member);
  }
  if (remaining.has('all')) return 'always';
  remaining.delete('none');
  return remaining.size > 0 ? 'doubt' : 'none';
}

/**
 * The classes that class-validator visits itself: classes, and arrays and maps of them, but not the values of plain
 * objects.
 */
function classesIn(type: ValueType): readonly ClassModel[] {
  if (type.kind === 'array') return classesIn(type.items);
  if (type.kind === 'record' && type.collection === 'map') return classesIn(type.values);
  if (type.kind !== 'class' && type.kind !== 'tagged') return [];
  const found: ClassModel[] = [];
  for (const { class: member } of type.kind === 'class' ? [type] : type.variants) {
    const read = classModel(member, type.groups);
    if (read.ok) found.push(read.model);
  }
  return found;
}

/** Parses the whole arguments with a Standard Schema, which may be asynchronous. */
export function standardHydrator(standard: StandardSchema): Hydrate {
  const { validate } = standard['~standard'];
  const hydrated = (result: StandardResult<unknown>): Hydrated =>
    result.issues === undefined
      ? { ok: true, value: result.value }
      : { ok: false, faults: issueFaults(result.issues, '') };
  const hydrate = (args: unknown): Hydrated | Promise<Hydrated> => {
    const result = validate(args);
    return 'then' in result ? result.then(hydrated) : hydrated(result);
  };
  const review = async (args: unknown): Promise<readonly ReviewFault[]> => {
    try {
      const { issues = [] } = await validate(args);
      return issueFaults(issues, '').map((fault) => ({ ...fault, isAuthored: false }));
    } catch {
      // If the schema cannot parse the value, no fault is added: the JSON Schema has already reported the faults.
      return [];
    }
  };
  return Object.assign(hydrate, { review });
}

/** Converts the issues of a Standard Schema to faults, with paths below `path`. */
function issueFaults(issues: readonly StandardIssue[], path: string): readonly ArgumentFault[] {
  return issues.map(({ message, path: steps = [] }) => {
    const keys = steps.map((step) => String(typeof step === 'object' ? step.key : step));
    return { path: keys.reduce(childPath, path), message };
  });
}
