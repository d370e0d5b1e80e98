import type { JsonObject, JsonSchema } from '../../contract/json-schema.js';
import { convertValue, fitValue } from './fit-value.js';
import { type Found, readValues } from './read-text.js';
import { readWords, topicOf } from './words.js';

/**
 * What a text gives for a tool: `calls` has the arguments of each call it asks for, none where a required value
 * is missing; `certain`: all that is required was read outright; `covered`: which part of the text's topic the
 * tool's own words and the arguments explain, 0 to 1.
 */
export type Filled = Readonly<{ calls: readonly JsonObject[]; certain: boolean; covered: number }>;

// `values` has several where the text lists them for several calls; `used` is where they stand.
type Offer = Readonly<{ name: string; values: readonly unknown[]; used: readonly Found[]; score: number }>;

/** Fills an object schema from a text; `own` are stems that belong to the tool or to any request. */
export function fillArguments(
  schema: JsonSchema,
  text: string,
  own: ReadonlySet<string>,
  today: Date,
): Filled {
  const { properties = {}, required = [] } = schema;
  const values = readValues(text, own, today);
  const picks = new Map<string, Offer>();
  const taken = new Set<Found>();
  const offers = Object.entries(properties).flatMap(([name, property]) => {
    const [nested = {}] = property.properties ? fillArguments(property, text, own, today).calls : [];
    const named = Object.keys(nested).length > 0 ? nested : readNamed(name, property, text);
    return named === undefined
      ? readOffers(name, property, text, values)
      : { name, values: [named], used: [], score: 9 };
  });
  for (const offer of offers.sort((a, b) => b.score - a.score)) {
    const first = offer.values.length > 1 ? offer.used.slice(0, 1) : offer.used;
    const enough = offer.score > (required.includes(offer.name) ? -0.3 : 0.9);
    if (picks.has(offer.name) || !enough || first.some((one) => taken.has(one))) continue;
    for (const one of first) taken.add(one);
    picks.set(offer.name, offer);
  }
  const open = () => required.filter((name) => !picks.has(name));
  const certain = picks.size > 0 && open().length === 0 && [...taken].every(({ kind }) => kind !== 'phrase');
  for (const name of open()) {
    const { type, enum: options, default: value } = properties[name] ?? {};
    const free = type === 'string' && !options && !/date|time|express/i.test(name);
    const rest = value ?? (free ? takeRest(text, values, taken) : undefined);
    if (rest !== undefined) picks.set(name, { name, values: [rest], used: [], score: 0 });
  }
  const given = Object.keys(properties).flatMap((name) => picks.get(name) ?? []);
  const lists = given.filter(
    ({ values, used }) => values.length > 1 && !used.slice(1).some((one) => taken.has(one)),
  );
  const calls = Array.from({ length: lists[0]?.values.length ?? 1 }, (_, index) =>
    Object.fromEntries(
      given.map((one) => [one.name, one.values[lists.includes(one) ? index : 0] ?? one.values[0]]),
    ),
  );
  const [topic, known] = [[...topicOf(text)], new Set([...own, ...topicOf(JSON.stringify(calls))])];
  const covered = topic.filter((stem) => known.has(stem)).length / (topic.length || 1);
  return { calls: open().length > 0 ? [] : calls, certain, covered };
}

/** What the schema names and the text only points at: members of an enumeration, yes and no. */
function readNamed(name: string, schema: JsonSchema, text: string): unknown {
  const { type, enum: options = [] } = (
    schema.type === 'array' ? (schema.items ?? {}) : schema
  ) as JsonSchema;
  const words = readWords(text);
  const truth =
    type === 'boolean' ? [true, false] : options.filter((one) => /^(?:true|false)$/i.test(String(one)));
  if (truth.length > 0) {
    const hit = words.find(({ stem }) => topicOf(name).has(stem));
    const no = /\b(?:no|not|without|\w+n't|exclud\w*|never|disabled?)\W+(?:\w+\W+){0,3}$/i.test(
      text.slice(0, hit?.at),
    );
    return hit && truth.find((option) => /^true$/i.test(String(option)) !== no);
  }
  const said = (one: string) => readWords(one).every(({ stem }) => words.some((word) => word.stem === stem));
  const hits = options.filter((one) => typeof one === 'string' && one !== '' && said(one));
  if (schema.type === 'array') return hits.length > 0 ? hits : undefined;
  return hits.sort((a, b) => String(b).length - String(a).length)[0];
}

// Values that stand side by side (`Rome, Oslo and Bern`) are offered together.
function readOffers(name: string, schema: JsonSchema, text: string, values: readonly Found[]): Offer[] {
  return values.flatMap((first, start) => {
    const stop = values.findIndex((one, index) => {
      const beside = /^[\s,;]*(?:\b(?:and|or)\b|&)?[\s$]*$/.test(text.slice(values[index - 1]?.end, one.at));
      const joined = one === first || (one.kind === first.kind && beside);
      return index >= start && (!joined || convertValue(name, schema, one) === undefined);
    });
    const used = values.slice(start, stop < 0 ? undefined : stop);
    const converted = used.map((one) => convertValue(name, schema, one));
    const score = fitValue(name, schema, first, text);
    if (schema.type !== 'array') return used.length > 0 ? { name, values: converted, used, score } : [];
    return used.length > 0 ? { name, values: [converted], used, score: score + used.length / 2 } : [];
  });
}

// The first phrase that is left, with all that follows where nothing else was read.
function takeRest(text: string, values: readonly Found[], taken: Set<Found>): string | undefined {
  const phrase = values.find((one) => one.kind === 'phrase' && !taken.has(one));
  if (phrase === undefined) return undefined;
  const rest = taken.size === 0 ? text.slice(phrase.at).replace(/[\s.?!,;:"']+$/, '') : phrase.text;
  taken.add(phrase);
  return rest;
}
