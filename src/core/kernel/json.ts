/** An object with any fields. */
export type Fields = Readonly<Record<string, unknown>>;

/** Whether a value is an object, which may be an array. */
export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** Whether a value is an object and not an array. */
export function isRecord(value: unknown): value is Fields {
  return isObject(value) && !Array.isArray(value);
}

/**
 * A field that must be a string.
 *
 * @throws TypeError if it is missing or something else.
 */
export function requiredText(fields: Fields, name: string): string {
  const value = fields[name];
  if (typeof value !== 'string') throw new TypeError(`its argument '${name}' is not a string`);
  return value;
}

/** An object with the fields that a test accepts. */
export function filterFields<Value>(
  fields: Readonly<Record<string, Value>>,
  isKept: (name: string, value: Value) => boolean,
): Record<string, Value> {
  return Object.fromEntries(Object.entries(fields).filter(([name, value]) => isKept(name, value)));
}

/** An object without some of its fields. */
export function omitFields<Of extends object, Name extends keyof Of>(
  fields: Of,
  ...names: readonly Name[]
): Omit<Of, Name> {
  return filterFields(fields as never, (name) => !names.includes(name as never)) as never;
}

/** An object with the same names and other values. */
export function mapFields<Value, Mapped>(
  fields: Readonly<Record<string, Value>>,
  map: (value: Value, name: string) => Mapped,
): Record<string, Mapped> {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, map(value, name)]));
}

/** An object without the fields that are undefined. */
export function withoutUndefined<Fields extends object>(fields: Fields): Fields {
  const defined = {};
  for (const key of Object.keys(fields)) {
    const field = fields[key as keyof Fields];
    if (field !== undefined) setOwn(defined, key, field);
  }
  return defined as Fields;
}

/** The JSON Schema type of a value; whole numbers are `number`. */
export function jsonType(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

/** Parses JSON; `undefined` if the text is not JSON. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Whether an object has no class: created by `{}`, in any realm, or without a prototype. */
export function isPlainObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null || Object.getPrototypeOf(prototype) === null;
}

/**
 * Copies received JSON, so that changes of the original have no effect. Parts that are nested too deeply are returned
 * without a copy.
 */
export function copyOfJson(value: unknown): unknown {
  if (!isObject(value)) return value;
  try {
    return copy(value);
  } catch {
    return value;
  }
}

function copy(value: object): object {
  if (Array.isArray(value)) return value.map((part: unknown) => (isObject(part) ? copy(part) : part));
  const copied: Record<string, unknown> = { ...value };
  // Existing fields can be assigned, whatever their names.
  for (const key in copied) {
    const part = copied[key];
    if (isObject(part)) copied[key] = copy(part);
  }
  return copied;
}

/**
 * Sets a field of our own object, whatever its name. Plain assignment of names like `toString` fails if
 * `Object.prototype` is frozen.
 */
export function setOwn(holder: object, key: PropertyKey, value: unknown): void {
  if (key in Object.prototype)
    Object.defineProperty(holder, key, { value, configurable: true, enumerable: true, writable: true });
  else (holder as Record<PropertyKey, unknown>)[key] = value;
}

/** The path of a child, with dots: `items` and `0` are `items.0`; the path of the root is empty. */
export function childPath(path: string, key: string | number): string {
  return path === '' ? String(key) : `${path}.${key}`;
}

/** A key as a segment of a JSON pointer (RFC 6901). */
export function pointerStep(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}

/** The key in a segment of a JSON pointer. */
export function keyOfStep(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~');
}

/** JSON text with sorted keys, because databases may change the order of keys. */
export function canonicalJson(value: unknown): string {
  return isCanonical(value) ? JSON.stringify(value) : written(value);
}

/** Whether `JSON.stringify` already writes a value canonically: most arguments have one or two keys. */
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
  if (!isObject(value)) return JSON.stringify(value) ?? 'null';
  if (Array.isArray(value)) return `[${value.map((item) => written(item ?? null)).join(',')}]`;
  let members = '';
  for (const key of Object.keys(value).sort()) {
    const member = (value as Readonly<Record<string, unknown>>)[key];
    if (member === undefined) continue;
    members += `${members === '' ? '' : ','}${JSON.stringify(key)}:${written(member)}`;
  }
  return `{${members}}`;
}

/** A copy of a value as JSON, with big integers as digits; `undefined` if JSON cannot represent it. */
export function plainJson(value: unknown): unknown {
  try {
    const text = textOfJson(value);
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A value as JSON, with big integers as digits. Tries without a replacer first, because big integers are rare. */
export function textOfJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return JSON.stringify(value, (_key, field: unknown) =>
      typeof field === 'bigint' ? field.toString() : field,
    );
  }
}

/** An owner as text; equal owners have equal texts. */
export function ownerText(owner: unknown): string | undefined {
  return owner === undefined ? undefined : canonicalJson(owner);
}

/** The deepest level that is searched: data may be circular. */
const MAX_DEPTH = 100;

/**
 * Whether JSON represents an object completely: strings, finite numbers, arrays, and objects with own fields. It runs
 * for each result, so it allocates nothing. If unsure, it returns false, and slower code checks the object.
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

/** Objects in an array usually have the same class. */
let lastOrdinary: object | undefined;

/** Whether the objects of a prototype consist only of their own fields. */
const ordinary = new WeakMap<object, boolean>();

/** Members of objects that are more than their fields: promises, iterators, streams, errors and serializers. */
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
