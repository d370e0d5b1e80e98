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
  [/\b(?:in|at|near|around) (?:the )?$/i, /loc|city|place|area|region|country|where|state|venue|zone|year/],
  [/\b(?:for|of) (?:the )?$/i, /loc|city|place|region|country|customer|client|user|owner|person/],
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
  const [many, item] = [
    schema.type === 'array',
    schema.type === 'array' ? ((schema.items ?? {}) as JsonSchema) : schema,
  ];
  const named = readNamed(name, item, text);
  if (named.length > 0) return [{ name, values: many ? [named] : named.slice(0, 1), used: [], score: 9 }];
  const hint = `${name} ${schema.format ?? ''} ${schema.description ?? ''}`;
  const converted = values.map((one) => convert(one, item, hint));
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
    const score = fit(first, name, schema, text) + (many ? used.length / 2 : 0);
    return used.length > 0 ? { name, values: many ? [run] : run, used, score } : [];
  });
}

// What the schema names and the text only points at: members of an enumeration, yes and no.
function readNamed(name: string, { type, enum: options = [] }: JsonSchema, text: string): unknown[] {
  const words = readWords(text);
  const truth =
    type === 'boolean' ? [true, false] : options.filter((one) => /^(?:true|false)$/i.test(String(one)));
  const hit = truth.length > 0 && words.find(({ stem }) => topicOf(name).has(stem));
  const no = /\b(?:no|not|without|\w+n't|exclud\w*|never|disabled?)\W+(?:\w+\W+){0,3}$/i;
  if (hit) return truth.filter((one) => /^true$/i.test(String(one)) !== no.test(text.slice(0, hit.at)));
  const said = (one: string) => readWords(one).every(({ stem }) => words.some((word) => word.stem === stem));
  const hits = options.filter((one) => typeof one === 'string' && one !== '' && said(one));
  return truth.length > 0 ? [] : hits.sort((a, b) => String(b).length - String(a).length);
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
  const [year = '', month = '', day = ''] = kind === 'date' ? String(value).split('-') : [];
  const form = /(?:YYYY|MM|DD)([-/.])(?:YYYY|MM|DD)\1(?:YYYY|MM|DD)/i.exec(hint)?.[0] ?? 'YYYY-MM-DD';
  const formed = form.toUpperCase().replace('YYYY', year).replace('MM', month).replace('DD', day);
  if (kind === 'date' || dated) return kind === 'date' && dated ? formed : undefined;
  // An example in the description that begins with the value shows the form that is wanted: `Berkeley, CA`.
  return hint.split("'").find((example) => example.startsWith(`${value}, `)) ?? value;
}

// The parameter's words nearby, a cue right before, and the kind of the value.
function fit({ kind, at, end }: Found, name: string, { description = '' }: JsonSchema, text: string): number {
  const own = readWords(name).filter((word, _, all) => !word.common || all.length === 1);
  const near = readWords(text).map((word) => {
    const weight = own.some(({ stem }) => stem === word.stem)
      ? 3
      : topicOf(description).has(word.stem)
        ? 1
        : 0;
    const distance =
      word.end <= at ? at - word.end : word.at >= end ? 2 + word.at - end : Number.POSITIVE_INFINITY;
    return weight / (1 + distance / 10);
  });
  const head = text.slice(Math.max(0, at - 20), at);
  const cue = CUES.some(([before, meant]) => before.test(head) && meant.test(name.toLowerCase())) ? 1.5 : 0;
  return Math.max(...near) + cue + (/date|time|quoted/.test(kind) ? 1 : kind === 'phrase' ? -1 : 0);
}
