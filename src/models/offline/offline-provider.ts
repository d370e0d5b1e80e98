import type { JsonObject, JsonSchema } from '../../core/contract/json-schema.js';
import {
  type LLMProvider,
  type LLMRequest,
  type LLMResponse,
  type Message,
  REQUEST,
  type ToolCall,
  type ToolSchema,
} from '../../core/contract/llm-provider.js';
import { checkArguments, checkOptions } from '../../core/errors/author-fault.js';
import { optionTable, WHOLE } from '../../core/kernel/options.js';

const LONGEST = 4000;

const OPTIONS = optionTable<{ readonly year?: number }>('OfflineProvider', { year: WHOLE });

/**
 * A substitute for a language model on machines without a key. It uses no network, and the same request always has
 * the same reply. It ranks the offered tools by words, reads their arguments from the last user message by their
 * schemas, and quotes the results, without understanding them. On real prompts, it picks the right tools four times
 * in five and makes exactly the right calls three times in ten: `npm run measure:offline -- bfcl.jsonl`. Messages of
 * more than 4,000 characters are refused, because reading only a part could pass incomplete values to a tool.
 *
 * @example
 * ```ts
 * const run = await runToolLoop({ provider: new OfflineProvider(), model: 'offline', tools }, messages);
 * ```
 */
export class OfflineProvider implements LLMProvider {
  readonly #year: number | undefined;

  /** `year` is used for dates without a year; default: the current year. */
  constructor(options: { readonly year?: number } = {}) {
    checkOptions(options, OPTIONS);
    this.#year = options.year;
  }

  async chat(request: LLMRequest): Promise<LLMResponse> {
    checkArguments({ of: 'OfflineProvider.chat', given: { request }, rules: { request: REQUEST } });
    request.signal?.throwIfAborted();
    const { messages, tools = [] } = request;
    const asked = messages.findLastIndex(({ role }) => role === 'user');
    const turn = messages.slice(asked + 1);
    const parts = [messages[asked]?.content ?? ''].flat() as readonly (string | { readonly text?: string })[];
    const text = parts.map((part) => (typeof part === 'string' ? part : (part.text ?? ''))).join('\n');
    // Completions of earlier work arrive as such a message; they are not requests.
    const news = /^\[System: async:.*?\]\s*/.exec(text)?.[0];
    if (news) return { content: text.slice(news.length), toolCalls: [], finishReason: 'stop' };
    const done = text.length > LONGEST || turn.some(({ role }) => role === 'tool');
    const planned = done ? [] : planCalls(text, tools, this.#year ?? new Date().getFullYear());
    const earlier = messages.flatMap((message) => (message.role === 'assistant' && message.tool_calls) || []);
    const last = Math.max(0, ...earlier.map(({ id }) => Number(/^call_(\d+)$/.exec(id)?.[1] ?? 0)));
    const toolCalls = planned.map((call, index) => ({ id: `call_${last + index + 1}`, ...call }));
    if (toolCalls.length > 0) return { content: '', toolCalls, finishReason: 'tool_calls' };
    const why = text.length > LONGEST ? `can read at most ${LONGEST} characters` : 'found no matching tool';
    return { content: writeAnswer(turn, tools, why), toolCalls, finishReason: 'stop' };
  }
}

/**
 * Quotes the results of a turn. Without results, explains what this provider is, `why` it calls no tool, and what it
 * can do.
 */
function writeAnswer(turn: readonly Message[], tools: readonly ToolSchema[], why: string): string {
  const offered = tools.map((tool) => tool.function);
  const purposeOf = (name: string) =>
    offered.find((item) => item.name === name)?.description.split(/\.(?!\S)|\n/)[0] || name;
  const calls = turn.flatMap((message) => (message.role === 'assistant' && message.tool_calls) || []);
  const results = turn.flatMap((message) => {
    if (message.role !== 'tool') return [];
    const call = calls.find(({ id }) => id === message.tool_call_id);
    return `${purposeOf(call?.function.name ?? 'Result')}: ${message.content}`;
  });
  if (results.length > 0) return results.join('\n');
  const known = offered.map(({ name }) => `\n- ${purposeOf(name)}`).join('') || ' nothing, without tools.';
  return `I am the offline stand-in, not a language model, and ${why}. I can do:${known}`;
}

type Plan = Readonly<{ name: string; args: JsonObject; score: number }>;

/** The calls that a text requests, in the order of the text. */
function planCalls(text: string, tools: readonly ToolSchema[], year: number): Omit<ToolCall, 'id'>[] {
  const plans: Plan[] = [];
  let open = '';
  // After this many clauses, text is data and not a further request.
  for (const clause of text.split(/(?<=[.?!;,])\s+|\s+(?=and )/).slice(0, 20)) {
    open += `${clause} `;
    const next = choose(open, tools, year);
    if (!next || !opensCall(next, open, plans.at(-1))) continue;
    plans.push(next);
    open = '';
  }
  const chosen = plans.length > 1 ? plans : [choose(text, tools, year) ?? []].flat();
  return chosen.map(({ name, args }) => ({ name, arguments: args }));
}

function choose(text: string, tools: readonly ToolSchema[], year: number): Plan | undefined {
  const ranks = rankTools(tools, text);
  const plans = tools.flatMap(({ function: { name, description, parameters } }, index) => {
    const own = topicOf(`${name} ${description} find get list look search see show say tell`);
    const args = fillArguments(parameters, readText(text, own, year));
    // A tool must match at least one word; only an arithmetic expression is clear without words.
    const rank = (ranks[index] ?? 0) + (args?.expression ? 2 : 0);
    return args && rank > 0 ? [{ name, args, score: rank + (Object.keys(args).length > 0 ? 1 : 0) }] : [];
  });
  return plans.sort((a, b) => b.score - a.score)[0];
}

// Whether a text is a separate request: it names another tool than the last one, or has numbers for the same tool.
function opensCall({ name, args }: Plan, text: string, last?: Plan): boolean {
  const [own, said] = [[...topicOf(name)], topicOf(text)];
  const named = own.filter((stem) => said.has(stem)).length >= own.length * 0.3;
  const same = Object.keys(args).join() === Object.keys(last?.args ?? {}).join();
  if (name !== last?.name) return named || 'expression' in args;
  return same && ('expression' in args || Object.values(args).some(Number.isFinite));
}

/** Scores tools by BM25, in which words of the name have the most weight; 0 means no common word. */
function rankTools(tools: readonly ToolSchema[], text: string): number[] {
  const documents = tools.map(({ function: { name, description, parameters } }) => {
    const properties = Object.entries(parameters.properties ?? {});
    const details = properties.map(([key, { description, enum: options }]) => [key, description, options]);
    const said = `${`${name} `.repeat(6)}${`${description} `.repeat(3)}${details}`;
    return readWords(said).map(({ stem }) => stem);
  });
  const average = documents.flat().length / tools.length;
  const norms = documents.map(({ length }) => 0.6 + (0.6 * length) / average);
  const gains = [...topicOf(text)].map((term) => {
    const counts = documents.map((document) => document.filter((stem) => stem === term).length / 2);
    const rarity = Math.log((tools.length + 1) / (counts.filter((count) => count > 0).length + 0.5));
    return counts.map((count, index) => (rarity * 2.2 * count) / (count + (norms[index] ?? 1)));
  });
  return tools.map((_, index) => gains.reduce((sum, gain) => sum + (gain[index] ?? 0), 0));
}

/** The arguments for an object schema from a text; `undefined` if a required value is missing. */
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
    // An optional value must be near its name or a cue: quotes alone do not say what a text is for.
    const least = ({ kind }: Found) => (required.includes(name) ? -9 : kind === 'quoted' ? 1.8 : 0.8);
    const fitting = rated.filter(({ found, value, score }) => value !== undefined && score > least(found));
    return fitting.map((offer) => ({ ...offer, name, all: schema.type === 'array' ? fitting : undefined }));
  });
  const taken = new Set<Found>();
  // An array takes the values that remain after single values.
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

// The meaning of the word before a value, in addition to the parameter's own words.
const CUES: readonly (readonly [said: RegExp, meant: RegExp])[] = [
  [/\b(?:from|between) (?:the )?$/i, /from|start|origin|source|depart|pick|begin|first|min/i],
  [/\b(?:in|at|near|for|of) (?:the )?$/i, /loc|city|place|area|region|country|where|zone|year|customer/i],
  [/\b(?:by|with|starring|features?|featuring) $/i, /author|artist|direct|name|cast|star|writer/i],
];
// Values of these kinds are only used for parameters that ask for them.
const ASKED: Readonly<Record<string, RegExp>> = {
  expression: /express|formula|equation/i,
  date: /date|yyyy|\bday\b/i,
  time: /\btime|HH/,
  number: /\bid\b|_id|number|code|year|zip|version/i,
};
const NEGATION = /\b(?:no|not|without|\w+n't|never|disabled?)\W+(?:\w+\W+){0,3}$/i;

/** What values of a kind score in addition. */
const BONUSES: ReadonlyMap<string, number> = new Map([
  ['date', 1],
  ['time', 1],
  ['quoted', 1],
  ['number', -0.1],
  ['phrase', -2],
]);

/** Rates how well a value fits a parameter: its name nearby, a cue right before the value, and its kind. */
function rateFit(name: string, { text, words }: Reading): (value: Found) => number {
  const own = topicOf(name);
  const named = words.filter(({ stem }) => own.has(stem));
  const cues = CUES.filter(([, meant]) => meant.test(name));
  return ({ kind, at, end }) => {
    // A name after its value scores a little less; a name inside the value does not count.
    const far = named.map((item) =>
      item.end <= at ? at - item.end : item.at < end ? 999 : item.at - end + 2,
    );
    const near = far.map((distance) => 2 / (1 + distance / 10));
    const cue = cues.some(([said]) => said.test(text.slice(Math.max(0, at - 20), at))) ? 1.5 : 0;
    return Math.max(0, ...near) + cue + (BONUSES.get(kind) ?? 0);
  };
}

/** Converts a value for a parameter or an array's item; `undefined` if it is of another kind. */
function fitValue(name: string, schema: JsonSchema, { kind, value }: Found): unknown {
  const { type, enum: options = [value] } = itemOf(schema);
  const hint = `${name} ${schema.format ?? ''} ${schema.description ?? ''}`;
  if (!options.includes(value)) return undefined;
  if (type === 'integer') return Number.isInteger(value) ? value : undefined;
  if (type !== 'string') return typeof value === type ? value : undefined;
  if (kind in ASKED) return ASKED[kind]?.test(hint) ? `${value}` : undefined;
  if (kind !== 'quoted' && (ASKED.date?.test(hint) || ASKED.expression?.test(hint))) return undefined;
  // An example in the description that begins with the value shows the wanted form: `Berkeley, CA`.
  return hint.split("'").find((example) => example.startsWith(`${value}, `)) ?? value;
}

/** Finds values that the schema names and the text mentions: enum members, and booleans. */
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

/** The schema of one value: for arrays, that of an item; a `null` alternative is ignored. */
function itemOf(schema: JsonSchema): JsonSchema {
  const item = (schema.items ?? schema.anyOf?.find(({ type }) => type !== 'null') ?? schema) as JsonSchema;
  return { ...item, type: [item.type ?? 'string'].flat().find((type) => type !== 'null') };
}

/** A value in a text. A date has the form `2024-03-05`, a time `15:30`; a phrase is any remaining words. */
type Found = Readonly<{ kind: string; value: string | number; at: number; end: number }>;

/** A text with its words and values, in order. */
type Reading = ReturnType<typeof readText>;

const MONTHS = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ');
const MONTH = `(?<m>${MONTHS.join('|')})(?:r?uary|ch|il|e|y|ust|t|t?ember|ober)?\\.?`;
const DAY = '(?<d>\\d{1,2})(?:st|nd|rd|th)?';
const CAPITAL = "(?<![\\p{L}\\p{N}_'’.])\\p{Lu}(?:[\\p{L}\\p{N}&-]|['’](?!s\\b)|(?<=\\b\\p{Lu})\\.)*";

// Tried in this order. Text that one pattern matched is hidden from later ones, except for numbers in expressions.
const PATTERNS: readonly (readonly [kind: string, pattern: RegExp])[] = [
  ['quoted', /(?<![\p{L}\p{N}])['"`“‘].+?['"`”’](?![\p{L}\p{N}])/gu],
  ['date', /\b(?<y>\d{4})[-./](?<m>\d{1,2})[-./](?<d>\d{1,2})\b/g],
  ['date', RegExp(`\\b${MONTH} (?:the )?${DAY}\\b(?:,? ?(?:of )?(?<y>\\d{4}))?`, 'gi')],
  ['date', RegExp(`\\b${DAY} (?:of )?${MONTH}(?:,? ?(?<y>\\d{4}))?\\b`, 'gi')],
  ['time', /\b(?<h>\d{1,2})(?::(?<min>\d\d)|(?=\s*[ap]\.?m\b))(?:\s*(?<half>[ap])\.?m\b\.?)?/gi],
  ['expression', /(?<![-(\d.])[-(]*\d[\d.]*\)*(?:\s*[-+*/^%×÷]{1,2}\s*[-(]*\d[\d.]*\)*)+/g],
  ['number', /(?<![\p{L}\p{N}_.-])-?\d{1,15}(?:,\d{3})*(?:\.\d+)?(?=\p{L}{0,3}(?![\p{L}\p{N}_]))/gu],
  ['name', /https?:\/\/\S+|(?<![\w.+-])[\w.+-]+@[\w-]+\.\w+|(?<![\w-])\/?\w[\w-]*[/_.][\w/.-]*\w/g],
  ['name', /(?<![\p{L}\p{N}])(?:\p{L}+[\d-]*\d[\p{L}\d-]*|\d+\p{L}[\p{L}\d-]*|\p{Ll}+\p{Lu}\w*)/gu],
  ['name', RegExp(`${CAPITAL}(?: (?:(?:of|the|de|del) )?${CAPITAL})*(?:, \\p{Lu}{2,3}\\b)?`, 'gu')],
  ['phrase', /[\p{L}\p{N}]+(?:[ -][\p{L}\p{N}]+)*/gu],
];

/** Reads a text. `year` is used for dates without a year; the stems `own` do not form phrases. */
export function readText(text: string, own: ReadonlySet<string>, year: number) {
  const found: Found[] = [];
  const unread = text.split('');
  for (const [kind, pattern] of PATTERNS) {
    for (const { stem, common, at, end } of kind === 'phrase' ? readWords(unread.join('')) : [])
      if (common || own.has(stem)) unread.fill(' ', at, end);
    for (const { 0: whole, index, groups } of unread.join('').matchAll(pattern)) {
      const end = index + whole.length;
      // A capital letter at the start of a sentence is not a name: `Find Yamaha` is `Yamaha`, `Translate` is nothing.
      const opens = /(?:^|[.?!:;]\s+|\n)["']?$/.test(text.slice(Math.max(0, index - 4), index));
      const mute = (stem: string) => opens && (own.has(stem) || /^\p{Lu}\p{Ll}+$/u.test(whole));
      const first = readWords(whole).find(({ stem, common }) => !common && !mute(stem))?.at ?? whole.length;
      // Paths, addresses and the like may start with any character: `a.txt`.
      const at = kind === 'name' && !/^\S*[/_.@]\S*$/.test(whole) ? index + first : index;
      const value = toValue(kind, text.slice(at, end), { year, ...groups });
      if (at < end) found.push({ kind, value, at, end });
      if (kind !== 'expression') unread.fill(' ', at, end);
    }
  }
  return { text, words: readWords(text), found: found.sort((a, b) => a.at - b.at) };
}

function toValue(kind: string, text: string, groups: Readonly<Record<string, unknown>>): string | number {
  const { year, y = year, m = '', d, h, min = '00', half = '' } = groups;
  const two = (part: unknown) => `${part}`.padStart(2, '0');
  if (kind === 'quoted') return text.slice(1, -1);
  if (kind === 'number') return Number(text.replaceAll(',', ''));
  if (kind === 'time') return `${two(half ? (Number(h) % 12) + (/p/i.test(`${half}`) ? 12 : 0) : h)}:${min}`;
  const month = Number(m) || MONTHS.indexOf(`${m}`.toLowerCase()) + 1;
  return kind === 'date' ? `${y}-${two(month)}-${two(d)}` : text;
}

const COMMON = new Set(
  `a about all an and any are as at be but by can contain contains could d did do does each for from give had
  has have help her his how i if in into is it its just know like ll m may me mention mentions my need needs
  now of on one or our out please provide re s so some t thank that the their them then there these they this
  to up use using ve want was we were what when where which who will with would you your`.split(/\s+/),
);
const ENDING = /^(.{3,}?)(?:ations?|ating|ate[sd]?|ators?|ings?|ions?|ers?|ors?|ed|es|s|e)$/;

/** The words of a sentence or an identifier, in order, with simple stems; `common` words have no topic. */
function readWords(text: string) {
  return [...text.matchAll(/\p{Lu}?\p{Ll}+|\p{Lu}+(?!\p{Ll})|\p{L}+|\p{N}+/gu)].map((match) => {
    const [at, word] = [match.index, match[0].toLowerCase()];
    const stem = word.replace(/([^aeiou])(?:ies|y)$/, '$1i').replace(ENDING, '$1');
    return { stem, common: COMMON.has(word), at, end: at + match[0].length };
  });
}

/** The distinct stems of the words with a topic. */
function topicOf(text: string): Set<string> {
  return new Set(readWords(text).flatMap((word) => (word.common ? [] : [word.stem])));
}
