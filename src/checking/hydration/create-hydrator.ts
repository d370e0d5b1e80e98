import type { ClassType } from '../../contract/class-type.js';
import type { JsonObject } from '../../contract/json-schema.js';
import type { Hydrate, Hydrated, ReviewFault } from '../../contract/tool-definition.js';
import type { PropertyModel, ValueType } from '../../schema/value-type.js';
import { childPath, type Place, type Revival, type Revive } from './revival.js';
import { reviverOf } from './reviver-of.js';
import { runValidations } from './run-validations.js';

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
    let value: unknown;
    const put = (later: unknown) => {
      value = later;
    };
    const revival: Revival = { faults: [], pending: [], validations: [], doubtful: [] };
    put(revive(args, { revival, path: '', put }));
    const finish = (): Hydrated =>
      revival.faults.length > 0 ? { ok: false, faults: revival.faults } : { ok: true, value };
    if (revival.pending.length === 0 && (!needsValidator(revival) || revival.faults.length > 0))
      return finish();
    return settle(revival).then(finish);
  };
  return Object.assign(hydrate, { review: (args: JsonObject) => review(revive, args) });
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
  return validations.some(({ isCertain }) => isCertain) || (validations.length > 0 && doubtful.length > 0);
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
