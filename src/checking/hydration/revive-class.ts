import type { JsonObject } from '../../contract/json-schema.js';
import { classModel } from '../../schema/class-model.js';
import type {
  ClassModel,
  PropertyModel,
  RemainingRule,
  TaggedType,
  ValueType,
} from '../../schema/value-type.js';
import { childPath, type Place, type Revive, type ReviverOf } from './revival.js';
import { type ValidationNeed, validationNeed } from './validation-need.js';

type ClassValue = ValueType & { readonly kind: 'class' };

/** A property with the reviver of its type, if that needs one. */
interface Step {
  readonly property: PropertyModel;
  readonly key: string;
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
}

const plans = new WeakMap<ClassModel, Plan>();

/**
 * Instances of a DTO class. Only properties of the class are taken over, so nothing else that was sent
 * reaches the instance. With `cascaded`, class-validator comes here from the object around it.
 */
export function reviveClass(type: ClassValue, cascaded: boolean, reviverOf: ReviverOf): Revive {
  return (value, place) => {
    const plan = planOf(type, reviverOf);
    const instance = build(plan, value as JsonObject, place);
    for (const holds of plan.rules) if (!holds(instance)) place.revival.doubtful.push(instance);
    if (plan.need !== 'none' && !cascaded) {
      const isCertain = plan.need === 'always';
      place.revival.validations.push({ instance, path: place.path, groups: plan.groups, isCertain });
    }
    return instance;
  };
}

/** Instances of the class that the tag names. The schema lets no other tag through. */
export function reviveTagged(type: TaggedType, cascaded: boolean, reviverOf: ReviverOf): Revive {
  const { property, keepProperty, groups } = type;
  const variants = new Map(
    type.variants.map((variant) => [
      variant.tag,
      reviveClass({ kind: 'class', class: variant.class, groups }, cascaded, reviverOf),
    ]),
  );
  return (value, place) => {
    const tag = Object.hasOwn(value as object, property) ? (value as JsonObject)[property] : undefined;
    const instance = variants.get(tag as string)?.(value, place);
    if (keepProperty && instance !== undefined) (instance as JsonObject)[property] = tag;
    return instance ?? value;
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
    steps: settable.map((property) => ({
      property,
      key: property.key ?? property.name,
      revive: reviverOf(property.type, property.cascades ?? false),
    })),
    groups,
    need: validationNeed(read.model),
    rules: typeof read.model.remaining === 'string' ? [] : read.model.remaining,
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

function build(plan: Plan, source: JsonObject, place: Place): object {
  const instance = new plan.create();
  for (const step of plan.steps) {
    const { name, required, nullable } = step.property;
    if (!Object.hasOwn(source, name)) continue;
    // `null` for an optional property means absent (design §4).
    if (source[name] === null && !required && !nullable) continue;
    assign(step, { instance, source, place });
  }
  return instance;
}

interface Assignment {
  readonly instance: Record<string, unknown>;
  readonly source: JsonObject;
  readonly place: Place;
}

function assign({ property, key, revive }: Step, { instance, source, place }: Assignment): void {
  const { name, transforms = [] } = property;
  let value = source[name];
  const set = () => {
    instance[key] = transforms.reduce((before, transform) => transform(before, { key, source }), value);
  };
  if (revive === undefined) {
    set();
    return;
  }
  const { revival } = place;
  const before = revival.pending.length;
  const put = (late: unknown) => {
    value = late;
    if (transforms.length === 0) set();
  };
  value = revive(value, { revival, path: childPath(place.path, name), put });
  const later = revival.pending.slice(before);
  // A transform sees the value once, when all of it is there.
  if (transforms.length > 0 && later.length > 0) revival.pending.push(Promise.all(later).then(set));
  else set();
}
