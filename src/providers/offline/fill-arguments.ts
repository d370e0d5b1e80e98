import type { JsonObject, JsonSchema } from '../../contract/json-schema.js';
import { convertValue, fitValue, itemOf } from './fit-value.js';
import { type Found, readValues } from './read-text.js';
import { readWords, topicOf } from './words.js';

/** What a text gives for a tool. */
export interface Filled {
  /** One object per call that the text asks for; none where a required value is missing. */
  readonly calls: readonly JsonObject[];
  /** Whether all that is required was read outright, not taken from what was left over. */
  readonly certain: boolean;
  /** Which part of the text's topic the tool's own words and the arguments explain, 0 to 1. */
  readonly covered: number;
}

interface Offer {
  readonly name: string;
  /** One value, or several where the text lists them for several calls. */
  readonly values: readonly unknown[];
  readonly used: readonly Found[];
  readonly score: number;
}

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
    const nested = property.properties && fillArguments(property, text, own, today).calls[0];
    const named = nested && Object.keys(nested).length > 0 ? nested : readNamed(name, property, text);
    return named !== undefined
      ? [{ name, values: [named], used: [], score: 9 }]
      : readOffers(name, property, text, values);
  });
  for (const offer of offers.sort((a, b) => b.score - a.score)) {
    const needed = required.includes(offer.name) ? -0.3 : 0.9;
    const first = offer.used.slice(0, offer.values.length > 1 ? 1 : undefined);
    if (picks.has(offer.name) || offer.score < needed || first.some((one) => taken.has(one))) continue;
    for (const one of first) taken.add(one);
    picks.set(offer.name, offer);
  }
  const open = () => required.filter((name) => !picks.has(name));
  const certain = picks.size > 0 && open().length === 0 && [...taken].every(({ kind }) => kind !== 'phrase');
  for (const name of open()) {
    const property = properties[name] ?? {};
    const free = property.type === 'string' && !property.enum && !/date|time|express/i.test(name);
    const value = property.default ?? (free ? takeRest(text, values, taken) : undefined);
    if (value !== undefined) picks.set(name, { name, values: [value], used: [], score: 0 });
  }
  const given = Object.keys(properties).flatMap((name) => picks.get(name) ?? []);
  const count = Math.max(
    1,
    ...given.map(({ values, used }) => (used.slice(1).some((one) => taken.has(one)) ? 1 : values.length)),
  );
  const calls = Array.from({ length: count }, (_, index) =>
    Object.fromEntries(given.map(({ name, values }) => [name, values[values.length === count ? index : 0]])),
  );
  const [topic, known] = [[...topicOf(text)], new Set([...own, ...topicOf(JSON.stringify(calls))])];
  const covered = topic.filter((stem) => known.has(stem)).length / (topic.length || 1);
  return { calls: open().length > 0 ? [] : calls, certain, covered };
}

/** What the schema names and the text only points at: members of an enumeration, yes and no. */
function readNamed(name: string, schema: JsonSchema, text: string): unknown {
  const { type, enum: options = [] } = itemOf(schema);
  const words = readWords(text);
  const truth =
    type === 'boolean' ? [true, false] : options.filter((one) => /^(?:true|false)$/i.test(String(one)));
  if (truth.length > 0) {
    const hit = words.find(({ stem }) => topicOf(name).has(stem));
    const no = /\b(?:no|not|without|\w+n't|exclud\w*|never|false|disabled?)\W+(?:\w+\W+){0,3}$/i.test(
      text.slice(0, hit?.at),
    );
    return hit && truth.find((option) => /^true$/i.test(String(option)) !== no);
  }
  const stems = new Set(words.map((word) => word.stem));
  const said = options.filter(
    (one) => typeof one === 'string' && readWords(`${one}`).every(({ stem }) => stems.has(stem)),
  );
  if (schema.type === 'array') return said.length > 0 ? said : undefined;
  return said.sort((a, b) => String(b).length - String(a).length)[0] || undefined;
}

// Values that stand side by side (`Rome, Oslo and Bern`) are offered together.
function readOffers(name: string, schema: JsonSchema, text: string, values: readonly Found[]): Offer[] {
  return values.flatMap((first, start) => {
    const stop = values.findIndex((one, index) => {
      const last = values[index - 1];
      const side = /^[\s,;]*(?:\b(?:and|or)\b|&)?[\s$]*$/.test(text.slice(last?.end, one.at));
      const joined = index === start || (one.kind === first.kind && side);
      return index >= start && (!joined || convertValue(name, schema, one) === undefined);
    });
    const used = values.slice(start, stop < 0 ? undefined : stop);
    if (used.length === 0) return [];
    const converted = used.map((one) => convertValue(name, schema, one));
    const score = fitValue(name, schema, first, text);
    const many = schema.type === 'array';
    return [
      { name, values: many ? [converted] : converted, used, score: many ? score + used.length / 2 : score },
    ];
  });
}

// The first phrase that is left, with all that follows where nothing else was read.
function takeRest(text: string, values: readonly Found[], taken: Set<Found>): string | undefined {
  const phrase = values.find((one) => one.kind === 'phrase' && !taken.has(one));
  const rest = taken.size === 0 ? text.slice(phrase?.at ?? text.length) : phrase?.text;
  if (phrase) taken.add(phrase);
  return rest?.replace(/[\s.?!,;:"']+$/, '') || undefined;
}
