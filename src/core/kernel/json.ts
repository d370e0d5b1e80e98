/** Whether a value is an object with keys, and no list. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** An object without the fields that are undefined. */
export function withoutUndefined<Fields extends object>(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, field]) => field !== undefined)) as Fields;
}

/** The type that JSON Schema has for a value; whole numbers are numbers. */
export function jsonType(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

/** What a text is the JSON of; `undefined` where it is none. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Whether an object is of no class: made by `{}`, or without a prototype. */
export function isPlainObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/**
 * A copy of what was sent, which stays as it is whatever is done to the original. What is nested too deep to be
 * copied is given as it is.
 */
export function copyOfJson(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  try {
    return copy(value);
  } catch {
    return value;
  }
}

function copy(value: object): object {
  return Array.isArray(value) ? value.map(copyOfPart) : copyOfFields(value);
}

/** A field that is there already takes any value, whatever its name. */
function copyOfFields(value: object): object {
  const copied: Record<string, unknown> = { ...value };
  for (const key in copied) {
    const part = copied[key];
    if (typeof part === 'object' && part !== null) copied[key] = copy(part);
  }
  return copied;
}

function copyOfPart(part: unknown): unknown {
  return typeof part === 'object' && part !== null ? copy(part) : part;
}

/**
 * Sets a field of an object of ours, whatever its name. Plain assignment of `toString` and the like fails where
 * `Object.prototype` is frozen.
 */
export function setOwn(holder: object, key: PropertyKey, value: unknown): void {
  if (key in Object.prototype)
    Object.defineProperty(holder, key, { value, configurable: true, enumerable: true, writable: true });
  else (holder as Record<PropertyKey, unknown>)[key] = value;
}

/** A key as a step of a JSON pointer (RFC 6901). */
export function pointerStep(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}

/** The key that a step of a JSON pointer stands for. */
export function keyOfStep(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~');
}

/** JSON text that does not depend on the order of keys, which databases may change. */
export function canonicalJson(value: unknown): string {
  return isCanonical(value) ? JSON.stringify(value) : written(value);
}

/** Whether JSON writes a value canonically as it is: most arguments have a key or two. */
function isCanonical(value: unknown): boolean {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return true;
    case 'number':
      return Number.isFinite(value);
    case 'object':
      return value === null || (Array.isArray(value) ? value.every(isCanonical) : areSorted(value));
    default:
      return false;
  }
}

function areSorted(value: object): boolean {
  if ('toJSON' in value) return false;
  let last: string | undefined;
  for (const key of Object.keys(value)) {
    if (last !== undefined && key < last) return false;
    if (!isCanonical((value as Readonly<Record<string, unknown>>)[key])) return false;
    last = key;
  }
  return true;
}

function written(value: unknown): string {
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : 'null';
  if (typeof value === 'bigint') return `"${value}"`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  if (Array.isArray(value)) return `[${value.map((item) => written(item ?? null)).join(',')}]`;
  let members = '';
  for (const key of Object.keys(value).sort()) {
    const member = (value as Readonly<Record<string, unknown>>)[key];
    if (member === undefined) continue;
    members += `${members === '' ? '' : ','}${JSON.stringify(key)}:${written(member)}`;
  }
  return `{${members}}`;
}

/** A copy of what JSON shows of a value, big integers as their digits; `undefined` where JSON cannot say it. */
export function plainJson(value: unknown): unknown {
  try {
    const text = textOfJson(value);
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A value as JSON, big integers as their digits. Without a replacer first: values with big integers are rare. */
export function textOfJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return JSON.stringify(value, (_key, field: unknown) =>
      typeof field === 'bigint' ? field.toString() : field,
    );
  }
}

/** An owner as text that is the same for the same owner. */
export function ownerText(owner: unknown): string | undefined {
  return owner === undefined ? undefined : canonicalJson(owner);
}

/** How deep data is looked into before it counts as odd: it may be a ring. */
const MAX_DEPTH = 100;

/**
 * Whether JSON shows all there is in an object: texts, finite numbers, lists, and objects with fields of their
 * own. It runs for each result, so that it makes nothing; what it is not sure of is for others to look at.
 */
export function isPlainData(value: object, depth = 0): boolean {
  const prototype: object | null = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== lastOrdinary) {
    if (Array.isArray(value)) return isPlainList(value, depth);
    if (prototype !== null && !isOrdinary(prototype))
      return value instanceof Date && !Number.isNaN(value.getTime());
  }
  let isEmpty = true;
  for (const key in value) {
    isEmpty = false;
    const part = (value as Readonly<Record<string, unknown>>)[key];
    if (typeof part !== 'string' && !isPlainPart(part, depth)) return false;
  }
  return !isEmpty || (isPlainObject(value) && Reflect.ownKeys(value).length === 0);
}

function isPlainList(list: readonly unknown[], depth: number): boolean {
  for (let index = 0; index < list.length; index += 1) {
    const item = list[index];
    if (typeof item !== 'string' && !isPlainPart(item, depth)) return false;
  }
  return true;
}

function isPlainPart(part: unknown, depth: number): boolean {
  if (typeof part === 'object') return part === null || (depth < MAX_DEPTH && isPlainData(part, depth + 1));
  if (typeof part === 'number') return Number.isFinite(part);
  return typeof part === 'string' || typeof part === 'boolean' || part === undefined;
}

/** Rows of a list are of the same class. */
let lastOrdinary: object | undefined;

/** Of each prototype whether its objects are their own fields and nothing else. */
const ordinary = new WeakMap<object, boolean>();

/** What objects have that are more than their fields: values to come, to go through, to read, or to be told by. */
const MEANINGFUL = [
  ...['toJSON', 'then', 'message', 'getStream', 'arrayBuffer', 'byteLength'],
  ...[Symbol.iterator, Symbol.asyncIterator],
];

function isOrdinary(prototype: object): boolean {
  const known = ordinary.get(prototype);
  if (known !== undefined) {
    if (known) lastOrdinary = prototype;
    return known;
  }
  const answer = MEANINGFUL.every((name) => !(name in prototype));
  ordinary.set(prototype, answer);
  return answer;
}
