import type { ClassType } from '../../contract/declaration.js';
import type { JsonObject } from '../../contract/json-schema.js';
import type { Hydrate, Hydrated, ReviewFault } from '../../contract/tool.js';
import { classModel } from '../../schema/class-model.js';
import type { PropertyModel, ValueType } from '../../schema/value-type.js';
import { validateInstance } from '../../validators/validation-rules.js';
import { reviveClass, reviveTagged } from './revive-class.js';
import { reviveDescribed } from './revive-described.js';
import {
  childPath,
  type Place,
  type Revival,
  type Revive,
  reviveBigInt,
  reviveBuffer,
  reviveBytes,
  reviveDate,
  reviveItems,
  reviveMap,
  reviveSet,
  reviveStandard,
  reviveUrl,
  reviveValues,
  type Validation,
} from './revive-values.js';

/** What the arguments are: properties of their own, a DTO class that takes all of them, or any other type. */
export type HydrationSource =
  | { readonly properties: readonly PropertyModel[] }
  | { readonly class: ClassType; readonly groups?: readonly string[] }
  | { readonly type: ValueType };

/**
 * What turns arguments that fit the schema into what the tool takes: instances of DTOs, dates, URLs, bytes,
 * parsed values. `undefined` where nothing has to be done, so that the common call costs nothing.
 *
 * The function returns synchronously unless class-validator or an asynchronous schema has to be asked. It
 * throws only what the author's own code throws: constructors, `@Transform`, custom validators.
 *
 * @example
 * ```ts
 * const hydrate = createHydrator({ class: CreateOrderDto });
 * const hydrated = await hydrate?.({ sku: 'A-1', due: '2030-01-01T00:00:00Z' });
 * // { ok: true, value: CreateOrderDto { sku: 'A-1', due: Date } }
 * ```
 */
export function createHydrator(source: HydrationSource): Hydrate | undefined {
  const revive = reviverFor(source);
  if (revive === undefined) return undefined;
  const hydrate = (args: JsonObject): Hydrated | Promise<Hydrated> => {
    const whole = new WholePlace();
    whole.put(revive(args, whole));
    const { pending, faults } = whole.revival;
    return pending.length === 0 && (faults.length > 0 || !needsValidator(whole.revival))
      ? hydrated(whole)
      : settle(whole.revival).then(() => hydrated(whole));
  };
  return Object.assign(hydrate, { review: (args: JsonObject) => review(revive, args) });
}

/** Where all arguments belong. */
class WholePlace implements Place {
  readonly revival: Revival = { faults: [], pending: [], validations: [], doubtful: [] };
  readonly path = '';
  value: unknown;

  put(value: unknown): void {
    this.value = value;
  }
}

function hydrated({ revival: { faults }, value }: WholePlace): Hydrated {
  return faults.length > 0 ? { ok: false, faults } : { ok: true, value };
}

/** What cannot even be revived says nothing: the schema has told what is wrong with it. */
async function review(revive: Revive, args: JsonObject): Promise<readonly ReviewFault[]> {
  const revival: Revival = { faults: [], pending: [], validations: [], doubtful: [], isReview: true };
  try {
    revive(args, { revival, path: '', put: () => {} });
    await Promise.all(revival.pending);
    return await runValidations(revival.validations);
  } catch {
    return [];
  }
}

function needsValidator({ validations, doubtful }: Revival): boolean {
  if (validations.length === 0) return false;
  return doubtful.length > 0 || validations.some(({ isCertain }) => isCertain);
}

function reviverFor(source: HydrationSource): Revive | undefined {
  if ('properties' in source) return reviveProperties(source.properties);
  if ('class' in source) return reviverOf({ kind: 'class', class: source.class, groups: source.groups });
  return reviverOf(source.type);
}

/** Faults of the values come first: an instance that lacks some would only get faults that follow from it. */
async function settle(revival: Revival): Promise<void> {
  await Promise.all(revival.pending);
  if (revival.faults.length > 0 || !needsValidator(revival)) return;
  for (const { path, message } of await runValidations(revival.validations))
    revival.faults.push({ path, message });
}

/** The arguments with those properties revived that need it; all others stay as they are. */
function reviveProperties(properties: readonly PropertyModel[]): Revive | undefined {
  const steps = properties.flatMap(({ name, type }) => {
    const revive = reviverOf(type);
    return revive === undefined ? [] : [{ name, revive }];
  });
  if (steps.length === 0) return undefined;
  return (args, { revival, path }: Place) => {
    const revived: JsonObject = { ...(args as JsonObject) };
    for (const { name, revive } of steps) {
      if (!Object.hasOwn(revived, name)) continue;
      const put = (later: unknown) => {
        revived[name] = later;
      };
      put(revive(revived[name], { revival, path: childPath(path, name), put }));
    }
    return revived;
  };
}

/**
 * The reviver of a type; nothing where JSON's own value is the tool's, so that what needs no work gets none.
 * `cascaded`: class-validator gets to the value by itself, from the object around it.
 */
function reviverOf(type: ValueType, cascaded = false): Revive | undefined {
  // A Standard Schema has its own view of `null`; elsewhere the schema has let it through as a value.
  if (type.kind === 'schema') return type.standard && reviveStandard(type.standard);
  const revive = reviverOfValue(type, cascaded);
  return revive && ((value, place) => (value === null ? null : revive(value, place)));
}

function reviverOfValue(type: ValueType, cascaded: boolean): Revive | undefined {
  switch (type.kind) {
    case 'date':
      return reviveDate;
    case 'url':
      return reviveUrl;
    case 'bytes':
      return reviveBytes;
    case 'buffer':
      return reviveBuffer;
    case 'bigint':
      return reviveBigInt;
    case 'array': {
      const item = reviverOf(type.items, cascaded);
      const array = item && reviveItems(item);
      return type.collection === 'set' ? reviveSet(array) : array;
    }
    case 'record': {
      // class-validator does not go into the values of plain objects, but it does into those of a Map.
      const value = reviverOf(type.values, cascaded && type.collection === 'map');
      const record = value && reviveValues(value);
      return type.collection === 'map' ? reviveMap(record, type.keys) : record;
    }
    case 'class':
      return reviveClass(type, cascaded, reviverOf);
    case 'described':
      return reviveDescribed(type, reviverOf);
    case 'tagged':
      return reviveTagged(type, cascaded, reviverOf);
    default:
      return undefined;
  }
}

/** Lets class-validator judge the instances; paths carry the names that the properties have in JSON. */
async function runValidations(validations: readonly Validation[]): Promise<readonly ReviewFault[]> {
  const faults = await Promise.all(
    validations.map(async ({ instance, path, groups, isCertain }) => {
      const nameOf = (owner: object, key: string) => jsonName({ owner, key, groups });
      try {
        return await validateInstance(instance, { path, groups, nameOf });
      } catch (error) {
        // Where all rules are class-validator's own, it is the value that they could not bear.
        if (isCertain) throw error;
        return [{ path, message: 'has a value that its rules cannot judge', isAuthored: false }];
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
