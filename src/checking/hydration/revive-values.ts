import { Buffer } from 'node:buffer';
import type {
  JsonObject,
  StandardIssue,
  StandardResult,
  StandardSchema,
} from '../../contract/json-schema.js';
import type { ArgumentFault } from '../../contract/tool.js';
import { setOwn } from '../../kernel/json.js';
import type { ValueType } from '../../schema/value-type.js';

/** An array whose items need reviving. */
export function reviveItems(reviveItem: Revive): Revive {
  return (value, place) => {
    const source = value as readonly unknown[];
    const items = new Array<unknown>(source.length);
    const holder = items as unknown as Holder;
    for (let index = 0; index < source.length; index += 1) {
      items[index] = reviveItem(source[index], new ChildPlace(place, index, holder));
    }
    return items;
  };
}

/** An object used as a map, whose values need reviving. */
export function reviveValues(reviveValue: Revive): Revive {
  return (value, place) => {
    const values: Holder = {};
    for (const [key, one] of Object.entries(value as object)) {
      setOwn(values, key, reviveValue(one, new ChildPlace(place, key, values)));
    }
    return values;
  };
}

/** A `Set` from an array. What comes later is taken over when all of it is there. */
export function reviveSet(reviveArray: Revive | undefined): Revive {
  return collect(reviveArray, (items) => new Set(items as readonly unknown[]));
}

/** A `Map` from an object, whose keys are text whatever they stand for. */
export function reviveMap(reviveObject: Revive | undefined, keys?: 'number'): Revive {
  return collect(reviveObject, (values) => {
    const entries: [unknown, unknown][] = Object.entries(values as object);
    return new Map(keys === 'number' ? entries.map(([key, value]) => [Number(key), value]) : entries);
  });
}

function collect(revive: Revive | undefined, build: (plain: unknown) => unknown): Revive {
  return (value, place: Place) => {
    const before = place.revival.pending.length;
    const plain = revive ? revive(value, place) : value;
    const later = place.revival.pending.slice(before);
    if (later.length > 0) {
      place.revival.pending.push(Promise.all(later).then(() => place.put(build(plain))));
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

function textual(message: string, read: (text: string) => unknown): Revive {
  return (value, { revival, path }) => {
    const revived = typeof value === 'string' ? read(value) : undefined;
    if (revived === undefined) revival.faults.push({ path, message });
    return revived;
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
export function reviveStandard(standard: StandardSchema): Revive {
  return (value, place) => takeStandard(standard['~standard'].validate(value), place);
}

/** What a Standard Schema answered, or will answer, about a value. */
export function takeStandard(
  result: ReturnType<StandardSchema['~standard']['validate']>,
  place: Place,
): unknown {
  if (!('then' in result)) return settle(result, place);
  place.revival.pending.push(result.then((later) => place.put(settle(later, place))));
  return undefined;
}

function settle(result: StandardResult<unknown>, { revival, path }: Place): unknown {
  if (result.issues === undefined) return result.value;
  revival.faults.push(
    ...result.issues.map((issue) => ({ path: pathOf(issue, path), message: issue.message })),
  );
  return undefined;
}

function pathOf({ path: steps = [] }: StandardIssue, path: string): string {
  const keys = steps.map((step) => (typeof step === 'object' ? step.key : step));
  return keys.reduce<string>((joined, key) => childPath(joined, String(key)), path);
}

/** An instance that class-validator has to look at once everything is revived. */
export interface Validation {
  readonly instance: object;
  readonly path: string;
  readonly groups?: readonly string[];
  /** Rules that only class-validator can judge; otherwise it is asked only if some rule does not hold. */
  readonly isCertain: boolean;
}

/** What comes up while one call's arguments are revived. */
export interface Revival {
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
  readonly revival: Revival;
  /** With dots: `items.0.sku`. */
  readonly path: string;
  /** Replaces the value when it comes later. */
  put(value: unknown): void;
}

/** What a value belongs to: an instance, an array, an object used as a map. */
export type Holder = Record<PropertyKey, unknown>;

/** The place of a child in its holder. Its path is put together only for those who ask: most values are right. */
export class ChildPlace implements Place {
  readonly revival: Revival;
  readonly #parent: Place;
  readonly #name: string | number;
  readonly #holder: Holder;

  constructor(parent: Place, name: string | number, holder: Holder) {
    this.revival = parent.revival;
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
export type Revive = (value: unknown, place: Place) => unknown;

/** The reviver of a type, handed to those that revive parts. */
export type ReviverOf = (type: ValueType, cascaded?: boolean) => Revive | undefined;

/** The path of a child. */
export function childPath(path: string, key: string | number): string {
  return path === '' ? String(key) : `${path}.${key}`;
}
