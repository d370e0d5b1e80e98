import type { JsonObject, JsonSchema } from '../../contract/json-schema.js';
import { type Found, type Reading, readWords, topicOf } from './read-text.js';

/** What a text gives to an object schema; nothing where a required value is missing. */
export function fillArguments(schema: JsonSchema, reading: Reading): JsonObject | undefined {
  const { properties = {}, required = [] } = schema;
  const picks = new Map<string, unknown>();
  const offers = Object.entries(properties).flatMap(([name, schema]) => {
    const nested = (schema.properties && fillArguments(schema, reading)) ?? {};
    const named = Object.keys(nested).length > 0 ? nested : readNamed(name, schema, reading);
    if (named !== undefined) picks.set(name, named);
    const rate = rateFit(name, reading);
    const rated = reading.found.map((found) => ({
      found,
      value: fitValue(name, schema, found),
      score: rate(found),
    }));
    const least = required.includes(name) ? -9 : 0.8;
    const fitting = rated.filter(({ value, score }) => value !== undefined && score > least);
    return fitting.map((offer) => ({ ...offer, name, all: schema.type === 'array' ? fitting : undefined }));
  });
  const taken = new Set<Found>();
  // A list takes what single values leave.
  const order = offers.sort((a, b) => Number(!!a.all) - Number(!!b.all) || b.score - a.score);
  for (const { name, found, value, all } of order) {
    if (picks.has(name) || taken.has(found)) continue;
    const more = all?.filter((other) => other.found.kind === found.kind && !taken.has(other.found));
    picks.set(name, more?.map((other) => other.value) ?? value);
    for (const used of more ?? [{ found }]) taken.add(used.found);
  }
  const names = Object.keys(properties).filter((name) => picks.has(name));
  const args = Object.fromEntries(names.map((name) => [name, picks.get(name)]));
  return required.every((name) => picks.has(name)) ? args : undefined;
}

// What the word before a value says of it, beside the parameter's own words.
const CUES: readonly (readonly [said: RegExp, meant: RegExp])[] = [
  [/\b(?:from|between) (?:the )?$/i, /from|start|origin|source|depart|pick|begin|first|min/i],
  [/\b(?:in|at|near|for|of) (?:the )?$/i, /loc|city|place|area|region|country|where|zone|year|customer/i],
  [/\b(?:by|with|starring|features?|featuring) $/i, /author|artist|direct|name|cast|star|writer/i],
];
// Values of these kinds go only into texts that ask for them.
const ASKED: Readonly<Record<string, RegExp>> = {
  expression: /express|formula|equation/i,
  date: /date|yyyy|\bday\b/i,
  time: /\btime|HH/,
  number: /\bid\b|_id|number|code|year|zip|version/i,
};
const NEGATION = /\b(?:no|not|without|\w+n't|never|disabled?)\W+(?:\w+\W+){0,3}$/i;

/** Tells how well a value fits a parameter: its name nearby, a cue right before the value, and its kind. */
function rateFit(name: string, { text, words }: Reading): (value: Found) => number {
  const own = topicOf(name);
  const named = words.filter(({ stem }) => own.has(stem));
  const cues = CUES.filter(([, meant]) => meant.test(name));
  return ({ kind, at, end }) => {
    // A name that follows its value says a little less, one inside the value nothing.
    const far = named.map((item) =>
      item.end <= at ? at - item.end : item.at < end ? 999 : item.at - end + 2,
    );
    const near = far.map((distance) => 2 / (1 + distance / 10));
    const cue = cues.some(([said]) => said.test(text.slice(Math.max(0, at - 20), at))) ? 1.5 : 0;
    const bonus = /date|time|quoted/.test(kind) ? 1 : kind === 'phrase' ? -2 : kind === 'number' ? -0.1 : 0;
    return Math.max(0, ...near) + cue + bonus;
  };
}

/** A value as a parameter, or an array's item, wants it; `undefined` where it is not of its kind. */
function fitValue(name: string, schema: JsonSchema, { kind, value }: Found): unknown {
  const { type, enum: options = [value] } = itemOf(schema);
  const hint = `${name} ${schema.format ?? ''} ${schema.description ?? ''}`;
  if (!options.includes(value)) return undefined;
  if (type === 'integer') return Number.isInteger(value) ? value : undefined;
  if (type !== 'string') return typeof value === type ? value : undefined;
  if (kind in ASKED) return ASKED[kind]?.test(hint) ? `${value}` : undefined;
  if (kind !== 'quoted' && (ASKED.date?.test(hint) || ASKED.expression?.test(hint))) return undefined;
  // An example in the description that begins with the value shows the form wanted: `Berkeley, CA`.
  return hint.split("'").find((example) => example.startsWith(`${value}, `)) ?? value;
}

/** What the schema names and the text only points at: members of an enumeration, yes and no. */
function readNamed(name: string, schema: JsonSchema, { text, words }: Reading): unknown {
  const { type, enum: options = [] } = itemOf(schema);
  const own = topicOf(name);
  const hit = type === 'boolean' && words.find(({ stem }) => own.has(stem));
  if (hit) return !NEGATION.test(text.slice(Math.max(0, hit.at - 40), hit.at));
  const stems = new Set(words.map(({ stem }) => stem));
  const said = (option: unknown) => readWords(`${option}`).every(({ stem }) => stems.has(stem));
  const hits = options.filter((option) => /[\p{L}\p{N}]/u.test(`${option}`) && said(option));
  return schema.type === 'array' && hits[0] ? hits : hits.sort((a, b) => `${b}`.length - `${a}`.length)[0];
}

/** The schema of one value: of an array, its item's; `null` as the other choice is left out. */
function itemOf(schema: JsonSchema): JsonSchema {
  const item = (schema.items ?? schema.anyOf?.find(({ type }) => type !== 'null') ?? schema) as JsonSchema;
  return { ...item, type: [item.type ?? 'string'].flat().find((type) => type !== 'null') };
}
