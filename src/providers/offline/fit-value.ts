import type { JsonSchema } from '../../contract/json-schema.js';
import type { Found } from './read-text.js';
import { readWords, topicOf, type Word } from './words.js';

/** A parameter to fill: its schema, and the stems that name it with the weight of each. */
export interface Slot {
  readonly name: string;
  readonly schema: JsonSchema;
  readonly required: boolean;
  readonly keys: ReadonlyMap<string, number>;
}

// What the word before a value says of it, beside the parameter's own words.
const CUES: readonly (readonly [RegExp, RegExp])[] = [
  [/\b(?:from|between) (?:the )?$/i, /from|start|origin|source|depart|pick|begin|first|min/],
  [/\b(?:to|and|until) (?:the )?$/i, /(?:^|_)to|end|dest|target|arriv|recei|final|second|max|recipient/],
  [
    /\b(?:in|at|near|around|for|of) (?:the )?$/i,
    /loc|city|place|area|region|country|where|state|venue|zone|year/,
  ],
  [/\b(?:by|with|starring|stars?|features?|featuring|like) $/i, /author|artist|direct|name|cast|star|writer/],
  [/\b(?:last|latest|newest|first|top) $/i, /limit|count|max|number|size/],
  [/\b(?:of|for) $/i, /customer|client|user|owner|person/],
  [/\b(?:on|for|at|by) $/i, /date|time|day/],
];

/** The parameters of an object schema; a word that several share tells them apart less and weighs less. */
export function slotsOf({ properties = {}, required = [] }: JsonSchema): Slot[] {
  const drafts = Object.entries(properties).map(([name, schema]) => {
    const own = readWords(name).filter((word, _, all) => !word.common || all.length === 1);
    const said = [...topicOf(schema.description ?? '')].map((stem) => [stem, 1] as const);
    return { name, schema, keys: new Map([...said, ...own.map(({ stem }) => [stem, 3] as const)]) };
  });
  const shared = (key: string) => drafts.filter(({ keys }) => keys.has(key)).length;
  return drafts.map(({ name, schema, keys }) => {
    const weights = [...keys].map(([key, weight]) => [key, weight / shared(key)] as const);
    return { name, schema, required: required.includes(name), keys: new Map(weights) };
  });
}

/** The schema of one value of a parameter: of an array, that of its items. */
export function itemOf({ schema }: Slot): JsonSchema {
  return schema.type === 'array' ? ((schema.items ?? {}) as JsonSchema) : schema;
}

/** A value as the parameter wants it, or `undefined` where it is none of its kind. */
export function convertValue(slot: Slot, { kind, value, text }: Found): unknown {
  const { type, enum: options = [value] } = itemOf(slot);
  const hint = `${slot.name} ${slot.schema.format ?? ''} ${slot.schema.description ?? ''}`;
  const formula = /express|formula|equation/i.test(hint);
  const dated = /date|yyyy|\bday\b/i.test(hint);
  if (!options.includes(value)) return undefined;
  if (type === 'integer') return Number.isInteger(value) ? value : undefined;
  if (type === 'number' && typeof value === 'number')
    return text.endsWith('%') && !/percent/i.test(hint) ? value / 100 : value;
  if (type !== 'string' && type !== undefined) return undefined;
  if (kind === 'quoted') return value;
  if (kind === 'expression' || formula) return kind === 'expression' && formula ? value : undefined;
  if (kind === 'number')
    return /\bid\b|_id|number|code|year|zip|phone|version/i.test(hint) ? text : undefined;
  if (kind === 'time') return /\btime|HH:MM/.test(hint) ? (/HH|24/.test(hint) ? value : text) : undefined;
  if (kind === 'date') return dated ? formatDate(String(value), hint) : undefined;
  // An example in the description that begins with the value shows the form that is wanted: `Berkeley, CA`.
  const shown = hint.indexOf(`'${value}, `) + 1;
  if (dated && !/name|title/i.test(slot.name)) return undefined;
  return shown > 0 ? hint.slice(shown, hint.indexOf("'", shown)) : value;
}

/** How well a value's surroundings fit a parameter: its words nearby, a cue right before it, its kind. */
export function fitValue(
  slot: Slot,
  found: Found,
  text: string,
  words: readonly Word[],
  values: readonly Found[],
): number {
  const { kind, at, end } = found;
  const near = words.map((word) => {
    const [from, to] = word.end <= at ? [word.end, at] : [end, word.at];
    if (to < from) return 0;
    const between = values.filter((other) => other.at >= from && other.end <= to).length;
    const far = (to - from) / 10 + between + (/[.?!;]\s/.test(text.slice(from, to)) ? 2 : 0);
    return ((slot.keys.get(word.stem) ?? 0) * (to === at ? 1 : 0.8)) / (1 + far);
  });
  const head = text.slice(Math.max(0, at - 20), at);
  const cue = CUES.some(([said, meant]) => said.test(head) && meant.test(slot.name.toLowerCase())) ? 1.5 : 0;
  return Math.max(0, ...near) + cue + (/date|time|quoted/.test(kind) ? 1 : kind === 'phrase' ? -1 : 0);
}

function formatDate(iso: string, hint: string): string {
  const [year = '', month = '', day = ''] = iso.split('-');
  const form = /\b(?:YYYY|MM|DD)([-/.])(?:YYYY|MM|DD)\1(?:YYYY|MM|DD)\b/i.exec(hint)?.[0].toUpperCase();
  return (form ?? 'YYYY-MM-DD').replace('YYYY', year).replace('MM', month).replace('DD', day);
}
