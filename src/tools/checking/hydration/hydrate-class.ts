import { Buffer } from 'node:buffer';
import type { JsonObject, StandardResult, StandardSchema } from '../../../core/contract/json-schema.js';
import type { ArgumentFault } from '../../../core/contract/tool.js';
import { plainJson, setOwn } from '../../../core/kernel/json.js';
import { nodeUtil } from '../../../core/kernel/node-module.js';
import { classModel } from '../../schema/class-model.js';
import type { ClassModel, PropertyModel, RemainingRule, ValueType } from '../../schema/value-type.js';
import { writeParameters } from '../../schema/write-schema.js';
import type { PropertyTransform } from '../../validators/transform-rules.js';
import { describeErrors } from '../faults.js';
import { mayGenerateCode, schemaCheck } from '../schema-test.js';
import { childPath, issueFaults } from './standard-hydrator.js';

/** An array whose items need hydrating. */
export function hydrateItems(hydrateItem: HydrateValue): HydrateValue {
  return (value, place) => {
    const source = value as readonly unknown[];
    const items = new Array<unknown>(source.length);
    const holder = items as unknown as Holder;
    for (let index = 0; index < source.length; index += 1) {
      items[index] = hydrateItem(source[index], new ChildPlace(place, index, holder));
    }
    return items;
  };
}

/** An object used as a map, whose values need hydrating. */
export function hydrateValues(hydrateValue: HydrateValue): HydrateValue {
  return (value, place) => {
    const values: Holder = {};
    for (const [key, one] of Object.entries(value as object)) {
      setOwn(values, key, hydrateValue(one, new ChildPlace(place, key, values)));
    }
    return values;
  };
}

/** A `Set` from an array. What comes later is taken over when all of it is there. */
export function hydrateSet(hydrateArray: HydrateValue | undefined): HydrateValue {
  return collect(hydrateArray, (items) => new Set(items as readonly unknown[]));
}

/** A `Map` from an object, whose keys are text whatever they stand for. */
export function hydrateMap(hydrateObject: HydrateValue | undefined, keys?: 'number'): HydrateValue {
  return collect(hydrateObject, (values) => {
    const entries: [unknown, unknown][] = Object.entries(values as object);
    return new Map(keys === 'number' ? entries.map(([key, value]) => [Number(key), value]) : entries);
  });
}

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

/** Text that stands for a value which JSON does not have. Text that does not is a fault. */
export const TEXTUAL = {
  date: textual('must be a valid date', (text) => {
    const date = new Date(text);
    return Number.isNaN(date.getTime()) ? undefined : date;
  }),
  url: textual('must be a valid URL', (text) => URL.parse(text) ?? undefined),
  buffer: textual('must be valid base64', decode),
  bigint: textual('must be the digits of a whole number', (text) =>
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

/** Both alphabets of RFC 4648, padded or not. Node's decoder skips what it does not know, so that is checked. */
function decode(text: string): Buffer | undefined {
  const digits = text.replace(/={1,2}$/, '');
  return /^[A-Za-z0-9+/_-]*$/.test(digits) && digits.length % 4 !== 1
    ? Buffer.from(digits, 'base64')
    : undefined;
}

/** The value as a Standard Schema parses it; its issues are faults. It may take its time. */
export function hydrateStandard(standard: StandardSchema): HydrateValue {
  return (value, place) => {
    const settle = (result: StandardResult<unknown>): unknown => {
      if (result.issues === undefined) return result.value;
      place.hydration.faults.push(...issueFaults(result.issues, place.path));
      return undefined;
    };
    const result = standard['~standard'].validate(value);
    if (!('then' in result)) return settle(result);
    place.hydration.pending.push(result.then((later) => place.put(settle(later))));
    return undefined;
  };
}

/** An instance that class-validator has to look at once everything is hydrated. */
export interface Validation {
  readonly instance: object;
  readonly path: string;
  readonly groups?: readonly string[];
  /** Rules that only class-validator can validate; otherwise it is asked only if some rule does not hold. */
  readonly isCertain: boolean;
}

/** What comes up while one call's arguments are hydrated. */
export interface Hydration {
  readonly faults: ArgumentFault[];
  /** The arguments do not fit the schema: every rule is asked what it has to say. */
  readonly isReview?: boolean;
  /** Values that come later: Standard Schemas may validate asynchronously. */
  readonly pending: Promise<void>[];
  readonly validations: Validation[];
  /** Instances for which some rule does not hold: class-validator is asked what to say about it. */
  readonly doubtful: object[];
  /** The values were transformed before, and must not be again. */
  readonly isTransformed?: boolean;
  /** Values that were transformed before their check, in JSON form, by the object that they stood in. */
  changed?: Map<object, JsonObject>;
}

/** Where a value belongs. */
export interface Place {
  readonly hydration: Hydration;
  /** With dots: `items.0.sku`. */
  readonly path: string;
  /** Replaces the value when it comes later. */
  put(value: unknown): void;
}

/** What a value belongs to: an instance, an array, an object used as a map. */
export type Holder = Record<PropertyKey, unknown>;

/** The place of a child in its holder. Its path is put together only for those who ask: most values are right. */
export class ChildPlace implements Place {
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

/** From a JSON value that fits the schema to what the tool takes. */
export type HydrateValue = (value: unknown, place: Place) => unknown;

/** The hydrator of a type, handed to those that hydrate parts. */
export type HydratorOf = (type: ValueType, cascaded?: boolean) => HydrateValue | undefined;

type ClassValue = ValueType & { readonly kind: 'class' };

/** One property of the class: where it comes from, where it goes, and what it goes through. */
interface Step {
  /** In JSON. */
  readonly name: string;
  /** On the instance. */
  readonly key: string;
  /** Every object has a property of that name, so that only an own one counts. */
  readonly isInherited: boolean;
  /** The same of the key: plain assignment may not reach the instance. */
  readonly isShadowing: boolean;
  /** `null` means absent. */
  readonly dropsNull: boolean;
  readonly isRequired: boolean;
  /** It is looked at also where nothing was sent. */
  readonly isAlways: boolean;
  readonly transforms?: readonly PropertyTransform[];
  /** What is wrong with a value that was transformed before its check. */
  readonly checkTransformed?: (json: unknown, isAbsent: boolean) => readonly ArgumentFault[];
  readonly hydrate?: HydrateValue;
}

/** How instances of one class are made. */
interface Plan {
  readonly create: new () => Record<string, unknown>;
  readonly steps: readonly Step[];
  readonly groups?: readonly string[];
  readonly need: ValidationNeed;
  /** Asked one by one; none where class-validator is asked anyway. */
  readonly rules: readonly RemainingRule[];
  /** How many instances were made step by step. */
  made: number;
  assemble: Assemble;
}

/** Sets what was sent on a new instance. */
type Assemble = (instance: Holder, source: JsonObject, place: Place) => void;

const plans = new WeakMap<ClassModel, Plan>();

/**
 * Instances of a DTO class. Only properties of the class are taken over, so nothing else that was sent
 * reaches the instance. With `cascaded`, class-validator comes here from the object around it.
 */
export function hydrateClass(type: ClassValue, cascaded: boolean, hydratorOf: HydratorOf): HydrateValue {
  let known: Plan | undefined;
  return (value, place) => {
    known ??= planOf(type, hydratorOf);
    const plan = known;
    const instance = build(plan, value as JsonObject, place);
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

/** Made when the first value of the class comes: recursive classes end, and start-up costs nothing. */
function planOf({ class: target, groups }: ClassValue, hydratorOf: HydratorOf): Plan {
  const read = classModel(target, groups);
  if (!read.ok) throw new Error(read.faults.map(({ problem }) => problem).join('; '));
  const before = plans.get(read.model);
  if (before !== undefined) return before;
  const settable = read.model.properties.filter(({ name, key = name }) => isSettable(target.prototype, key));
  const plan: Plan = {
    create: target as unknown as Plan['create'],
    steps: settable.map((property) => stepOf(property, hydratorOf)),
    groups,
    need: validationNeed(read.model),
    rules: typeof read.model.remaining === 'string' ? [] : read.model.remaining,
    made: 0,
    assemble: (instance, source, place) => assembleByStep(plan, { instance, source, place }),
  };
  plans.set(read.model, plan);
  return plan;
}

/** A getter without a setter would throw. */
function isSettable(prototype: object | null, key: string): boolean {
  if (prototype === null) return true;
  const own = Object.getOwnPropertyDescriptor(prototype, key);
  if (own === undefined) return isSettable(Object.getPrototypeOf(prototype), key);
  return own.get === undefined || own.set !== undefined;
}

function stepOf(property: PropertyModel, hydratorOf: HydratorOf): Step {
  const {
    name,
    key = name,
    required,
    nullable,
    transforms,
    transformedFirst,
    type,
    cascades = false,
  } = property;
  return {
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
  };
}

/** Checks against what was offered for the property. */
function transformedCheck(property: PropertyModel): Step['checkTransformed'] {
  const { name } = property;
  const written = writeParameters({
    properties: [{ ...property, transforms: undefined, transformedFirst: undefined }],
  });
  if (!written.ok) return undefined;
  const { schema } = written;
  const check = schemaCheck(schema);
  return (json, isAbsent) => {
    const errors = check(isAbsent ? {} : { [name]: json });
    return errors === undefined ? [] : describeErrors(errors, schema);
  };
}

/** An instance in the making. */
interface Assembly {
  readonly instance: Holder;
  readonly source: JsonObject;
  readonly place: Place;
}

function build(plan: Plan, source: JsonObject, place: Place): object {
  const instance = new plan.create();
  plan.assemble(instance, source, place);
  return instance;
}

/** Code is generated for classes of which more instances are made. */
const MOST_BY_STEP = 500;

function assembleByStep(plan: Plan, assembly: Assembly): void {
  plan.made += 1;
  if (plan.made === MOST_BY_STEP && mayGenerateCode()) plan.assemble = generateAssembly(plan.steps);
  const { source } = assembly;
  for (const step of plan.steps) {
    const { name } = step;
    const isSent = source[name] !== undefined && (!step.isInherited || Object.hasOwn(source, name));
    if (!isSent && !step.isAlways) continue;
    if (source[name] === null && step.dropsNull) continue;
    assign(step, assembly);
  }
}

/** The same as one function, in which each property has a place of its own: some three times as fast. */
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
    const child = new ChildPlace(place, name, key === name ? instance : renamed(step, instance));
    put(step, instance, hydrate(source[name], child));
  }
}

function put({ key, isShadowing }: Step, instance: Holder, value: unknown): void {
  if (isShadowing) setOwn(instance, key, value);
  else instance[key] = value;
}

/** What takes the value that comes later, where the instance calls the property otherwise than JSON does. */
function renamed(step: Step, instance: Holder): Holder {
  const set = (value: unknown): void => put(step, instance, value);
  return Object.defineProperty({}, step.name, { set });
}

/** What the transforms of a property make of its value; one that throws is a fault of the argument. */
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

/** A value that is transformed as it was sent, and then checked: as class-transformer and class-validator do it. */
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
    hydration.faults.push(...faults.map((fault) => ({ ...fault, path: childPath(place.path, fault.path) })));
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

/** A transform sees the value once, when all of it is there. */
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

/** How class-validator is needed for instances of a class: not at all, if in doubt, or always. */
type ValidationNeed = 'none' | 'doubt' | 'always';

/** Rules that the class has, or a class that `@ValidateNested` leads to. */
function validationNeed(model: ClassModel): ValidationNeed {
  if (some(model, ({ remaining }) => remaining === 'all')) return 'always';
  return some(model, ({ remaining }) => remaining !== 'none') ? 'doubt' : 'none';
}

type Test = (model: ClassModel) => boolean;

function some(model: ClassModel, test: Test, around: ReadonlySet<ClassModel> = new Set()): boolean {
  if (test(model)) return true;
  if (around.has(model)) return false;
  const inside = new Set([...around, model]);
  return model.properties.some(
    ({ cascades, type }) => cascades === true && classesIn(type).some((member) => some(member, test, inside)),
  );
}

/** What class-validator goes into by itself: classes, arrays and maps of them, but not the values of plain objects. */
function classesIn(type: ValueType): readonly ClassModel[] {
  if (type.kind === 'array') return classesIn(type.items);
  if (type.kind === 'record' && type.collection === 'map') return classesIn(type.values);
  if (type.kind === 'class') return modelsOf([type.class], type.groups);
  if (type.kind === 'tagged')
    return modelsOf(
      type.variants.map((variant) => variant.class),
      type.groups,
    );
  return [];
}

function modelsOf(
  classes: readonly ClassModel['class'][],
  groups?: readonly string[],
): readonly ClassModel[] {
  return classes.flatMap((member) => {
    const read = classModel(member, groups);
    return read.ok ? [read.model] : [];
  });
}
