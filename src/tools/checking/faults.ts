import type { JsonSchema } from '../../core/contract/json-schema.js';
import type { ArgumentFault, ReviewFault } from '../../core/contract/tool.js';
import { cached } from '../../core/kernel/cached.js';
import { losesDigits } from '../../core/kernel/exact-json.js';
import { keyOfStep } from '../../core/kernel/json.js';
import { nearestName } from '../../core/kernel/nearest-name.js';
import { formatTest, patternOf } from './formats.js';
import type { SchemaError } from './interpreter/interpret-schema.js';
import { branchTypes, isOfType, levelOf, resolveReference, unionChooser } from './schema-level.js';

/** A fault with the data for hints. */
export interface ValueFault extends ArgumentFault {
  /** A required key that was not sent. */
  readonly isMissing?: boolean;
  /** The allowed values, if the value was not one of them. */
  readonly choice?: { readonly sent: unknown; readonly allowed: readonly unknown[] };
}

interface PlacedFault extends ValueFault {
  /** The keys and indices of the path. */
  readonly steps: readonly string[];
}

/**
 * Converts the validator's errors to faults: one for each path and cause, in the order of the schema. Beyond a few
 * hundred they are only counted.
 */
export function describeErrors(errors: readonly SchemaError[], schema: JsonSchema): readonly ValueFault[] {
  // Beyond the limit, the validator repeats its last error.
  const reported = new Set(errors);
  const messages = new Map<string, Set<string>>();
  const root = levelOf(schema);
  const distinct: { readonly fault: PlacedFault; readonly ranks: readonly number[] }[] = [];
  for (const error of reported) {
    const fault = describe(error, schema);
    const before = cached(messages, fault.path, () => new Set());
    if (before.has(fault.message)) continue;
    before.add(fault.message);
    // Unknown paths come last, in their original order.
    let level = root;
    const ranks = fault.steps.map((step) => {
      const position = level.positions.get(step);
      level = level.below(step);
      if (position !== undefined) return position;
      return /^\d+$/.test(step) ? Number(step) : Number.MAX_SAFE_INTEGER;
    });
    distinct.push({ fault, ranks });
  }
  distinct.sort(({ ranks: one }, { ranks: other }) => {
    const differing = one.findIndex((rank, index) => rank !== other[index]);
    if (differing < 0 || differing >= other.length) return one.length - other.length;
    return (one[differing] ?? 0) - (other[differing] ?? 0);
  });
  const unreported = Array<ValueFault>(errors.length - reported.size).fill(UNREPORTED);
  return [...distinct.map(({ fault }) => fault), ...unreported];
}

function describe(error: SchemaError, schema: JsonSchema): PlacedFault {
  const fault = describeValue(error, schema);
  return error.isOfKey ? { ...fault, message: `this key ${fault.message}` } : fault;
}

function describeValue(error: SchemaError, schema: JsonSchema): PlacedFault {
  const { keyword, key, given, data } = error;
  const at = placeOf(error.instancePath);
  switch (keyword) {
    case 'required':
      return { ...at(key, 'is required'), isMissing: true };
    case 'additionalProperties':
    case 'unevaluatedProperties': {
      const patterns = Object.keys(error.schema.patternProperties ?? {}).map((pattern) => `"${pattern}"`);
      const unmatched = `, and this key does not match pattern ${patterns.join(' or ')}`;
      return at(key, `is not a known property${patterns.length === 0 ? '' : unmatched}`);
    }
    case 'propertyNames':
      return at(key, 'is not a known property');
    case 'false schema':
      return at(undefined, 'must not be sent');
    case 'enum':
      return choice(at, data, given as readonly unknown[]);
    case 'const':
      return at(undefined, `must be ${JSON.stringify(given)}`);
    case 'type':
      return wrongType(at, [given].flat(), data);
    case 'anyOf':
    case 'oneOf':
      return describeUnion(error, schema);
    case 'format':
    case 'pattern':
      return at(undefined, describeText(error));
    default:
      return at(undefined, error.message ?? `must satisfy ${keyword}`);
  }
}

/** Examples of date formats; models know the other formats by their names. */
const EXAMPLES: Readonly<Record<string, string>> = {
  'date-time': '2026-01-31T09:30:00Z',
  date: '2026-01-31',
  time: '09:30:00Z',
  duration: 'P1DT2H30M',
};
const FORMATS: ReadonlySet<string> = new Set([
  ...Object.keys(EXAMPLES),
  ...['email', 'uri', 'url', 'uuid', 'ipv4', 'ipv6', 'hostname'],
]);

/**
 * Some libraries add the pattern of a format, with hundreds of characters. The pattern is shown only if the value
 * already has the format.
 */
function describeText({ keyword, message, given, schema, data }: SchemaError): string {
  const format = String(schema.format);
  const own = message ?? `must satisfy ${keyword}`;
  if (!FORMATS.has(format)) return own;
  const example = Object.hasOwn(EXAMPLES, format) ? EXAMPLES[format] : undefined;
  const isPattern = keyword === 'pattern' && formatTest(format, 'string')?.(data) === true;
  const isFit = example !== undefined && (!isPattern || patternOf(String(given)).test(example));
  return `${isPattern ? own : `must match format "${format}"`}${isFit ? `, e.g. ${example}` : ''}`;
}

/** The message of a union: its tags, values or types, or that no branch matches. */
function describeUnion({ instancePath, data, given, message }: SchemaError, schema: JsonSchema): PlacedFault {
  const branches = given as readonly JsonSchema[];
  const at = placeOf(instancePath);
  const chosen = unionChooser(branches, schema)(data);
  if (chosen.kind === 'tag') {
    const { property, tags } = chosen;
    return choice((_key, message) => at(property, message), (data as JsonSchema)[property], tags);
  }
  const values = branchValues(branches, schema);
  if (values !== undefined && !values.includes(data)) return choice(at, data, values);
  const types = branchTypes(branches, schema);
  return types.length === 0 || types.some((type) => isOfType(data, type))
    ? at(undefined, message + formsOf(branches, schema))
    : wrongType(at, types, data);
}

/** The forms of a union, such as `: { id, note? } or string`; empty if that says nothing. */
function formsOf(branches: readonly JsonSchema[], root: JsonSchema): string {
  return cached(formTexts, branches, () => {
    const forms = new Set<string>();
    for (const branch of branches) {
      const { properties, required = [], format, pattern, ...schema } = resolveReference(branch, root);
      const names = [...new Set([...Object.keys(properties ?? {}), ...required])];
      const values = schema.const === undefined ? schema.enum : [schema.const];
      const types = [schema.type ?? []].flat().join(' or ');
      if (names.length > 0)
        forms.add(`{ ${names.map((name) => (required.includes(name) ? name : `${name}?`)).join(', ')} }`);
      else if (values !== undefined) forms.add(values.map((value) => JSON.stringify(value)).join(' or '));
      else if (types === '') return '';
      else if (format !== undefined) forms.add(`${types} of format "${format}"`);
      else forms.add(pattern === undefined ? types : `${types} of pattern "${pattern}"`);
    }
    return forms.size < 2 ? '' : `: ${[...forms].join(' or ')}`;
  });
}

const formTexts = new WeakMap<readonly JsonSchema[], string>();

/** Creates a fault at a path, or at a key in it. */
type At = (key: string | undefined, message: string) => PlacedFault;

function wrongType(at: At, types: readonly unknown[], sent: unknown): PlacedFault {
  const isNumber = types.includes('integer') || types.includes('number');
  const message = `must be ${types.join(' or ')}`;
  if (!isNumber || !losesDigits(sent)) return at(undefined, message);
  const digits = sent.length > MOST_DIGITS ? `${sent.slice(0, MOST_DIGITS)}…` : sent;
  const most = Number.MAX_SAFE_INTEGER;
  return at(undefined, `${message}, and digits of ${digits} would be lost; the largest value is ${most}`);
}

const MOST_DIGITS = 40;

function choice(at: At, sent: unknown, allowed: readonly unknown[]): PlacedFault {
  const message = cached(
    choiceMessages,
    allowed,
    () => `must be one of: ${allowed.map((value) => JSON.stringify(value)).join(', ')}`,
  );
  return { ...at(undefined, message), choice: { sent, allowed } };
}

/** Many faults may refer to the same long enum. */
const choiceMessages = new WeakMap<readonly unknown[], string>();

/** Converts a JSON pointer to a path with dots: `/items/0/sku` → `items.0.sku`. */
function placeOf(pointer: string): At {
  const place = pointer === '' ? [] : pointer.slice(1).split('/').map(keyOfStep);
  return (key, message) => {
    const steps = key === undefined ? place : [...place, key];
    return { path: steps.join('.'), message, steps };
  };
}

/** Further faults are counted, not listed, so that the answer stays short. */
const MAX_FAULTS = 50;
const MAX_LINE = 400;

/** A placeholder for each fault that is only counted. */
const UNREPORTED: ArgumentFault = { path: '', message: 'a further fault' };

/** The lines of the faults, for texts with their own first line. */
export function listFaults(faults: readonly ArgumentFault[]): readonly string[] {
  return faultLines(faults, '  - ');
}

/** The faults in one line, for messages with their own beginning. */
export function summarizeFaults(faults: readonly ArgumentFault[]): string {
  return faultLines(faults, '').join('; ');
}

function faultLines(faults: readonly ArgumentFault[], mark: string): readonly string[] {
  const lines: string[] = [];
  for (const fault of faults.slice(0, MAX_FAULTS)) {
    if (fault === UNREPORTED) continue;
    const place = fault.path === '' ? '' : `${fault.path}: `;
    // Cut first: keys and enums may have any length.
    const start = place.slice(0, 2 * MAX_LINE) + fault.message.slice(0, 2 * MAX_LINE);
    const line = start.slice(0, 2 * MAX_LINE).replace(/\s*[\n\r\u2028\u2029]+\s*/g, ' ');
    lines.push(mark + (line.length > MAX_LINE ? `${line.slice(0, MAX_LINE).toWellFormed()}…` : line));
  }
  const more = faults.length - lines.length;
  return more === 0 ? lines : [...lines, `… and ${more.toLocaleString('en-US')} more`];
}

/** Rejected arguments, with the facts for the message. */
interface Rejection {
  /** `tool`, or `prompt`, `resource`, `completion`. */
  readonly kind: string;
  readonly tool: string;
  readonly faults: readonly ValueFault[];
  readonly schema: JsonSchema;
  /** Paths of keys that the schema does not contain. */
  readonly removed: readonly string[];
  /** The arguments as they arrived. */
  readonly sent: unknown;
}

const MAX_EXCERPT = 300;
const MAX_HINTS = 5;
const MAX_NAME = 64;

/**
 * The text that the model receives for rejected arguments: every fault, then hints for misspelled keys and values,
 * and the sent arguments, because models repeat mistakes that they cannot see.
 */
export function describeRejection({ kind, tool, faults, schema, removed, sent }: Rejection): string {
  const lines = [`Validation failed for ${kind} '${tool}':`, ...listFaults(faults)];
  const missing = new Set(faults.filter(({ isMissing }) => isMissing).map(({ path }) => path));
  const hints: string[] = [];
  for (const path of removed.slice(0, MAX_HINTS)) {
    const steps = path.split('.');
    const name = steps.pop() ?? path;
    const { positions } = steps.reduce((level, step) => level.below(step), levelOf(schema));
    const known = [...positions.keys()];
    const place = path.slice(0, path.length - name.length);
    // A missing required key is the most likely meaning.
    const wanted = known.filter((candidate) => missing.has(place + candidate));
    const nearest = nearestName(name, wanted) ?? nearestName(name, known);
    if (nearest !== undefined)
      hints.push(`There is no property "${name.slice(0, MAX_NAME)}"; did you mean "${nearest}"?`);
  }
  for (const { path, message, choice } of faults.slice(0, MAX_HINTS)) {
    const { sent: value, allowed = [] } = choice ?? {};
    // The list of allowed values is too long for the line of their fault.
    const isCut = path.length + message.length + 2 > MAX_LINE;
    const nearest =
      isCut && typeof value === 'string' ? nearestName(value, textsNear(value, allowed)) : undefined;
    if (nearest !== undefined)
      hints.push(`For ${path.slice(0, MAX_NAME)}, did you mean ${JSON.stringify(nearest)}?`);
  }
  lines.push(...hints.slice(0, MAX_HINTS));
  const excerpt = excerptOf(sent);
  if (excerpt !== undefined) lines.push(`Received: ${excerpt}`);
  return lines.join('\n');
}

/** More texts are not compared letter by letter. */
const MAX_COMPARED = 256;

/** The texts of a long list with the longest start or end in common with the sent text: a typo changes only one end. */
function textsNear(sent: string, allowed: readonly unknown[]): readonly string[] {
  const texts = allowed.filter((value) => typeof value === 'string');
  if (texts.length <= MAX_COMPARED) return texts;
  const wanted = sent.slice(0, MAX_NAME).toLowerCase();
  return (['start', 'end'] as const).flatMap((side) => {
    const shared = texts.map((text) => sharedLength(wanted, text.toLowerCase(), side));
    const most = shared.reduce((one, other) => Math.max(one, other), 0);
    return texts.filter((_, index) => shared[index] === most).slice(0, MAX_COMPARED);
  });
}

/** The number of letters that two texts have in common at their start, or at their end. */
function sharedLength(one: string, other: string, side: 'start' | 'end'): number {
  const at = (text: string, index: number) => text.at(side === 'start' ? index : -1 - index);
  let length = 0;
  while (length < one.length && at(one, length) === at(other, length)) length += 1;
  return length;
}

function excerptOf(sent: unknown): string | undefined {
  let text: string | undefined;
  try {
    text = typeof sent === 'string' ? sent : JSON.stringify(sent);
  } catch {
    return undefined;
  }
  if (text === undefined || text.trim() === '' || text === '{}' || text === 'null') return undefined;
  const line = text.slice(0, MAX_EXCERPT).replace(/\s+/g, ' ').toWellFormed();
  return text.length > MAX_EXCERPT ? `${line}… (${text.length - MAX_EXCERPT} more characters)` : line;
}

/**
 * Merges the faults of the schema and of the author's rules. For the same path, messages that the author wrote come
 * first, and default messages of rules are dropped if the schema already reported the path.
 */
export function reviewedFaults(
  faults: readonly ValueFault[],
  found: readonly ReviewFault[],
): readonly ValueFault[] {
  const paths = new Set<string>();
  const worded: ValueFault[] = [];
  for (const fault of faults) {
    if (!paths.has(fault.path))
      worded.push(...found.filter(({ path, isAuthored }) => isAuthored && path === fault.path));
    paths.add(fault.path);
    worded.push(fault);
  }
  const others = found.filter(({ path, isAuthored }) =>
    [...paths].every(
      (known) =>
        path !== known && !path.startsWith(`${known}.`) && (isAuthored || !known.startsWith(`${path}.`)),
    ),
  );
  return [...worded, ...others];
}

/** All values of a union of constants, as some libraries write an enum; `undefined` for other unions. */
function branchValues(branches: readonly JsonSchema[], root: JsonSchema): readonly unknown[] | undefined {
  const values = branches.map((branch): readonly unknown[] | undefined => {
    const { const: only, type, enum: listed } = resolveReference(branch, root);
    if (only !== undefined) return [only];
    return type === 'null' ? [null] : listed;
  });
  return values.length > 0 && values.every((each) => each !== undefined) ? values.flat() : undefined;
}
