import type { JsonObject, JsonSchema } from '../../contract/json-schema.js';
import { type Found, readValues } from './read-text.js';
import { itemOf, rateFit, readNamed, toArgument } from './slot.js';
import { topicOf } from './words.js';

/**
 * The arguments of each call that a text asks for: none where a required value is missing. `certain`: nothing is a
 * guess. `covered`: the part of the text's topic that the tool and the arguments explain, 0 to 1.
 */
export type Filled = Readonly<{ calls: readonly JsonObject[]; certain: boolean; covered: number }>;

/** What belongs to the tool or to any request (`own`, stems), and the year of dates said without one. */
export type Setting = Readonly<{ own: ReadonlySet<string>; year: number }>;

/** Fills an object schema from a text. */
export function fillArguments(schema: JsonSchema, text: string, setting: Setting): Filled {
  const { properties = {}, required = [] } = schema;
  const found = readValues(text, setting.own, setting.year);
  const taken = new Set<Found>();
  const picks = new Map<string, unknown>();
  const lists: Readonly<{ name: string; values: readonly unknown[]; more: readonly Found[] }>[] = [];
  const offers = Object.entries(properties).flatMap(([name, schema]) => {
    const [nested = {}] = schema.properties ? fillArguments(schema, text, setting).calls : [];
    const named = Object.keys(nested).length > 0 ? nested : readNamed({ name, schema }, text);
    if (named !== undefined) picks.set(name, named);
    const fitting = found.filter((one) => toArgument({ name, schema }, one) !== undefined);
    const runs = fitting.map((_, index) => runFrom(fitting.slice(index), text));
    const rate = rateFit({ name, schema }, text);
    return runs.map((run) => ({ name, schema, run, score: rate(run) }));
  });
  for (const { name, schema, run, score } of offers.sort((a, b) => b.score - a.score)) {
    const used = schema.type === 'array' ? run : run.slice(0, 1);
    const enough = score > (required.includes(name) ? -0.3 : 0.9);
    if (!enough || picks.has(name) || used.some((one) => taken.has(one))) continue;
    for (const one of used) taken.add(one);
    const values = run.map((one) => toArgument({ name, schema }, one));
    picks.set(name, schema.type === 'array' ? values : values[0]);
    if (used.length < run.length) lists.push({ name, values, more: run.slice(1) });
  }
  const open = () => required.filter((name) => !picks.has(name));
  const certain = picks.size > 0 && open().length === 0 && [...taken].every(({ kind }) => kind !== 'phrase');
  for (const name of open()) {
    const schema = properties[name] ?? {};
    const { type, enum: options } = itemOf(schema);
    const free = type === 'string' && !options && !schema.items && !/date|time|express/i.test(name);
    const phrase = found.find((one) => free && one.kind === 'phrase' && !taken.has(one));
    // Where nothing else was read, a free text goes on to the end.
    const tail = phrase && text.slice(phrase.at).replace(/[\s.?!,;:"']+$/, '');
    const rest = schema.default ?? (taken.size > 0 ? phrase?.value : tail);
    if (phrase) taken.add(phrase);
    if (rest !== undefined) picks.set(name, rest);
  }
  const order = Object.keys(properties).filter((name) => picks.has(name));
  const args = Object.fromEntries(order.map((name) => [name, picks.get(name)]));
  // What stands beside a value and fits no other parameter asks for further calls.
  const list = lists.find(({ more }) => !more.some((one) => taken.has(one)));
  const calls = list?.values.map((value) => ({ ...args, [list.name]: value })) ?? [args];
  const [topic, known] = [[...topicOf(text)], new Set([...setting.own, ...topicOf(JSON.stringify(calls))])];
  const covered = topic.filter((stem) => known.has(stem)).length / (topic.length || 1);
  return { calls: open().length > 0 ? [] : calls, certain, covered };
}

// The values of one kind that stand side by side: `Rome, Oslo and Bern`.
function runFrom(values: readonly Found[], text: string): readonly Found[] {
  const stop = values.findIndex(({ kind, at }, index) => {
    const between = text.slice(values[index - 1]?.end ?? at, at);
    return kind !== values[0]?.kind || !/^[\s,;]*(?:\b(?:and|or)\b|&)?[\s$]*$/.test(between);
  });
  return values.slice(0, stop < 0 ? undefined : stop);
}
