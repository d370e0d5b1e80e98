import type { JsonSchema } from '../contract/json-schema.js';
import { isRecord } from '../kernel/json.js';
import { isWeak, synonymsOf, termsOf } from './terms.js';

/** What of a tool is searched. */
export interface SearchedTool {
  readonly name: string;
  readonly description?: string;
  readonly parameters?: JsonSchema;
  /** The toolset or the server that it belongs to, if that helps to find it. */
  readonly namespace?: string;
}

/** What a search is to give. */
export interface ToolQuery {
  /** Default: 5. */
  readonly limit?: number;
  /** Whether a tool may be found. */
  readonly accepts?: (name: string) => boolean;
}

const LIMIT = 5;
/** So many tools are ranked a second time, by how well they complement each other. */
const CANDIDATES = 64;

/**
 * How much a word counts in one part of a tool, how much less in a long one (`lengthWeight`, from 0 to 1), and how many
 * words are usual: a constant, so that the score of a tool does not depend on other tools.
 */
const FIELDS = {
  name: { weight: 2.5, lengthWeight: 0.15, usual: 3 },
  namespace: { weight: 0.6, lengthWeight: 0.3, usual: 2 },
  description: { weight: 1, lengthWeight: 0.6, usual: 10 },
  parameters: { weight: 0.7, lengthWeight: 0.75, usual: 5 },
  parameterTexts: { weight: 0.5, lengthWeight: 0.75, usual: 20 },
  values: { weight: 0.8, lengthWeight: 0.75, usual: 4 },
};

type Texts = Readonly<Record<keyof typeof FIELDS, string[]>>;

/** From here on it adds little how often a word is in a tool. */
const SATURATION = 1.2;
/** The factors of words that mean little, and of synonyms. */
const WORDS = { weak: 0.4, synonym: 0.7 };
/** How much a word counts more that a query repeats, at most. */
const REPETITION = 0.5;
/** How much more a tool counts if its whole name was asked for, or if it has all words of the query. */
const BONUS = { name: 0.8, coverage: 0.6 };
/** How much less a word counts for each tool that was chosen for it: queries may need several tools. */
const FADE = 0.2;

/** A tool in the index: its words, and how much each of them counts for it, from 0 to 1. */
interface Entry {
  readonly name: string;
  readonly place: number;
  readonly terms: readonly string[];
  readonly impacts: readonly number[];
}

/** The tools that have a word, by their places in the index. */
interface Posting {
  readonly places: number[];
  readonly impacts: number[];
}

interface Scored {
  readonly entry: Entry;
  readonly score: number;
}

/** A word of a query: what each word of the index weighs that means the same, and the largest of these weights. */
interface QueryTerm {
  readonly term: string;
  readonly meanings: ReadonlyMap<string, number>;
  readonly worth: number;
}

/**
 * Tools by their words: names, descriptions, parameters and values, ranked by BM25F. Adding, replacing and removing a
 * tool costs what that tool costs; the same tools give the same answers whatever order they came in.
 *
 * @example
 * ```ts
 * const index = new ToolIndex();
 * for (const tool of tools.tools()) index.add(tool);
 * index.search('which invoices are open?'); // ['list_invoices', 'find_invoice', …]
 * ```
 */
export class ToolIndex {
  readonly #entries = new Map<string, Entry>();
  readonly #places: (Entry | undefined)[] = [];
  readonly #free: number[] = [];
  readonly #postings = new Map<string, Posting>();
  #scores = new Float64Array(256);

  get size(): number {
    return this.#entries.size;
  }

  /** Adds a tool, in place of one of the same name. */
  add(tool: SearchedTool): void {
    const { name } = tool;
    this.remove(name);
    const impactOf = impactsOf(tool);
    const [terms, impacts] = [[...impactOf.keys()], [...impactOf.values()]];
    const place = this.#free.pop() ?? this.#places.length;
    const entry: Entry = { name, place, terms, impacts };
    for (const [term, impact] of impactOf) {
      const posting = this.#postings.get(term) ?? { places: [], impacts: [] };
      this.#postings.set(term, posting);
      posting.places.push(place);
      posting.impacts.push(impact);
    }
    this.#places[place] = entry;
    this.#entries.set(name, entry);
  }

  remove(name: string): void {
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    for (const term of entry.terms) {
      const { places, impacts } = this.#postings.get(term) as Posting;
      const index = places.indexOf(entry.place);
      // The order within a posting means nothing: the last one takes the place of the removed one.
      const [lastPlace = 0, lastImpact = 0] = [places.pop(), impacts.pop()];
      if (index === places.length) continue;
      places[index] = lastPlace;
      impacts[index] = lastImpact;
    }
    this.#entries.delete(name);
    this.#places[entry.place] = undefined;
    this.#free.push(entry.place);
  }

  /** Names of the tools that fit a query best, the best one first. */
  search(query: string, { limit = LIMIT, accepts = () => true }: ToolQuery = {}): readonly string[] {
    const named = namesIn(query).flatMap((name) => {
      const places = this.#postings.get(nameTerm(name))?.places ?? [];
      return places.map((place) => (this.#places[place] as Entry).name).sort();
    });
    const terms = this.#weigh(query);
    const candidates = this.#best(terms, { limit: Math.max(CANDIDATES, 2 * limit), accepts });
    const chosen = chooseTools(candidates, terms, limit);
    return [...new Set([...named.filter(accepts), ...chosen])].slice(0, limit);
  }

  /** The words of a query that the index has, and their synonyms, with their weights. */
  #weigh(query: string): readonly QueryTerm[] {
    const counts = new Map<string, number>();
    for (const term of requestTerms(query)) counts.set(term, (counts.get(term) ?? 0) + 1);
    return Array.from(counts, ([term, count]) => {
      const weight = ((count * (REPETITION + 1)) / (count + REPETITION)) * (isWeak(term) ? WORDS.weak : 1);
      const meanings = new Map<string, number>();
      for (const meaning of new Set([...(synonymsOf(term) ?? []), term])) {
        const found = this.#postings.get(meaning)?.places.length ?? 0;
        if (found === 0) continue;
        const rarity = Math.log(1 + (this.#entries.size - found + 0.5) / (found + 0.5));
        meanings.set(meaning, weight * rarity * (meaning === term ? 1 : WORDS.synonym));
      }
      return { term, meanings, worth: Math.max(0, ...meanings.values()) };
    }).filter(({ meanings }) => meanings.size > 0);
  }

  /** The tools with the highest scores, the highest one first; if scores are equal, by name. */
  #best(terms: readonly QueryTerm[], { limit, accepts }: Required<ToolQuery>): readonly Entry[] {
    if (this.#scores.length < this.#places.length) this.#scores = new Float64Array(2 * this.#places.length);
    const scores = this.#scores;
    const touched: number[] = [];
    for (const { meanings } of terms)
      for (const [term, weight] of meanings) {
        const { places, impacts } = this.#postings.get(term) as Posting;
        for (let index = 0; index < places.length; index += 1) {
          const place = places[index] as number;
          if (scores[place] === 0) touched.push(place);
          scores[place] = (scores[place] as number) + weight * (impacts[index] as number);
        }
      }
    const best: Scored[] = [];
    for (const place of touched) {
      const score = scores[place] as number;
      scores[place] = 0;
      const last = best.length < limit ? undefined : best[limit - 1];
      if (last !== undefined && score < last.score) continue;
      const scored = { entry: this.#places[place] as Entry, score };
      if ((last !== undefined && !isBefore(scored, last)) || !accepts(scored.entry.name)) continue;
      if (last !== undefined) best.pop();
      let index = best.length;
      while (index > 0 && isBefore(scored, best[index - 1] as Scored)) index -= 1;
      best.splice(index, 0, scored);
    }
    return best.map(({ entry }) => entry);
  }
}

/** By code units, which no locale changes. */
function isBefore(one: Scored, other: Scored): boolean {
  return one.score === other.score ? one.entry.name < other.entry.name : one.score > other.score;
}

/** Chooses one tool after the other, each for what the tools before it leave open of the query. */
function chooseTools(candidates: readonly Entry[], query: readonly QueryTerm[], limit: number): string[] {
  const asked = new Set(query.map(({ term }) => term));
  const total = query.reduce((sum, { worth }) => sum + worth, 0);
  const meaningsOf = new Map<string, { readonly index: number; readonly weight: number }[]>();
  for (const [index, { meanings }] of query.entries())
    for (const [term, weight] of meanings)
      meaningsOf.set(term, [...(meaningsOf.get(term) ?? []), { index, weight }]);
  const left = candidates.map(({ name, terms, impacts }) => {
    const parts = query.map(() => 0);
    terms.forEach((term, place) => {
      for (const { index, weight } of meaningsOf.get(term) ?? [])
        parts[index] = (parts[index] as number) + weight * (impacts[place] as number);
    });
    const covered = query.reduce((sum, { worth }, index) => (parts[index] === 0 ? sum : sum + worth), 0);
    const nameTerms = [...new Set(termsOf(name))];
    const named = nameTerms.filter((term) => asked.has(term)).length / Math.max(1, nameTerms.length);
    return { name, parts, factor: (1 + BONUS.name * named) * (1 + (BONUS.coverage * covered) / total) };
  });
  const open = query.map(() => 1);
  const chosen: string[] = [];
  while (chosen.length < limit && left.length > 0) {
    const scores = left.map(
      ({ parts, factor }) =>
        factor * parts.reduce((sum, part, index) => sum + part * (open[index] as number), 0),
    );
    const [next] = left.splice(scores.indexOf(Math.max(...scores)), 1);
    if (next === undefined) break;
    chosen.push(next.name);
    next.parts.forEach((part, index) => {
      if (part > 0) open[index] = (open[index] as number) * (1 - FADE);
    });
  }
  return chosen;
}

/** The term by which a tool is found by its name, whatever its case. */
function nameTerm(name: string): string {
  return `=${name.toLowerCase()}`;
}

/** How much each word counts for a tool, its name as a whole included. */
function impactsOf(tool: SearchedTool): ReadonlyMap<string, number> {
  const { name, description = '', namespace = '', parameters } = tool;
  const texts: Texts = {
    name: [name],
    namespace: [namespace],
    description: [description],
    parameters: [],
    parameterTexts: [],
    values: [],
  };
  collectTexts(parameters, texts, 0);
  const weights = new Map<string, number>();
  for (const [field, { weight, lengthWeight, usual }] of Object.entries(FIELDS)) {
    const terms = texts[field as keyof Texts].flatMap(termsOf);
    const each = weight / (1 - lengthWeight + (lengthWeight * terms.length) / usual);
    for (const term of terms) weights.set(term, (weights.get(term) ?? 0) + each);
  }
  for (const [term, weight] of weights) weights.set(term, weight / (SATURATION + weight));
  return weights.set(nameTerm(name), 1);
}

/** Schemas of foreign servers may be as deep, and have as many values, as they like. */
const MAX_DEPTH = 6;
const MAX_VALUES = 50;

/** Names of parameters, their descriptions and values. */
function collectTexts(schema: unknown, texts: Texts, depth: number): void {
  if (!isRecord(schema) || depth > MAX_DEPTH) return;
  const { properties, items, enum: values, $defs, anyOf, oneOf, allOf, description } = schema;
  if (depth > 0 && typeof description === 'string') texts.parameterTexts.push(description);
  if (isRecord(properties)) texts.parameters.push(...Object.keys(properties));
  for (const value of Array.isArray(values) ? values.slice(0, MAX_VALUES) : [])
    if (typeof value === 'string') texts.values.push(value);
  for (const parts of [properties, $defs, [items], anyOf, oneOf, allOf])
    for (const part of isRecord(parts) || Array.isArray(parts) ? Object.values(parts) : [])
      collectTexts(part, texts, depth + 1);
}

/** Never fails once it has begun: what is long is looked through once. */
const CHAIN = /[A-Za-z0-9]+(?:[_\-.][A-Za-z0-9]+)*/g;

/** The words of a query that are written like names of tools: `read_file`, `readFile`; and the whole query. */
function namesIn(query: string): readonly string[] {
  const names = new Set([query.trim().toLowerCase()]);
  for (const chain of query.match(CHAIN) ?? []) {
    const hasParts = /[_\-.]/.test(chain);
    const [name = ''] = (hasParts ? /[A-Za-z].*/ : /[a-z].*/).exec(chain) ?? [];
    if (hasParts || /[A-Z]/.test(name)) names.add(name.toLowerCase());
  }
  return [...names];
}

const MAX_REQUEST = 4_000;

/** The words of a request. An address or the path of a file counts as what it is, and not by the names in it. */
function requestTerms(request: string): string[] {
  const words = request
    .slice(0, MAX_REQUEST)
    .split(/\s+/)
    .map((word) => {
      if (/^\W*https?:\/\//i.test(word)) return 'url';
      if (!/[/\\]/.test(word)) return word;
      // An ending is short: a longer word need not be looked through.
      const ending = /\.(\w{1,8})\W*$/.exec(word.slice(-16))?.[1];
      return ending === undefined ? word : `file ${ending}`;
    });
  return termsOf(words.join(' '));
}
