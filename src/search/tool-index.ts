import { kindredOf, type SearchedTool, termsOf, toolTerms } from './terms.js';

/** What a search is to give. */
export interface ToolQuery {
  /** Default: 5. */
  readonly limit?: number;
  /** Whether a tool may be found. */
  readonly accepts?: (name: string) => boolean;
}

/** One tool in the index. */
interface Entry extends Candidate {
  readonly place: number;
}

/** The tools that one word says something of, by their places in the index. */
interface Posting {
  readonly places: number[];
  readonly impacts: number[];
}

/** What a word counts that says little, and one that means the same as another. */
const WORDS = { weak: 0.4, kindred: 0.7 };
/** How many times a word counts that a query has again and again, at most: once and this much. */
const REPETITION = { most: 0.5 };
const LIMIT = 5;
/** So many tools are looked at more closely. */
const CANDIDATES = 64;

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
  /** By names in small letters. */
  readonly #alike = new Map<string, Set<string>>();
  #scores = new Float64Array(256);

  get size(): number {
    return this.#entries.size;
  }

  /** Adds a tool, in place of one of the same name. */
  add(tool: SearchedTool): void {
    const { name } = tool;
    this.remove(name);
    const { terms, impacts } = toolTerms(tool);
    const place = this.#free.pop() ?? this.#places.length;
    const entry: Entry = { name, place, terms, impacts };
    for (let index = 0; index < terms.length; index += 1)
      this.#post(terms[index] as string, place, impacts[index] as number);
    this.#places[place] = entry;
    this.#entries.set(name, entry);
    const key = name.toLowerCase();
    const alike = this.#alike.get(key);
    if (alike === undefined) this.#alike.set(key, new Set([name]));
    else alike.add(name);
  }

  remove(name: string): void {
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    const { place, terms } = entry;
    for (const term of terms) {
      const { places, impacts } = this.#postings.get(term) as Posting;
      const index = places.indexOf(place);
      // The order within a posting says nothing: the last one takes the place of the removed one.
      const lastPlace = places.pop() as number;
      const lastImpact = impacts.pop() as number;
      if (index === places.length) continue;
      places[index] = lastPlace;
      impacts[index] = lastImpact;
    }
    this.#entries.delete(name);
    this.#places[place] = undefined;
    this.#free.push(place);
    const key = name.toLowerCase();
    const alike = this.#alike.get(key);
    alike?.delete(name);
    if (alike?.size === 0) this.#alike.delete(key);
  }

  /** Names of the tools that fit a query best, the best one first. */
  search(query: string, { limit = LIMIT, accepts = acceptAll }: ToolQuery = {}): readonly string[] {
    const named = namesIn(query).flatMap((name) => [...(this.#alike.get(name) ?? [])].sort());
    const terms = this.#weigh(query);
    const candidates = this.#best(terms, { count: Math.max(CANDIDATES, 2 * limit), accepts });
    const ordered = orderCandidates(candidates, terms, limit);
    return [...new Set([...named.filter(accepts), ...ordered])].slice(0, limit);
  }

  #post(term: string, place: number, impact: number): void {
    let posting = this.#postings.get(term);
    if (posting === undefined) {
      posting = { places: [], impacts: [] };
      this.#postings.set(term, posting);
    }
    posting.places.push(place);
    posting.impacts.push(impact);
  }

  /** The words of a query that the index knows, and those that mean the same, with what they are worth. */
  #weigh(query: string): QueryTerms {
    const counts = new Map<string, number>();
    for (const term of requestTerms(query)) counts.set(term, (counts.get(term) ?? 0) + 1);
    const weighed: QueryTerms[number][] = [];
    for (const [term, count] of counts) {
      const often = (count * (REPETITION.most + 1)) / (count + REPETITION.most);
      const weight = often * (isWeak(term) ? WORDS.weak : 1);
      const meanings = new Map<string, number>();
      const add = (meaning: string, share: number): void => {
        const rarity = this.#rarity(meaning);
        if (rarity > 0) meanings.set(meaning, weight * share * rarity);
      };
      for (const kindred of kindredOf(term)) add(kindred, WORDS.kindred);
      add(term, 1);
      if (meanings.size > 0) weighed.push({ term, meanings, worth: Math.max(...meanings.values()) });
    }
    return weighed;
  }

  /** How much a word tells tools apart; nothing where no tool has it. */
  #rarity(term: string): number {
    const count = this.#postings.get(term)?.places.length ?? 0;
    return count === 0 ? 0 : Math.log(1 + (this.#entries.size - count + 0.5) / (count + 0.5));
  }

  /** The tools with the highest scores, the highest one first; where scores are equal, by name. */
  #best(
    terms: QueryTerms,
    { count, accepts }: Required<Pick<ToolQuery, 'accepts'>> & { readonly count: number },
  ): readonly Entry[] {
    const touched = this.#score(terms);
    const scores = this.#scores;
    const best: { readonly entry: Entry; readonly score: number }[] = [];
    let lowest = 0;
    for (const place of touched) {
      const score = scores[place] as number;
      scores[place] = 0;
      if (score < lowest) continue;
      const entry = this.#places[place] as Entry;
      const isFull = best.length >= count;
      const last = best[best.length - 1];
      if (isFull && last !== undefined && score === last.score && entry.name > last.entry.name) continue;
      if (!accepts(entry.name)) continue;
      if (isFull) best.pop();
      let index = best.length;
      while (index > 0 && isBefore({ entry, score }, best[index - 1])) index -= 1;
      best.splice(index, 0, { entry, score });
      if (best.length >= count) lowest = best[best.length - 1]?.score ?? 0;
    }
    return best.map(({ entry }) => entry);
  }

  /** Puts the score of every tool that the words say something of in its place, and gives those places. */
  #score(terms: QueryTerms): readonly number[] {
    if (this.#scores.length < this.#places.length) this.#scores = new Float64Array(2 * this.#places.length);
    const scores = this.#scores;
    const touched: number[] = [];
    for (const { meanings } of terms)
      for (const [term, weight] of meanings) {
        const { places, impacts } = this.#postings.get(term) as Posting;
        for (let index = 0; index < places.length; index += 1) {
          const place = places[index] as number;
          const score = scores[place] as number;
          if (score === 0) touched.push(place);
          scores[place] = score + weight * (impacts[index] as number);
        }
      }
    return touched;
  }
}

interface Scored {
  readonly entry: Candidate;
  readonly score: number;
}

/** By code units, which no locale changes. */
function isBefore(one: Scored, other: Scored | undefined): boolean {
  if (other === undefined) return false;
  return one.score === other.score ? one.entry.name < other.entry.name : one.score > other.score;
}

function acceptAll(): boolean {
  return true;
}

/** A tool that may be what was asked for. */
interface Candidate {
  readonly name: string;
  readonly terms: readonly string[];
  /** How much each of its words says of it. */
  readonly impacts: readonly number[];
}

/** The words of a query that are known: what each of their meanings weighs, and the most that one can be worth. */
type QueryTerms = readonly {
  readonly term: string;
  readonly meanings: ReadonlyMap<string, number>;
  readonly worth: number;
}[];

/** How much more a tool counts all of whose name was asked for, or that has all words of the query. */
const BONUS = { name: 0.8, coverage: 0.6 };
/** How much less a word counts for each tool that was chosen for it: queries may need several tools. */
const ANSWERED = { fade: 0.2 };

interface Judged {
  readonly name: string;
  readonly factor: number;
  /** What each word of the query adds, by its index. */
  readonly parts: readonly (readonly [index: number, score: number])[];
}

/** Chooses one tool after the other, each for what the tools before it leave open of the query. */
function orderCandidates(
  candidates: readonly Candidate[],
  query: QueryTerms,
  limit: number,
): readonly string[] {
  const left = judge(candidates, query);
  const open = query.map(() => 1);
  const chosen: string[] = [];
  while (chosen.length < limit && left.length > 0) {
    let best = 0;
    let bestScore = -1;
    left.forEach(({ parts, factor }, index) => {
      const score = factor * parts.reduce((sum, [term, part]) => sum + part * (open[term] ?? 1), 0);
      // Sums of the same parts in another order differ by less than this.
      if (score > bestScore * (1 + 1e-12)) {
        best = index;
        bestScore = score;
      }
    });
    const [next] = left.splice(best, 1);
    if (next === undefined) break;
    chosen.push(next.name);
    for (const [term] of next.parts) open[term] = (open[term] ?? 1) * (1 - ANSWERED.fade);
  }
  return chosen;
}

function judge(candidates: readonly Candidate[], query: QueryTerms): Judged[] {
  const asked = new Set(query.map(({ term }) => term));
  const whole = query.reduce((sum, { worth }) => sum + worth, 0);
  const meaningOf = new Map<string, (readonly [number, number])[]>();
  query.forEach(({ meanings }, index) => {
    for (const [term, weight] of meanings) {
      const known = meaningOf.get(term);
      if (known === undefined) meaningOf.set(term, [[index, weight]]);
      else known.push([index, weight]);
    }
  });
  return candidates.map(({ name, terms, impacts }) => {
    const parts = new Map<number, number>();
    terms.forEach((term, place) => {
      for (const [index, weight] of meaningOf.get(term) ?? [])
        parts.set(index, (parts.get(index) ?? 0) + weight * (impacts[place] ?? 0));
    });
    const sorted = [...parts].sort(([one], [other]) => one - other);
    const covered = sorted.reduce((sum, [index]) => sum + (query[index]?.worth ?? 0), 0);
    const nameTerms = new Set(termsOf(name));
    let named = 0;
    for (const term of nameTerms) if (asked.has(term)) named += 1;
    const share = nameTerms.size === 0 ? 0 : named / nameTerms.size;
    const factor = (1 + BONUS.name * share) * (1 + BONUS.coverage * (whole === 0 ? 0 : covered / whole));
    return { name, factor, parts: sorted };
  });
}

/** What stands in a query as the name of a tool would, in small letters: all of it, or a word that is written as one. */
function namesIn(query: string): readonly string[] {
  const written = (query.match(CHAIN) ?? []).flatMap(nameIn);
  return [...new Set([query.trim(), ...written].map((name) => name.toLowerCase()))];
}

/** Never fails once it has begun: what is long is looked through once. */
const CHAIN = /[A-Za-z0-9]+(?:[_\-.][A-Za-z0-9]+)*/g;

/** From the first letter on what has several parts; of one part what is in camelCase. */
function nameIn(chain: string): readonly string[] {
  const letter = chain.search(/[A-Za-z]/);
  if (letter < 0) return [];
  const name = chain.slice(letter);
  if (/[_\-.]/.test(name)) return [name];
  const small = name.search(/[a-z]/);
  const camel = small < 0 ? '' : name.slice(small);
  return /[A-Z]/.test(camel) ? [camel] : [];
}

const MAX_REQUEST = 4_000;
const ADDRESS = /^\W*https?:\/\//i;
const ENDING = /\.(\w{1,8})\W*$/;

/** The words of a request. An address or the path of a file counts as what it is, and not by the names in it. */
function requestTerms(request: string): string[] {
  const words = request
    .slice(0, MAX_REQUEST)
    .split(/\s+/)
    .map((word) => {
      if (ADDRESS.test(word)) return 'url';
      if (!word.includes('/') && !word.includes('\\')) return word;
      // An ending is short: a longer word need not be looked through.
      const ending = ENDING.exec(word.slice(-16))?.[1];
      return ending === undefined ? word : `file ${ending}`;
    });
  return termsOf(words.join(' '));
}

/** Words that requests have for no reason of their own: what they say is in the words around them. */
const WEAK = `
able access actual additional ahead always amount another answer appropriate area ask aspect available aware
back bad based basic become begin believe best better big bit bring care case certain chance check choose clear
close come common complete comprehensive consider contain couple currently day deal decide depth detail detailed
different difficult directly due easy effective efficient end engage enjoy ensure entire especially essential
etc even ever every everything exact example excellent exist expect experience explain extra fact far feel few
first follow form forward friend full fun further general give given go goal going good great happen hear high
highly hope idea identify important include including individual information insight inspire instead interest
interested interesting involve issue keep kind large last latest least leave less level little long look looking
lot main major make many matter maybe mean meet mention method mind moment more most move much multiple near
necessary never new next nice nothing now number obtain offer often open opinion option order overall part
particular past perfect perform person personal piece plan point popular possible possibly potential prefer
preferably preference process proper provide put quality question quick quickly quite range ready real really
reason receive recent recently recommend recommendation regard regarding related relate relevant reliable
request require requirement right say see seem seek several short similar simple since small something soon
special specific specifically specify start step still stuff suggest suggestion suitable support sure surely
suspect take talk term thing think thought time today tomorrow top topic toward try trying type understand
unique upcoming valuable variety various visit wait way week well wide within without wonder wondering work
world worry year yes yesterday yet tool app application assistant plugin chatbot bot system feature function
root
`;

let weak: ReadonlySet<string> | undefined;

/** Whether a word says little in a request. */
function isWeak(term: string): boolean {
  weak ??= new Set(termsOf(WEAK));
  return weak.has(term);
}
