import type { JsonSchema } from '../../contract/json-schema.js';
import { isRecord } from '../../kernel/json.js';
import { KEYWORDS, mergeKeywords } from '../keywords.js';
import { type Plan, type Remark, type ScalarPlan, type ScalarType, UNWORDED, useOf } from './plan.js';

const BOUNDS: ReadonlySet<string> = new Set([
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'minItems', 'maxItems'],
]);

function isBoundOf(keyword: string, value: unknown): boolean {
  if (typeof value !== 'number') return false;
  if (keyword.endsWith('Items')) return Number.isInteger(value) && value >= 0;
  return keyword !== 'multipleOf' || value > 0;
}

/** The strictest bounds of numbers or of lengths of lists; what cannot be one keyword is said. */
export function boundsOf(
  parts: readonly JsonSchema[],
  group: 'number' | 'array',
): { readonly keywords: JsonSchema; readonly remarks: readonly Remark[] } {
  const isBound = ([keyword, value]: readonly [string, unknown]): boolean =>
    KEYWORDS.get(keyword)?.of === group && BOUNDS.has(keyword) && isBoundOf(keyword, value);
  const { allOf, ...keywords } = parts
    .map((part): JsonSchema => Object.fromEntries(Object.entries(part).filter(isBound)))
    .reduce(mergeKeywords, {});
  const unsaid = Array.isArray(allOf) ? (allOf as readonly JsonSchema[]) : [];
  const remarks = unsaid.flatMap((part) =>
    Object.entries(part).flatMap(([keyword, value]) => remarkOn(keyword, value)),
  );
  return { keywords, remarks };
}

/** The plans of constants: one for all of a type, one for each that has parts. */
export function constantPlans(values: readonly unknown[]): readonly Plan[] {
  const byType = new Map<ScalarType, unknown[]>();
  const others: Plan[] = [];
  for (const value of values) {
    const type = scalarTypeOf(value);
    if (type === undefined) others.push(constantOfParts(value));
    else byType.set(type, [...(byType.get(type) ?? []), value]);
  }
  const scalars = [...byType].map(([type, list]): ScalarPlan => {
    const isWhole = type === 'null' || (type === 'boolean' && list.length > 1);
    return { kind: 'scalar', ...UNWORDED, type, keywords: isWhole ? {} : { enum: list } };
  });
  return [...scalars, ...others];
}

function scalarTypeOf(value: unknown): ScalarType | undefined {
  if (value === null) return 'null';
  if (typeof value === 'string' || typeof value === 'boolean') return typeof value as 'string' | 'boolean';
  return typeof value === 'number' ? 'number' : undefined;
}

function constantOfParts(value: unknown): Plan {
  const fieldsOf = (rows: readonly (readonly [string, unknown])[]) =>
    rows.map(([name, part]) => ({ name, use: useOf(constantPlan(part)), isRequired: true }));
  if (isRecord(value)) return { kind: 'object', ...UNWORDED, fields: fieldsOf(Object.entries(value)) };
  const items = Array.isArray(value) ? value : [];
  const rows = items.map((item, index) => [placeName(index), item] as const);
  return { kind: 'tuple', ...UNWORDED, edits: ['tuple'], fields: fieldsOf(rows) };
}

function constantPlan(value: unknown): Plan {
  return constantPlans([value])[0] ?? constantOfParts(value);
}

/** The property for a place of a tuple. */
export function placeName(index: number): string {
  return `item_${index + 1}`;
}

/** The formats of text that are asked for; all others are said. */
const FORMATS: ReadonlySet<string> = new Set([
  ...['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid'],
]);

/** Look-arounds, references back, classes of Unicode and word boundaries: no grammar of tokens has them. */
const BEYOND_REGULAR = /\(\?(?![:])|\\[1-9kpPbB]/;

/** Whether a text's format or pattern can be asked for. */
export function isAskable(keyword: string, value: unknown): boolean {
  if (typeof value !== 'string') return false;
  if (keyword === 'format') return FORMATS.has(value);
  return !BEYOND_REGULAR.test(value) && isPattern(value);
}

function isPattern(text: string): boolean {
  try {
    return new RegExp(text, 'u') instanceof RegExp;
  } catch {
    return false;
  }
}

const MOST_CHARACTERS = 300;

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text;
}

function plain(value: unknown): string {
  return typeof value === 'string' ? value : shown(value);
}

function listed(names: unknown): string {
  return Array.isArray(names) ? names.map((name) => shown(name)).join(', ') : shown(names);
}

function neededWith(value: unknown): string {
  const rows = Object.entries(Object(value)).filter(([, names]) => Array.isArray(names));
  return rows.map(([name, names]) => `With ${shown(name)} also ${listed(names)}.`).join(' ');
}

/** The words for a keyword; those without any are shown as they stand. */
const WORDS: Readonly<Record<string, (value: unknown) => string>> = {
  minLength: (value) => `At least ${plain(value)} characters.`,
  maxLength: (value) => `At most ${plain(value)} characters.`,
  pattern: (value) => `Matches the pattern ${plain(value)}.`,
  format: (value) => `Format: ${plain(value)}.`,
  contentEncoding: (value) => `Encoded as ${plain(value)}.`,
  contentMediaType: (value) => `Media type: ${plain(value)}.`,
  minItems: (value) => `At least ${plain(value)} items.`,
  maxItems: (value) => `At most ${plain(value)} items.`,
  uniqueItems: () => 'No two items are equal.',
  contains: (value) => `Contains an item that fits ${shown(value)}.`,
  minContains: (value) => `At least ${plain(value)} such items.`,
  maxContains: (value) => `At most ${plain(value)} such items.`,
  minProperties: (value) => `At least ${plain(value)} properties.`,
  maxProperties: (value) => `At most ${plain(value)} properties.`,
  multipleOf: (value) => `A multiple of ${plain(value)}.`,
  propertyNames: (value) => `Keys fit ${shown(value)}.`,
  dependentRequired: neededWith,
  not: (value) => `Must not fit ${shown(value)}.`,
  anyOf: (value) => `Fits at least one of ${shown(value)}.`,
  oneOf: (value) => `Fits exactly one of ${shown(value)}.`,
  enum: (value) => `One of ${listed(value)}.`,
  default: (value) => `Default: ${shown(value)}.`,
  examples: (value) => `For example ${listed(value)}.`,
  deprecated: () => 'Deprecated.',
};

/** What is said of a keyword that is not asked for; nothing for a value that asks for nothing. */
export function remarkOn(keyword: string, value: unknown): readonly Remark[] {
  if (keyword === 'uniqueItems' && value !== true) return [];
  if (keyword === 'deprecated' && value !== true) return [];
  const words = WORDS[keyword];
  const text = words === undefined ? `JSON Schema: ${shown({ [keyword]: value })}.` : words(value);
  return [{ keyword, text: text === '' ? `JSON Schema: ${shown({ [keyword]: value })}.` : text }];
}

type Group = 'text' | 'number' | 'array' | 'object';

const ASKED: Readonly<Record<Group, ReadonlySet<string>>> = {
  text: new Set(['contentSchema']),
  number: new Set(['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf']),
  array: new Set(['items', 'prefixItems', 'additionalItems', 'minItems', 'maxItems', 'unevaluatedItems']),
  object: new Set([
    ...['properties', 'patternProperties', 'additionalProperties', 'unevaluatedProperties', 'required'],
    ...['propertyNames', 'minProperties', 'maxProperties'],
  ]),
};

/** What is said of the keywords of a type that strict schemas know nothing like. */
export function remarksOnGroup(parts: readonly JsonSchema[], group: Group): readonly Remark[] {
  return parts.flatMap((part) =>
    Object.entries(part).flatMap(([keyword, value]) => {
      if (KEYWORDS.get(keyword)?.of !== group || ASKED[group].has(keyword)) return [];
      return keyword === 'format' || keyword === 'pattern' ? [] : remarkOn(keyword, value);
    }),
  );
}

/** What is said of keywords that judge values of any type. */
export function remarksOnAll(parts: readonly JsonSchema[], asked: readonly string[]): readonly Remark[] {
  const keywords = ['not', 'if', 'anyOf', 'oneOf'].filter((keyword) => !asked.includes(keyword));
  return parts.flatMap((part) =>
    keywords.flatMap((keyword) => {
      if (part[keyword] === undefined) return [];
      if (keyword !== 'if') return remarkOn(keyword, part[keyword]);
      const entries = ['if', 'then', 'else'].map((name) => [name, part[name]]);
      const isIdle = part.then === undefined && part.else === undefined;
      return isIdle ? [] : [{ keyword, text: `JSON Schema: ${shown(Object.fromEntries(entries))}.` }];
    }),
  );
}
