import type { JsonSchema } from '../../contract/json-schema.js';
import { KEYWORDS, mergeKeywords, regularExpression } from '../keywords.js';
import { joined, type Node } from './node.js';

/** A keyword that strict schemas do not have, in words. */
export interface Remark {
  readonly keyword: string;
  readonly text: string;
}

/** Keywords that constrain nothing. */
const ANNOTATIONS: ReadonlySet<string> = new Set(['default', 'examples', 'deprecated']);

/** The node with remarks in its description. */
export function withRemarks(node: Node, remarks: readonly Remark[]): Node {
  const edits = remarks.flatMap(({ keyword }) =>
    ANNOTATIONS.has(keyword) ? [] : [{ kind: 'said', keyword } as const],
  );
  const description = joined(node.description, ...remarks.map(({ text }) => text));
  return { ...node, description, edits: [...node.edits, ...edits] };
}

/** Text formats that strict schemas have. */
const FORMATS: ReadonlySet<unknown> = new Set([
  ...['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid'],
]);

/** Look-arounds, back references, Unicode classes and word boundaries: a grammar of tokens has none of them. */
const BEYOND_REGULAR = /\(\?(?![:])|\\[1-9kpPbB]/;

const BOUNDS = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'];

/** Whether a keyword can stand in a strict schema with this value. */
function isExpressible(keyword: string, value: unknown): boolean {
  if (keyword === 'format') return FORMATS.has(value);
  if (keyword === 'pattern')
    return typeof value === 'string' && !BEYOND_REGULAR.test(value) && regularExpression(value) !== undefined;
  if (keyword === 'minItems' || keyword === 'maxItems') return Number.isInteger(value) && Number(value) >= 0;
  if (keyword === 'multipleOf') return typeof value === 'number' && value > 0;
  return BOUNDS.includes(keyword) && typeof value === 'number';
}

/** Keywords that give a value its form. */
const STRUCTURAL: ReadonlySet<string> = new Set([
  ...['contentSchema', 'items', 'prefixItems', 'additionalItems', 'unevaluatedItems', 'properties'],
  ...['patternProperties', 'additionalProperties', 'unevaluatedProperties', 'required'],
]);

/** The keywords about values of one type: the strictest of each that can stand, and remarks for the others. */
export function keywordsFor(
  parts: readonly JsonSchema[],
  group: 'text' | 'number' | 'array' | 'object',
): { readonly keywords: JsonSchema; readonly remarks: readonly Remark[] } {
  const entries = parts
    .flatMap((part) => Object.entries(part))
    .filter(([keyword]) => KEYWORDS.get(keyword)?.of === group && !STRUCTURAL.has(keyword));
  const { allOf = [], ...keywords } = entries
    .filter((entry) => isExpressible(...entry))
    .map(([keyword, value]): JsonSchema => ({ [keyword]: value }))
    .reduce(mergeKeywords, {});
  const others = entries.filter((entry) => !isExpressible(...entry));
  const unmerged = (allOf as readonly JsonSchema[]).flatMap((part) => Object.entries(part));
  const remarks = [...others, ...unmerged].flatMap(([keyword, value]) => remarkOn(keyword, value));
  return { keywords, remarks };
}

/** Remarks for keywords about values of any type. */
export function remarksOnConditions(parts: readonly JsonSchema[], union?: string): readonly Remark[] {
  return parts.flatMap((part) => {
    const { if: condition, then, else: otherwise } = part;
    const isIdle = condition === undefined || (then === undefined && otherwise === undefined);
    const conditional = { if: condition, then, else: otherwise };
    const conditions = isIdle ? [] : [{ keyword: 'if', text: `JSON Schema: ${shown(conditional)}.` }];
    const isSingle = (keyword: string): boolean => Array.isArray(part[keyword]) && part[keyword].length === 1;
    const others = ['not', 'anyOf', 'oneOf'].filter((keyword) => keyword !== union && !isSingle(keyword));
    return [...conditions, ...others.flatMap((keyword) => remarkOn(keyword, part[keyword]))];
  });
}

const MOST_CHARACTERS = 300;

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text;
}

function plain(value: unknown): string {
  return typeof value === 'string' ? value : shown(value);
}

function listed(values: unknown): string {
  return Array.isArray(values) ? values.map(shown).join(', ') : shown(values);
}

function neededWith(value: unknown): string {
  const rows = Object.entries(Object(value)).filter(([, names]) => Array.isArray(names));
  return rows.map(([name, names]) => `With ${shown(name)} also ${listed(names)}.`).join(' ');
}

/** The sentence for a keyword; other keywords are shown as JSON. */
const SENTENCES: Readonly<Record<string, (value: unknown) => string>> = {
  minLength: (value) => `At least ${plain(value)} characters.`,
  maxLength: (value) => `At most ${plain(value)} characters.`,
  pattern: (value) => `Matches the pattern ${plain(value)}.`,
  format: (value) => `Format: ${plain(value)}.`,
  contentEncoding: (value) => `Encoded as ${plain(value)}.`,
  contentMediaType: (value) => `Media type: ${plain(value)}.`,
  minItems: (value) => `At least ${plain(value)} items.`,
  maxItems: (value) => `At most ${plain(value)} items.`,
  uniqueItems: (value) => (value === true ? 'No two items are equal.' : ''),
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
  default: (value) => `Default: ${shown(value)}.`,
  examples: (value) => `For example ${listed(value)}.`,
  deprecated: (value) => (value === true ? 'Deprecated.' : ''),
};

/** The remark for a keyword; nothing for a value that demands nothing. */
export function remarkOn(keyword: string, value: unknown): readonly Remark[] {
  if (value === undefined) return [];
  const text = SENTENCES[keyword]?.(value) ?? `JSON Schema: ${shown({ [keyword]: value })}.`;
  return text === '' ? [] : [{ keyword, text }];
}
