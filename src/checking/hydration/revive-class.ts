import type { JsonObject } from '../../contract/json-schema.js';
import { setOwn } from '../../kernel/json.js';
import { classModel } from '../../schema/class-model.js';
import type { ClassModel, PropertyModel, RemainingRule, ValueType } from '../../schema/value-type.js';
import type { PropertyTransform } from '../../validators/transform-rules.js';
import { mayGenerateCode } from '../compile.js';
import { ChildPlace, type Holder, type Place, type Revive, type ReviverOf } from './revive-values.js';

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
  readonly transforms?: readonly PropertyTransform[];
  readonly revive?: Revive;
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
export function reviveClass(type: ClassValue, cascaded: boolean, reviverOf: ReviverOf): Revive {
  let known: Plan | undefined;
  return (value, place) => {
    known ??= planOf(type, reviverOf);
    const plan = known;
    const instance = build(plan, value as JsonObject, place);
    const { isReview } = place.revival;
    if (!isReview)
      for (const holds of plan.rules) if (!holds(instance)) place.revival.doubtful.push(instance);
    if ((plan.need !== 'none' || isReview) && !cascaded) {
      const isCertain = plan.need === 'always' || isReview === true;
      place.revival.validations.push({ instance, path: place.path, groups: plan.groups, isCertain });
    }
    return instance;
  };
}

/** Made when the first value of the class comes: recursive classes end, and start-up costs nothing. */
function planOf({ class: target, groups }: ClassValue, reviverOf: ReviverOf): Plan {
  const read = classModel(target, groups);
  if (!read.ok) throw new Error(read.faults.map(({ problem }) => problem).join('; '));
  const before = plans.get(read.model);
  if (before !== undefined) return before;
  const settable = read.model.properties.filter(({ name, key = name }) => isSettable(target.prototype, key));
  const plan: Plan = {
    create: target as unknown as Plan['create'],
    steps: settable.map((property) => stepOf(property, reviverOf)),
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

function stepOf(
  { name, key = name, required, nullable, transforms, type, cascades = false }: PropertyModel,
  reviverOf: ReviverOf,
): Step {
  return {
    name,
    key,
    isInherited: name in Object.prototype,
    isShadowing: key in Object.prototype,
    dropsNull: !required && !nullable,
    transforms,
    revive: reviverOf(type, cascades),
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
    if (source[name] === undefined || (step.isInherited && !Object.hasOwn(source, name))) continue;
    if (source[name] === null && step.dropsNull) continue;
    assign(step, assembly);
  }
}

/** The same as one function, in which each property has a place of its own: some three times as fast. */
function generateAssembly(steps: readonly Step[]): Assemble {
  const code = steps.map(({ name, key, isInherited, isShadowing, dropsNull, transforms, revive }, index) => {
    const [from, to] = [`source[${JSON.stringify(name)}]`, `instance[${JSON.stringify(key)}]`];
    const isSent = isInherited
      ? `${from} !== undefined && Object.hasOwn(source, ${JSON.stringify(name)})`
      : `${from} !== undefined`;
    const isTaken = dropsNull ? `${isSent} && ${from} !== null` : isSent;
    if (transforms !== undefined || isShadowing || (revive !== undefined && key !== name))
      return `if (${isTaken}) assign(steps[${index}], { instance, source, place });`;
    if (revive === undefined) return `if (${isTaken}) ${to} = ${from};`;
    const child = `new ChildPlace(place, ${JSON.stringify(name)}, instance)`;
    return `if (${isTaken}) ${to} = steps[${index}].revive(${from}, ${child});`;
  });
  const parameters = ['steps', 'assign', 'ChildPlace'];
  const make = new Function(...parameters, `return (instance, source, place) => {${code.join('\n')}}`);
  return make(steps, assign, ChildPlace) as Assemble;
}

function assign(step: Step, assembly: Assembly): void {
  const { instance, source, place } = assembly;
  const { name, key, transforms, revive } = step;
  if (transforms !== undefined) assignTransformed(step, transforms, assembly);
  else if (revive === undefined) put(step, instance, source[name]);
  else {
    const child = new ChildPlace(place, name, key === name ? instance : renamed(step, instance));
    put(step, instance, revive(source[name], child));
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

/** A transform sees the value once, when all of it is there. */
function assignTransformed(
  step: Step,
  transforms: readonly PropertyTransform[],
  { instance, source, place }: Assembly,
): void {
  const { name, key, revive } = step;
  const { pending } = place.revival;
  const revived: Holder = { [name]: source[name] };
  const set = (): void => {
    const transformed = transforms.reduce(
      (value, transform) => transform(value, { key, source }),
      revived[name],
    );
    put(step, instance, transformed);
  };
  const before = pending.length;
  if (revive) revived[name] = revive(source[name], new ChildPlace(place, name, revived));
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
