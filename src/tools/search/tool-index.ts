import type { JsonSchema } from '../../core/contract/json-schema.js';
import { cached } from '../../core/kernel/cached.js';
import { isRecord } from '../../core/kernel/json.js';

/** Words that nearly every request contains and that carry no information. */
const STOP_WORDS: ReadonlySet<string> = new Set(
  `
a about all also am an and any are as at be been being but by can could did do does doing done for from get got
had has have having he hello help her here hers hey hi him his how i if in into is it its itself just know let
like ll m may me might mine must my myself need needed needs no nor not of off oh ok on once only or other our
ours out over own please re s shall she should show so some such t tell than thank thanks that the their theirs
them then there these they this those through to too under until up us use used using ve very want wanted wants
was we were what when where which while who whom whose why will with would you your yours yourself
`.split(/\s+/),
);

/** Words with little meaning of their own in a request. */
const WEAK_WORDS = `
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

/** Words that people and tools use with the same meaning. */
const SYNONYMS = `
create make generate build compose draft produce design; add insert append attach; delete remove erase clear;
update edit modify change rename adjust; find search lookup query discover locate seek explore;
get fetch retrieve obtain load read; list enumerate browse; send deliver post publish share;
save write store export; compute calculate calculator evaluate math formula equation;
convert conversion transform; compare comparison versus; analyze analysis analytics examine inspect;
summarize summary abstract digest; translate translation language;
schedule calendar appointment meeting event agenda; remind reminder alarm; email mail inbox;
message chat sms conversation; call phone telephone; buy purchase shop shopping order product;
price cost pricing quote; cheap discount deal coupon bargain offer promotion; pay payment transfer checkout;
invoice bill receipt; stock share equity ticker invest investment portfolio finance financial;
crypto cryptocurrency bitcoin ethereum blockchain token coin nft; currency forex exchange; loan mortgage credit;
tax taxes irs; car vehicle automobile auto drive;
trip travel journey vacation holiday itinerary tour tourism destination; hotel accommodation lodging stay hostel;
flight plane airline airport; train rail railway; map route direction navigate navigation; near nearby around;
address geocode location place coordinate; weather forecast temperature rain climate;
news headline article current event; paper research academic scholar scholarly scientific study publication;
book novel read literature; movie film cinema show series tv; song music track playlist melody audio;
picture image photo photograph png jpg jpeg; video clip youtube; gift present;
recipe cook meal dish ingredient food cuisine; restaurant dine dining eat; exercise workout fitness training gym;
doctor medical health symptom disease medicine; diet nutrition calorie; law legal attorney lawyer court;
job career vacancy employment hire hiring recruit; resume cv; house home property apartment rent real estate;
learn course lesson tutorial tutor teach education class; quiz trivia test question; game play player;
sport match team league; astrology horoscope zodiac tarot; joke humor funny meme;
presentation ppt pptx powerpoint slide slideshow; document doc docx word; spreadsheet excel xlsx xls worksheet;
markdown md; folder directory; file path; code script program programming; repository repo git;
issue bug ticket defect; website site webpage web url link page; internet online web; user person people member;
employee staff worker; customer client; company business firm corporation enterprise organization;
chart graph plot diagram visualize; measure metric statistic; picture drawing sketch; domain whois dns;
password credential login
`;

const WORD = /\p{Lu}+(?!\p{Ll})|\p{Lu}?[\p{Ll}\p{Lt}\p{Lm}\p{Lo}\p{M}]+|\p{N}+/gu;
/** Scripts that are written without spaces. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Khmer}\p{Script=Lao}]/u;

/**
 * The terms of a text in the index: `getHTTPStatus` and `get_http_status` become `http` and `status`, with the same
 * stems as “statuses”. Texts without spaces become pairs of characters.
 */
function termsOf(text: string): string[] {
  const plain = text
    .normalize('NFKD')
    .replace(/\p{Mn}/gu, '')
    .normalize('NFC');
  const terms: string[] = [];
  for (const word of plain.match(WORD) ?? []) {
    if (UNSPACED.test(word)) {
      const letters = Array.from(word);
      if (letters.length === 1) terms.push(word);
      for (let index = 1; index < letters.length; index += 1)
        terms.push(`${letters[index - 1]}${letters[index]}`);
    } else {
      const term = termOf(word);
      if (term !== '') terms.push(term);
    }
  }
  return terms;
}

const known = new Map<string, string>();
const MAX_KNOWN = 50_000;

/** The stem of a word; empty for a stop word. Stems are cached, because words repeat. */
function termOf(word: string): string {
  const term = known.get(word);
  if (term !== undefined) return term;
  if (known.size >= MAX_KNOWN) known.clear();
  const small = word.toLowerCase();
  const made = STOP_WORDS.has(small) ? '' : stemmed(small);
  known.set(word, made);
  return made;
}

const VOWEL = /[aeiouy]/;

/**
 * Removes the endings of number and tense from English words, so that “searches”, “searching” and “search” are equal.
 */
function stemmed(word: string): string {
  if (word.length < 4) return word;
  let stem = word;
  if (word.endsWith('ies') && word.length > 4) stem = `${word.slice(0, -3)}y`;
  else if (/(?:ss|sh|ch|x|z)es$/.test(word)) stem = word.slice(0, -2);
  else if (/[^siu]s$/.test(word)) stem = word.slice(0, -1);
  if (stem.endsWith('ing') && stem.length > 5) stem = beforeEnding(stem, 3);
  else if (stem.endsWith('ied') && stem.length > 4) stem = `${stem.slice(0, -3)}y`;
  else if (stem.endsWith('ed') && stem.length > 4) stem = beforeEnding(stem, 2);
  if (stem.length > 3 && stem.endsWith('e')) return stem.slice(0, -1);
  return stem.length > 3 && stem.endsWith('y') ? `${stem.slice(0, -1)}i` : stem;
}

function beforeEnding(word: string, ending: number): string {
  const stem = word.slice(0, -ending);
  if (!VOWEL.test(stem)) return word;
  return /([bdfgmnprt])\1$/.test(stem) ? stem.slice(0, -1) : stem;
}

let weak: ReadonlySet<string> | undefined;

/** Whether a word has little meaning in a request. */
function isWeak(term: string): boolean {
  weak ??= new Set(termsOf(WEAK_WORDS));
  return weak.has(term);
}

let synonyms: Map<string, Set<string>> | undefined;

/** The synonyms of a word. */
function synonymsOf(term: string): ReadonlySet<string> | undefined {
  if (synonyms === undefined) {
    synonyms = new Map();
    for (const group of SYNONYMS.split(';')) {
      const terms = new Set(termsOf(group));
      for (const each of terms) synonyms.set(each, new Set([...(synonyms.get(each) ?? []), ...terms]));
    }
  }
  return synonyms.get(term);
}

/** The fields of a tool that are searched. */
export interface SearchedTool {
  readonly name: string;
  readonly description?: string;
  readonly parameters?: JsonSchema;
  /** Its toolset or server, if that helps to find it. */
  readonly namespace?: string;
}

/** Options of a search. */
export interface ToolQuery {
  /** Default: 5. */
  readonly limit?: number;
  /** Whether a tool may be found. */
  readonly accepts?: (name: string) => boolean;
}

const LIMIT = 5;
/** The number of tools that are ranked a second time, by how well they complement each other. */
const CANDIDATES = 64;

/**
 * The weight of a word in each part of a tool, the penalty for long parts (`lengthWeight`, from 0 to 1), and the
 * usual number of words. The latter is a constant, so that the score of a tool does not depend on other tools.
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

/** Above this count, further occurrences of a word add little. */
const SATURATION = 1.2;
/** The factors of words with little meaning, and of synonyms. */
const WORDS = { weak: 0.4, synonym: 0.7 };
/** The most that repetition in a query adds to a word's weight. */
const REPETITION = 0.5;
/** The bonus of a tool whose whole name was requested, or that contains all words of the query. */
const BONUS = { name: 0.8, coverage: 0.6 };
/** How much a word's weight decreases for each chosen tool that contains it, because queries may need several tools. */
const FADE = 0.2;

/** A tool in the index. */
interface Entry {
  readonly name: string;
  /** Its words with their weights, from 0 to 1. */
  readonly impacts: ReadonlyMap<string, number>;
  /** Used by one search at a time; otherwise 0. */
  score: number;
}

/** A word of a query: the weights of all index words with the same meaning, and the largest of these weights. */
interface QueryTerm {
  readonly term: string;
  readonly meanings: ReadonlyMap<string, number>;
  readonly worth: number;
}

/**
 * An index of tools by their words: names, descriptions, parameters and values, ranked by BM25F. The cost of adding,
 * replacing or removing a tool depends only on that tool. The same tools give the same results in any order of
 * insertion.
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
  /** The tools that contain a word, with its weight. */
  readonly #postings = new Map<string, Map<Entry, number>>();

  get size(): number {
    return this.#entries.size;
  }

  /** Adds a tool; it replaces a tool with the same name. */
  add(tool: SearchedTool): void {
    const { name } = tool;
    this.remove(name);
    const entry: Entry = { name, impacts: impactsOf(tool), score: 0 };
    for (const [term, impact] of entry.impacts)
      cached(this.#postings, term, () => new Map<Entry, number>()).set(entry, impact);
    this.#entries.set(name, entry);
  }

  remove(name: string): void {
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    for (const term of entry.impacts.keys()) this.#postings.get(term)?.delete(entry);
    this.#entries.delete(name);
  }

  /** Names of the tools that match a query best, best first. */
  search(query: string, { limit = LIMIT, accepts = () => true }: ToolQuery = {}): readonly string[] {
    const named: string[] = [];
    for (const name of namesIn(query)) {
      const entries = this.#postings.get(nameTerm(name))?.keys() ?? [];
      named.push(...Array.from(entries, (entry) => entry.name).sort());
    }
    const terms = this.#weigh(query);
    const candidates = this.#best(terms, { limit: Math.max(CANDIDATES, 2 * limit), accepts });
    const chosen = chooseTools(candidates, terms, limit);
    return [...new Set([...named.filter(accepts), ...chosen])].slice(0, limit);
  }

  /** The words of a query that the index contains, and their synonyms, with their weights. */
  #weigh(query: string): readonly QueryTerm[] {
    const counts = new Map<string, number>();
    for (const term of requestTerms(query)) counts.set(term, (counts.get(term) ?? 0) + 1);
    const terms: QueryTerm[] = [];
    for (const [term, count] of counts) {
      const weight = ((count * (REPETITION + 1)) / (count + REPETITION)) * (isWeak(term) ? WORDS.weak : 1);
      const meanings = new Map<string, number>();
      for (const meaning of new Set([...(synonymsOf(term) ?? []), term])) {
        const found = this.#postings.get(meaning)?.size ?? 0;
        if (found === 0) continue;
        const rarity = Math.log(1 + (this.#entries.size - found + 0.5) / (found + 0.5));
        meanings.set(meaning, weight * rarity * (meaning === term ? 1 : WORDS.synonym));
      }
      if (meanings.size > 0) terms.push({ term, meanings, worth: Math.max(...meanings.values()) });
    }
    return terms;
  }

  /** The tools with the highest scores, highest first; equal scores are sorted by name. */
  #best(terms: readonly QueryTerm[], { limit, accepts }: Required<ToolQuery>): readonly Entry[] {
    const touched: Entry[] = [];
    for (const { meanings } of terms)
      for (const [term, weight] of meanings)
        for (const [entry, impact] of this.#postings.get(term) ?? []) {
          if (entry.score === 0) touched.push(entry);
          entry.score += weight * impact;
        }
    const found = touched
      .map((entry) => {
        const { score } = entry;
        entry.score = 0;
        return { entry, score };
      })
      // Names are compared by code units, independent of the locale.
      .sort((one, other) => other.score - one.score || (one.entry.name < other.entry.name ? -1 : 1));
    const best: Entry[] = [];
    // Only as far as needed, because a view asks several filters.
    for (const { entry } of found) {
      if (best.length === limit) break;
      if (accepts(entry.name)) best.push(entry);
    }
    return best;
  }
}

/** Chooses tools one after the other, each for the part of the query that the earlier tools do not cover. */
function chooseTools(candidates: readonly Entry[], query: readonly QueryTerm[], limit: number): string[] {
  const asked = new Set(query.map(({ term }) => term));
  const total = query.reduce((sum, { worth }) => sum + worth, 0);
  const left = candidates.map(({ name, impacts }) => {
    const parts = query.map(({ meanings }) => {
      let part = 0;
      for (const [term, weight] of meanings) part += weight * (impacts.get(term) ?? 0);
      return part;
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
    for (const [index, part] of next.parts.entries())
      if (part > 0) open[index] = (open[index] as number) * (1 - FADE);
  }
  return chosen;
}

/** The term for a tool's whole name, without case. */
function nameTerm(name: string): string {
  return `=${name.toLowerCase()}`;
}

/** The weight of each word of a tool, including its whole name. */
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

/** Limits for schemas of untrusted servers. */
const MAX_DEPTH = 6;
const MAX_VALUES = 50;

/** Collects names, descriptions and values of parameters. */
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

/** Linear: this pattern never backtracks. */
const CHAIN = /[A-Za-z0-9]+(?:[_\-.][A-Za-z0-9]+)*/g;

/** The words of a query in the form of tool names, such as `read_file` or `readFile`; and the whole query. */
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

/** The words of a request. A URL or file path counts as its kind, and not by the names in it. */
function requestTerms(request: string): string[] {
  const words = request
    .slice(0, MAX_REQUEST)
    .split(/\s+/)
    .map((word) => {
      if (/^\W*https?:\/\//i.test(word)) return 'url';
      if (!/[/\\]/.test(word)) return word;
      // An ending is short: only the end of a long word is searched.
      const ending = /\.(\w{1,8})\W*$/.exec(word.slice(-16))?.[1];
      return ending === undefined ? word : `file ${ending}`;
    });
  return termsOf(words.join(' '));
}
