import type { JsonObject, JsonSchema } from '../../contract/json-schema.js';
import { fitValue, rateFit, readNamed } from './fit-value.js';
import type { Found, Reading } from './read-text.js';

/** What a text gives to an object schema; nothing where a required value is missing. */
export function fillArguments(schema: JsonSchema, reading: Reading): JsonObject | undefined {
  const { properties = {}, required = [] } = schema;
  const picks = new Map<string, unknown>();
  const offers = Object.entries(properties).flatMap(([name, schema]) => {
    const nested = (schema.properties && fillArguments(schema, reading)) ?? {};
    const named = Object.keys(nested).length > 0 ? nested : readNamed(name, schema, reading);
    if (named !== undefined) picks.set(name, named);
    const rate = rateFit(name, reading);
    const rated = reading.found.map((one) => ({ one, value: fitValue(name, schema, one), score: rate(one) }));
    const least = required.includes(name) ? -9 : 0.8;
    const fitting = rated.filter(({ value, score }) => value !== undefined && score > least);
    return fitting.map((offer) => ({ ...offer, name, all: schema.type === 'array' ? fitting : undefined }));
  });
  const taken = new Set<Found>();
  // A list takes what single values leave.
  const order = offers.sort((a, b) => Number(!!a.all) - Number(!!b.all) || b.score - a.score);
  for (const { name, one, value, all } of order) {
    if (picks.has(name) || taken.has(one)) continue;
    const more = all?.filter((other) => other.one.kind === one.kind && !taken.has(other.one));
    picks.set(name, more?.map((other) => other.value) ?? value);
    for (const used of more ?? [{ one }]) taken.add(used.one);
  }
  const names = Object.keys(properties).filter((name) => picks.has(name));
  const args = Object.fromEntries(names.map((name) => [name, picks.get(name)]));
  return required.every((name) => picks.has(name)) ? args : undefined;
}
