import type { JsonSchema } from '../../contract/json-schema.js';
import type { Found } from './read-text.js';
import { readWords, topicOf } from './words.js';

// What the word before a value says of it, beside the parameter's own words.
const CUES: readonly (readonly [said: RegExp, meant: RegExp])[] = [
  [/\b(?:from|between) (?:the )?$/i, /from|start|origin|source|depart|pick|begin|first|min/],
  [/\b(?:to|and|until) (?:the )?$/i, /(?:^|_)to|end|dest|target|arriv|recei|final|second|max|recipient/],
  [
    /\b(?:in|at|near|around|for|of) (?:the )?$/i,
    /loc|city|place|area|region|country|where|zone|year|customer|owner/,
  ],
  [/\b(?:by|with|starring|stars?|features?|featuring|like) $/i, /author|artist|direct|name|cast|star|writer/],
  [/\b(?:last|latest|newest|first|top) $/i, /limit|count|max|number|size/],
];

/** How well the place of values fits a parameter: its words nearby, a cue right before, their kind and number. */
export function rateFit(name: string, schema: JsonSchema, run: readonly Found[], text: string): number {
  const { kind = '', at = 0, end = 0 } = run[0] ?? {};
  const [own, said] = [readWords(name), topicOf(schema.description ?? '')];
  const near = readWords(text).map(({ stem, ...word }) => {
    const named = own.some((one) => one.stem === stem && (!one.common || own.length === 1));
    const distance = word.end <= at ? at - word.end : word.at < end ? 999 : word.at - end + 2;
    return (named ? 3 : said.has(stem) ? 1 : 0) / (1 + distance / 10);
  });
  const cue = CUES.some(
    ([before, meant]) => before.test(text.slice(0, at)) && meant.test(name.toLowerCase()),
  );
  const preference = /date|time|quoted/.test(kind) ? 1 : kind === 'phrase' ? -1 : 0;
  return Math.max(...near) + (cue ? 1.5 : 0) + preference + (schema.type === 'array' ? run.length / 2 : 0);
}

/** A value as a parameter, or an array's item, wants it; `undefined` where it is not of its kind. */
export function toArgument(name: string, schema: JsonSchema, { kind, value }: Found): unknown {
  const { type = 'string', enum: options = [value] } = (schema.items ?? schema) as JsonSchema;
  const hint = `${name} ${schema.format ?? ''} ${schema.description ?? ''}`;
  const wanted = /express|formula|equation/i.test(hint)
    ? 'expression'
    : /date|yyyy|\bday\b/i.test(hint)
      ? 'date'
      : '';
  if (!options.includes(value) || (type === 'integer' && !Number.isInteger(value))) return undefined;
  if (type === 'integer' || type === 'number') return typeof value === 'number' ? value : undefined;
  if (type !== 'string' || kind === 'quoted') return type === 'string' ? value : undefined;
  if (kind === 'time' && /\btime|HH/.test(hint)) return value;
  if (kind === 'number')
    return /\bid\b|_id|number|code|year|zip|phone|version/i.test(hint) ? `${value}` : undefined;
  if (kind === 'date' && wanted === 'date') {
    const [year = '', month = '', day = ''] = `${value}`.split('-');
    const form = /(?:YYYY|MM|DD)([-/.])(?:YYYY|MM|DD)\1(?:YYYY|MM|DD)/i.exec(hint)?.[0] ?? 'YYYY-MM-DD';
    return form.toUpperCase().replace('YYYY', year).replace('MM', month).replace('DD', day);
  }
  if (wanted !== '' || /expression|date|time/.test(kind)) return kind === wanted ? value : undefined;
  // An example in the description that begins with the value shows the form that is wanted: `Berkeley, CA`.
  return hint.split("'").find((example) => example.startsWith(`${value}, `)) ?? value;
}

/** What the schema names and the text only points at: members of an enumeration, yes and no. */
export function readNamed(name: string, schema: JsonSchema, text: string): unknown {
  const { type, enum: options = [] } = (schema.items ?? schema) as JsonSchema;
  const words = readWords(text);
  if (type === 'boolean') {
    const hit = words.find(({ stem }) => topicOf(name).has(stem));
    return (
      hit && !/\b(?:no|not|without|\w+n't|never|disabled?)\W+(?:\w+\W+){0,3}$/i.test(text.slice(0, hit.at))
    );
  }
  const said = (one: string) => readWords(one).every(({ stem }) => words.some((word) => word.stem === stem));
  const hits = options.filter((one) => typeof one === 'string' && one !== '' && said(one));
  return schema.type === 'array' && hits.length > 0
    ? hits
    : hits.sort((a, b) => `${b}`.length - `${a}`.length)[0];
}
