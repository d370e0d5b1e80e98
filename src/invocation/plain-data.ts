/** How deep data is looked into before it counts as odd: it may be a ring. */
const MAX_DEPTH = 100;

/**
 * Whether JSON shows all there is in an object: texts, finite numbers, lists, and objects with fields of their
 * own. It runs for each result, so that it makes nothing; what it cannot be sure of is none (`formOf` finds out).
 */
export function isPlainData(value: object, depth = 0): boolean {
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) if (!isPlainPart(value[index], depth)) return false;
    return true;
  }
  const prototype: object | null = Object.getPrototypeOf(value);
  const isBase = prototype === null || prototype === Object.prototype;
  if (!isBase && !isOrdinary(prototype)) return value instanceof Date && !Number.isNaN(value.getTime());
  let isEmpty = true;
  for (const key in value) {
    isEmpty = false;
    if (!isPlainPart((value as Readonly<Record<string, unknown>>)[key], depth)) return false;
  }
  return !isEmpty || (isBase && Reflect.ownKeys(value).length === 0);
}

function isPlainPart(part: unknown, depth: number): boolean {
  switch (typeof part) {
    case 'string':
    case 'boolean':
    case 'undefined':
      return true;
    case 'number':
      return Number.isFinite(part);
    case 'object':
      return part === null || (depth < MAX_DEPTH && isPlainData(part, depth + 1));
    default:
      return false;
  }
}

/** Of each prototype whether its objects are their own fields and nothing else. */
const ordinary = new WeakMap<object, boolean>();

/** What objects have that are more than their fields: values to come, to go through, to read, or to be told by. */
const MEANINGFUL = [
  ...['toJSON', 'then', 'message', 'getStream', 'arrayBuffer', 'byteLength'],
  ...[Symbol.iterator, Symbol.asyncIterator],
];

function isOrdinary(prototype: object): boolean {
  const known = ordinary.get(prototype);
  if (known !== undefined) return known;
  const answer = MEANINGFUL.every((name) => !(name in prototype));
  ordinary.set(prototype, answer);
  return answer;
}
