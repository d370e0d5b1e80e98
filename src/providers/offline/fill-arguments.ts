import type { JsonObject, JsonSchema } from '../../contract/json-schema.js';
import { convertValue, fitValue, itemOf, type Slot, slotsOf } from './fit-value.js';
import { type Found, readValues } from './read-text.js';
import { readWords, topicOf, type Word } from './words.js';

/** What a text gives for a tool: one object per call it asks for, none where a required value is missing. */
export interface Filled {
  readonly calls: readonly JsonObject[];
  /** Whether all that is required was read outright, not taken from what was left over. */
  readonly certain: boolean;
  /** Which part of the text's topic the tool's own words and the arguments explain, 0 to 1. */
  readonly covered: number;
}

/** Fills an object schema from a text; `own` are stems that belong to the tool or to any request. */
export function fillArguments(
  schema: JsonSchema,
  text: string,
  own: ReadonlySet<string>,
  today: Date,
): Filled {
  const [words, slots, taken] = [readWords(text), slotsOf(schema), new Set<Found>()];
  const values = addPhrases(text, words, readValues(text, today), own);
  const picks = new Map<string, { readonly values: readonly unknown[]; readonly run: readonly Found[] }>();
  for (const slot of slots) {
    const nested = slot.schema.properties && fillArguments(slot.schema, text, own, today).calls[0];
    const value = nested
      ? Object.keys(nested).length > 0
        ? nested
        : undefined
      : readNamed(slot, text, words);
    if (value !== undefined) picks.set(slot.name, { values: [value], run: [] });
  }
  const runs = slots.flatMap((slot) =>
    values.map((_, index) => ({ slot, run: runFrom(values.slice(index), slot, text) })),
  );
  const offers = runs.flatMap(({ slot, run }) => {
    const longer = slot.schema.type === 'array' ? run.length / 2 : 0;
    return run[0] ? [{ slot, run, score: fitValue(slot, run[0], text, words, values) + longer }] : [];
  });
  for (const { slot, run, score } of offers.sort((a, b) => b.score - a.score)) {
    const many = slot.schema.type === 'array';
    const used = many ? run : run.slice(0, 1);
    if (picks.has(slot.name) || score < (slot.required ? -0.3 : 0.9) || used.some((one) => taken.has(one)))
      continue;
    for (const one of used) taken.add(one);
    const converted = run.map((one) => convertValue(slot, one));
    picks.set(slot.name, { values: many ? [converted] : converted, run: run.slice(used.length) });
  }
  const open = () => slots.filter(({ name, required }) => required && !picks.has(name));
  const certain = picks.size > 0 && open().length === 0 && [...taken].every(({ kind }) => kind !== 'phrase');
  for (const { name, schema } of open()) {
    const value =
      schema.default ??
      (schema.type === 'string' && !schema.enum && !/date|time|express/i.test(name)
        ? readRest(text, values, taken)
        : undefined);
    if (value !== undefined) picks.set(name, { values: [value], run: [] });
  }
  const count = Math.max(
    1,
    ...[...picks.values()].map(({ values, run }) => (run.some((one) => taken.has(one)) ? 1 : values.length)),
  );
  const calls = Array.from({ length: count }, (_, index) => {
    const given = slots.flatMap(({ name }) =>
      picks.has(name) ? [{ name, values: picks.get(name)!.values }] : [],
    );
    return Object.fromEntries(
      given.map(({ name, values }) => [name, values[values.length === count ? index : 0]]),
    );
  });
  const known = new Set([...own, ...topicOf(JSON.stringify(calls))]);
  const topic = [...topicOf(text)];
  const covered = topic.filter((stem) => known.has(stem)).length / (topic.length || 1);
  return { calls: open().length > 0 ? [] : calls, certain, covered };
}

// Words in a row that are neither the tool's nor any request's are what the request is about.
function addPhrases(
  text: string,
  words: readonly Word[],
  values: readonly Found[],
  own: ReadonlySet<string>,
): Found[] {
  const phrases: Found[] = [];
  for (const { stem, common, at, end } of words) {
    if (common || own.has(stem) || values.some((one) => at < one.end && one.at < end)) continue;
    const start = /^[ -]$/.test(text.slice(phrases.at(-1)?.end, at)) ? phrases.pop()!.at : at;
    phrases.push({
      kind: 'phrase',
      value: text.slice(start, end),
      text: text.slice(start, end),
      at: start,
      end,
    });
  }
  return [...values, ...phrases].sort((a, b) => a.at - b.at);
}

/** What the schema names and the text only points at: members of an enumeration, yes and no. */
function readNamed(slot: Slot, text: string, words: readonly Word[]): unknown {
  const { type, enum: options = [] } = itemOf(slot);
  const truth =
    type === 'boolean' ? [true, false] : options.filter((one) => /^(?:true|false)$/i.test(String(one)));
  const own = topicOf(slot.name);
  const hits = words.filter((word) => own.has(word.stem));
  if (truth.length > 0) {
    if (hits.length === 0 || new Set(hits.map(({ stem }) => stem)).size < own.size / 2) return undefined;
    const no = /\b(?:no|not|without|\w+n't|exclud\w*|never|false|disabled?)\W+(?:\w+\W+){0,3}$/i.test(
      text.slice(0, hits[0]!.at),
    );
    return truth.find((option) => /^true$/i.test(String(option)) !== no);
  }
  const stems = new Set(words.map((word) => word.stem));
  const said = options.filter(
    (one) => typeof one === 'string' && one && readWords(one).every(({ stem }) => stems.has(stem)),
  );
  if (slot.schema.type === 'array') return said.length > 0 ? said : undefined;
  return said.sort((a, b) => String(b).length - String(a).length)[0];
}

// Values that stand side by side (`Rome, Oslo and Bern`).
function runFrom(values: readonly Found[], slot: Slot, text: string): Found[] {
  const fits = values.findIndex((one, index) => {
    const last = values[index - 1];
    const apart =
      last &&
      (one.kind !== last.kind || !/^[\s,;]*(?:\b(?:and|or)\b|&)?[\s$]*$/.test(text.slice(last.end, one.at)));
    return apart || convertValue(slot, one) === undefined;
  });
  return fits < 0 ? [...values] : values.slice(0, fits);
}

// The first phrase that is left, with all that follows where nothing else was read.
function readRest(text: string, values: readonly Found[], taken: Set<Found>): string | undefined {
  const phrase = values.find((one) => one.kind === 'phrase' && !taken.has(one));
  const rest = taken.size === 0 ? text.slice(phrase?.at ?? text.length) : phrase?.text;
  if (phrase) taken.add(phrase);
  return rest?.replace(/[\s.?!,;:"']+$/, '') || undefined;
}
