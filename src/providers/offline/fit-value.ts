import type { JsonSchema } from '../../contract/json-schema.js';
import type { Found } from './read-text.js';
import { readWords, topicOf } from './words.js';

// What the word before a value says of it, beside the parameter's own words.
const CUES: readonly (readonly [said: RegExp, meant: RegExp])[] = [
  [/\b(?:from|between) (?:the )?$/i, /from|start|origin|source|depart|pick|begin|first|min/],
  [/\b(?:to|and|until) (?:the )?$/i, /(?:^|_)to|end|dest|target|arriv|recei|final|second|max|recipient/],
  [/\b(?:in|at|near|around) (?:the )?$/i, /loc|city|place|area|region|country|where|state|venue|zone|year/],
  [/\b(?:for|of) (?:the )?$/i, /loc|city|place|region|country|customer|client|user|owner|person/],
  [/\b(?:by|with|starring|stars?|features?|featuring|like) $/i, /author|artist|direct|name|cast|star|writer/],
  [/\b(?:last|latest|newest|first|top) $/i, /limit|count|max|number|size/],
];

/** How well a value's surroundings fit a parameter: the parameter's words nearby, a cue before it, its kind. */
export function fitValue(name: string, schema: JsonSchema, { kind, at, end }: Found, text: string): number {
  const own = readWords(name).filter((word, _, all) => !word.common || all.length === 1);
  const said = topicOf(schema.description ?? '');
  const near = readWords(text).map((word) => {
    const weight = own.some(({ stem }) => stem === word.stem) ? 3 : said.has(word.stem) ? 1 : 0;
    const distance =
      word.end <= at ? at - word.end : word.at >= end ? 2 + word.at - end : Number.POSITIVE_INFINITY;
    return weight / (1 + distance / 10);
  });
  const head = text.slice(Math.max(0, at - 20), at);
  const cue = CUES.some(([before, meant]) => before.test(head) && meant.test(name.toLowerCase())) ? 1.5 : 0;
  return Math.max(...near) + cue + (/date|time|quoted/.test(kind) ? 1 : kind === 'phrase' ? -1 : 0);
}

/** A value as a parameter, or an array's item, wants it; `undefined` where it is not of its kind. */
export function convertValue(name: string, schema: JsonSchema, { kind, value, text }: Found): unknown {
  const { type = 'string', enum: options } = (
    schema.type === 'array' ? (schema.items ?? {}) : schema
  ) as JsonSchema;
  const hint = `${name} ${schema.format ?? ''} ${schema.description ?? ''}`;
  const [formula, dated] = [/express|formula|equation/i.test(hint), /date|yyyy|\bday\b/i.test(hint)];
  if (options?.includes(value) === false) return undefined;
  if (type === 'integer') return Number.isInteger(value) ? value : undefined;
  if (type === 'number' && kind === 'number')
    return /%$/.test(text) && !/percent/i.test(hint) ? Number(value) / 100 : value;
  if (type !== 'string' || kind === 'quoted') return type === 'string' ? value : undefined;
  if (kind === 'expression' || formula) return kind === 'expression' && formula ? value : undefined;
  if (kind === 'number')
    return /\bid\b|_id|number|code|year|zip|phone|version/i.test(hint) ? text : undefined;
  if (kind === 'time') return /\btime|HH:MM/.test(hint) ? (/HH|24/.test(hint) ? value : text) : undefined;
  if (kind === 'date') return dated ? formatDate(String(value), hint) : undefined;
  // An example in the description that begins with the value shows the form that is wanted: `Berkeley, CA`.
  const shown = hint.split("'").find((example) => example.startsWith(`${value}, `));
  return dated && !/name|title/i.test(name) ? undefined : (shown ?? value);
}

function formatDate(iso: string, hint: string): string {
  const [year = '', month = '', day = ''] = iso.split('-');
  const form = /\b(?:YYYY|MM|DD)([-/.])(?:YYYY|MM|DD)\1(?:YYYY|MM|DD)\b/i.exec(hint)?.[0] ?? 'YYYY-MM-DD';
  return form.toUpperCase().replace('YYYY', year).replace('MM', month).replace('DD', day);
}
