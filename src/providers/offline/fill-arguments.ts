import type { JsonObject, JsonSchema } from '../../contract/json-schema.js';
import { type Offer, offerValues } from './offer-values.js';
import { type Found, readValues } from './read-text.js';
import { topicOf } from './words.js';

/**
 * What a text gives for a tool: `calls` has the arguments of each call it asks for, none where a required value
 * is missing; `certain`: nothing required was taken from what was left over; `covered`: which part of the topic
 * the tool's own words and the arguments explain, 0 to 1.
 */
export type Filled = Readonly<{ calls: readonly JsonObject[]; certain: boolean; covered: number }>;

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
    const [nested] = property.properties ? fillArguments(property, text, own, today).calls : [];
    const filled = nested && Object.keys(nested).length > 0;
    return filled
      ? { name, values: [nested], used: [], score: 9 }
      : offerValues(name, property, text, values);
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
    const phrase = values.find((one) => free && one.kind === 'phrase' && !taken.has(one));
    // Where nothing else was read, a free text goes on to the end.
    const rest =
      taken.size > 0 ? phrase?.text : phrase && text.slice(phrase.at).replace(/[\s.?!,;:"']+$/, '');
    if (phrase) taken.add(phrase);
    if ((value ?? rest) !== undefined) picks.set(name, { name, values: [value ?? rest], used: [], score: 0 });
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
