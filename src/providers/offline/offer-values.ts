import type { JsonSchema } from '../../contract/json-schema.js';
import type { Found } from './read-text.js';
import { readWords, topicOf } from './words.js';

/** What could fill a parameter: several `values` are for several calls, `used` is where they stand. */
export type Offer = Readonly<{
  name: string;
  values: readonly unknown[];
  used: readonly Found[];
  score: number;
}>;

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

/** All that a text offers for one parameter; `score` tells how well each fits. */
export function offerValues(
  name: string,
  schema: JsonSchema,
  text: string,
  values: readonly Found[],
): Offer[] {
  const many = schema.type === 'array';
  const item = many ? ((schema.items ?? {}) as JsonSchema) : schema;
  const named = readNamed(name, item, text);
  if (named.length > 0) return [{ name, values: many ? [named] : named.slice(0, 1), used: [], score: 9 }];
  const converted = values.map((one) =>
    convert(one, item, `${name} ${schema.format ?? ''} ${schema.description ?? ''}`),
  );
  const fits = rateFit(name, schema, text);
  return values.flatMap((first, start) => {
    // Values that stand side by side (`Rome, Oslo and Bern`) are offered together.
    const stop = values.findIndex((one, index) => {
      const beside = /^[\s,;]*(?:\b(?:and|or)\b|&)?[\s$]*$/.test(text.slice(values[index - 1]?.end, one.at));
      return (
        index >= start &&
        (converted[index] === undefined || (index > start && (one.kind !== first.kind || !beside)))
      );
    });
    const used = values.slice(start, stop < 0 ? undefined : stop);
    const run = converted.slice(start, start + used.length);
    if (used.length === 0) return [];
    return { name, values: many ? [run] : run, used, score: fits(first) + (many ? used.length / 2 : 0) };
  });
}

// What the schema names and the text only points at: members of an enumeration, yes and no.
function readNamed(name: string, { type, enum: options = [] }: JsonSchema, text: string): unknown[] {
  const words = readWords(text);
  const truth =
    type === 'boolean' ? [true, false] : options.filter((one) => /^(?:true|false)$/i.test(String(one)));
  const hit = words.find(({ stem }) => topicOf(name).has(stem));
  const no = /\b(?:no|not|without|\w+n't|exclud\w*|never|disabled?)\W+(?:\w+\W+){0,3}$/i.test(
    text.slice(0, hit?.at),
  );
  if (truth.length > 0) return truth.filter((one) => hit && /^true$/i.test(String(one)) !== no);
  const said = (one: string) => readWords(one).every(({ stem }) => words.some((word) => word.stem === stem));
  const hits = options.filter((one) => typeof one === 'string' && one !== '' && said(one));
  return hits.sort((a, b) => String(b).length - String(a).length);
}

// The value as the schema wants it, or `undefined` where it is not of its kind.
function convert(
  { kind, value, text }: Found,
  { type = 'string', enum: options }: JsonSchema,
  hint: string,
): unknown {
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
  if (kind !== 'date' && dated) return undefined;
  // An example in the description that begins with the value shows the form that is wanted: `Berkeley, CA`.
  if (kind !== 'date') return hint.split("'").find((example) => example.startsWith(`${value}, `)) ?? value;
  const [year = '', month = '', day = ''] = String(value).split('-');
  const form = /(?:YYYY|MM|DD)([-/.])(?:YYYY|MM|DD)\1(?:YYYY|MM|DD)/i.exec(hint)?.[0] ?? 'YYYY-MM-DD';
  return dated ? form.toUpperCase().replace('YYYY', year).replace('MM', month).replace('DD', day) : undefined;
}

// How well a place in the text fits: the parameter's words nearby, a cue right before, the kind of the value.
function rateFit(name: string, { description = '' }: JsonSchema, text: string): (found: Found) => number {
  const own = readWords(name).filter((word, _, all) => !word.common || all.length === 1);
  const keys = new Map([...topicOf(description)].map((stem) => [stem, 1]));
  for (const { stem } of own) keys.set(stem, 3);
  const cues = CUES.filter(([, meant]) => meant.test(name.toLowerCase()));
  const hits = readWords(text).filter(({ stem }) => keys.has(stem));
  return ({ kind, at, end }) => {
    const near = hits.map((word) => {
      const distance =
        word.end <= at ? at - word.end : word.at >= end ? 2 + word.at - end : Number.POSITIVE_INFINITY;
      return (keys.get(word.stem) ?? 0) / (1 + distance / 10);
    });
    const cue = cues.some(([said]) => said.test(text.slice(Math.max(0, at - 20), at))) ? 1.5 : 0;
    return Math.max(0, ...near) + cue + (/date|time|quoted/.test(kind) ? 1 : kind === 'phrase' ? -1 : 0);
  };
}
