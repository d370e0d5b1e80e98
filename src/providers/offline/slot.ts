import type { JsonSchema } from '../../contract/json-schema.js';
import type { Found } from './read-text.js';
import { readWords, topicOf } from './words.js';

/** A parameter: its name and its schema. */
export type Slot = Readonly<{ name: string; schema: JsonSchema }>;

// What the word before a value says of it, beside the parameter's own words.
const CUES: readonly (readonly [said: RegExp, meant: RegExp])[] = [
  [/\b(?:from|between) (?:the )?$/i, /from|start|origin|source|depart|pick|begin|first|min/],
  [/\b(?:to|and|until) (?:the )?$/i, /(?:^|_)to|end|dest|target|arriv|recei|final|second|max|recipient/],
  [
    /\b(?:in|at|near|for|of) (?:the )?$/i,
    /loc|city|place|area|region|country|where|zone|year|customer|owner/,
  ],
  [/\b(?:by|with|starring|stars?|features?|featuring|like) $/i, /author|artist|direct|name|cast|star|writer/],
  [/\b(?:last|latest|newest|first|top) $/i, /limit|count|max|number|size/],
];

/** Tells how well the place of values fits a parameter: its words nearby, a cue right before, kind and number. */
export function rateFit({ name, schema }: Slot, text: string): (run: readonly Found[]) => number {
  const [own, said] = [readWords(name), topicOf(schema.description ?? '')];
  const cues = CUES.filter(([, meant]) => meant.test(name.toLowerCase()));
  const words = readWords(text).flatMap(({ stem, ...place }) => {
    const named = own.some((one) => one.stem === stem && (!one.common || own.length === 1));
    return named || said.has(stem) ? [{ ...place, weight: named ? 3 : 1 }] : [];
  });
  return (run) => {
    const { kind = '', at = 0, end = 0 } = run[0] ?? {};
    const near = words.map((word) => {
      const distance = word.end <= at ? at - word.end : word.at < end ? 999 : word.at - end + 2;
      return word.weight / (1 + distance / 10);
    });
    const cue = cues.some(([said]) => said.test(text.slice(Math.max(0, at - 20), at))) ? 1.5 : 0;
    const preference = /date|time|quoted/.test(kind) ? 1 : kind === 'phrase' ? -1 : 0;
    return Math.max(0, ...near) + cue + preference + (schema.type === 'array' ? run.length / 2 : 0);
  };
}

/** A value as a parameter, or an array's item, wants it; `undefined` where it is not of its kind. */
export function toArgument({ name, schema }: Slot, { kind, value }: Found): unknown {
  const { type, enum: options = [value] } = itemOf(schema);
  const hint = `${name} ${schema.format ?? ''} ${schema.description ?? ''}`;
  const wanted = /(?<expression>express|formula|equation)|(?<date>date|yyyy|\bday\b)/i.exec(hint)?.groups;
  if (!options.includes(value) || (type === 'integer' && !Number.isInteger(value))) return undefined;
  const share = kind === 'percent' && type === 'number' && !/percent/i.test(hint);
  if (typeof value === 'number' && /integer|number/.test(`${type}`)) return share ? value / 100 : value;
  if (type !== 'string' || kind === 'quoted') return type === 'string' ? value : undefined;
  if (kind === 'time' && /\btime|HH/.test(hint)) return value;
  if (typeof value === 'number')
    return /\bid\b|_id|number|code|year|zip|version/i.test(hint) ? `${value}` : undefined;
  if (kind === 'date' && wanted?.date) {
    const [year = '', month = '', day = ''] = `${value}`.split('-');
    const form = /(?:YYYY|MM|DD)([-/.])(?:YYYY|MM|DD)\1(?:YYYY|MM|DD)/i.exec(hint)?.[0] ?? 'YYYY-MM-DD';
    return form.toUpperCase().replace('YYYY', year).replace('MM', month).replace('DD', day);
  }
  if (wanted || /expression|date|time/.test(kind)) return wanted?.[kind] && value;
  // An example in the description that begins with the value shows the form that is wanted: `Berkeley, CA`.
  return hint.split("'").find((example) => example.startsWith(`${value}, `)) ?? value;
}

/** What the schema names and the text only points at: members of an enumeration, yes and no. */
export function readNamed({ name, schema }: Slot, text: string): unknown {
  const { type, enum: options = [] } = itemOf(schema);
  const words = readWords(text);
  if (type === 'boolean') {
    const hit = words.find(({ stem }) => topicOf(name).has(stem));
    const no = /\b(?:no|not|without|\w+n't|never|disabled?)\W+(?:\w+\W+){0,3}$/i;
    return hit && !no.test(text.slice(0, hit.at));
  }
  const said = (one: string) => readWords(one).every(({ stem }) => words.some((word) => word.stem === stem));
  const hits = options.filter((one) => typeof one === 'string' && one !== '' && said(one));
  const [longest] = hits.toSorted((a, b) => `${b}`.length - `${a}`.length);
  return schema.type === 'array' && longest ? hits : longest;
}

/** The schema of one value: of an array, its item's; `null` as the other choice is left out. */
export function itemOf(schema: JsonSchema): JsonSchema {
  const item = (schema.items ?? schema.anyOf?.find(({ type }) => type !== 'null') ?? schema) as JsonSchema;
  return { ...item, type: [item.type ?? 'string'].flat().find((type) => type !== 'null') };
}
