import type { JsonSchema } from '../contract/json-schema.js';
import { isRecord } from '../kernel/json.js';

/** Words that nearly every request has and that say nothing about what is to be done. */
const STOP_WORDS = new Set(
  (
    'a about all also am an and any are as at be been being but by can could did do does doing done for from get got ' +
    'had has have having he hello help her here hers hey hi him his how i if in into is it its itself just know let ' +
    'like ll m may me might mine must my myself need needed needs no nor not of off oh ok on once only or other our ' +
    'ours out over own please re s shall she should show so some such t tell than thank thanks that the their theirs ' +
    'them then there these they this those through to too under until up us use used using ve very want wanted wants ' +
    'was we were what when where which while who whom whose why will with would you your yours yourself'
  ).split(' '),
);

/** Scripts that are written without spaces. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Khmer}\p{Script=Lao}]/u;

/**
 * The words of a text as the index knows them: `getHTTPStatus` and `get_http_status` are `http` and `status`, in the
 * same stems as “statuses”. Texts without spaces give their pairs of characters.
 */
export function termsOf(text: string): string[] {
  const terms: string[] = [];
  addTerms(text, terms);
  return terms;
}

/** Adds the words of a text to others. */
function addTerms(text: string, terms: string[]): void {
  if (isAscii(text)) {
    eachWord(text, (word) => {
      const term = termOf(word);
      if (term !== '') terms.push(term);
    });
    return;
  }
  for (const word of wordsOf(text)) {
    if (UNSPACED.test(word)) terms.push(...pairsOf(word));
    else if (termOf(word) !== '') terms.push(termOf(word));
  }
}

const LOWER_UPPER = /(\p{Ll}|\p{N})(\p{Lu})/gu;
const ACRONYM_WORD = /(\p{Lu})(\p{Lu}\p{Ll})/gu;
const WORD = /[\p{L}\p{M}]+|\p{N}+/gu;

/** The words of any text, without accents, with the parts of names apart. */
function wordsOf(text: string): readonly string[] {
  const apart = text.replace(LOWER_UPPER, '$1 $2').replace(ACRONYM_WORD, '$1 $2');
  const plain = apart
    .normalize('NFKD')
    .replace(/\p{Mn}/gu, '')
    .normalize('NFC');
  return plain.match(WORD) ?? [];
}

function isAscii(text: string): boolean {
  for (let index = 0; index < text.length; index += 1) if (text.charCodeAt(index) > 127) return false;
  return true;
}

const [OTHER, LOWER, UPPER, DIGIT] = [0, 1, 2, 3];

/** What each ASCII character is. */
const KINDS = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code);
  if (/[a-z]/.test(character)) return LOWER;
  if (/[A-Z]/.test(character)) return UPPER;
  return /\d/.test(character) ? DIGIT : OTHER;
});

/** The same words of an ASCII text, which nearly all are, in a third of the time. */
function eachWord(text: string, tell: (word: string) => void): void {
  let start = 0;
  let before = OTHER;
  for (let index = 0; index <= text.length; index += 1) {
    const kind = index === text.length ? OTHER : (KINDS[text.charCodeAt(index)] as number);
    if (kind === before) continue;
    // A capital and the small letters after it are one word, and of several capitals the last one is theirs.
    const isCapital = before === UPPER && kind === LOWER;
    const end = isCapital ? index - 1 : index;
    if (before !== OTHER && end > start) tell(text.slice(start, end));
    start = end;
    before = kind;
  }
}

function pairsOf(word: string): readonly string[] {
  const letters = Array.from(word);
  if (letters.length === 1) return letters;
  return letters.slice(1).map((letter, index) => `${letters[index]}${letter}`);
}

const known = new Map<string, string>();
const MAX_KNOWN = 50_000;

/** What a word is in the index; empty for one that says nothing. Words come again and again, and are looked up. */
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

/** Takes the endings of number and tense off English words, so that “searches”, “searching” and “search” are one. */
function stemmed(word: string): string {
  if (word.length < 4) return word;
  const stem = withoutTense(singular(word));
  if (stem.length > 3 && stem.endsWith('e')) return stem.slice(0, -1);
  return stem.length > 3 && stem.endsWith('y') ? `${stem.slice(0, -1)}i` : stem;
}

function singular(word: string): string {
  if (word.endsWith('ies') && word.length > 4) return `${word.slice(0, -3)}y`;
  if (/(?:ss|sh|ch|x|z)es$/.test(word)) return word.slice(0, -2);
  return /[^siu]s$/.test(word) ? word.slice(0, -1) : word;
}

function withoutTense(word: string): string {
  if (word.endsWith('ing') && word.length > 5) return beforeEnding(word, 3);
  if (word.endsWith('ied') && word.length > 4) return `${word.slice(0, -3)}y`;
  return word.endsWith('ed') && word.length > 4 ? beforeEnding(word, 2) : word;
}

function beforeEnding(word: string, ending: number): string {
  const stem = word.slice(0, -ending);
  if (!VOWEL.test(stem)) return word;
  return /([bdfgmnprt])\1$/.test(stem) ? stem.slice(0, -1) : stem;
}

/** Words that people and tools use for the same thing, a line for each thing. */
const KINDRED = `
create make generate build compose draft produce design
add insert append attach
delete remove erase clear
update edit modify change rename adjust
find search lookup query discover locate seek explore
get fetch retrieve obtain load read
list enumerate browse
send deliver post publish share
save write store export
compute calculate calculator evaluate math formula equation
convert conversion transform
compare comparison versus
analyze analysis analytics examine inspect
summarize summary abstract digest
translate translation language
schedule calendar appointment meeting event agenda
remind reminder alarm
email mail inbox
message chat sms conversation
call phone telephone
buy purchase shop shopping order product
price cost pricing quote
cheap discount deal coupon bargain offer promotion
pay payment transfer checkout
invoice bill receipt
stock share equity ticker invest investment portfolio finance financial
crypto cryptocurrency bitcoin ethereum blockchain token coin nft
currency forex exchange
loan mortgage credit
tax taxes irs
car vehicle automobile auto drive
trip travel journey vacation holiday itinerary tour tourism destination
hotel accommodation lodging stay hostel
flight plane airline airport
train rail railway
map route direction navigate navigation
near nearby around
address geocode location place coordinate
weather forecast temperature rain climate
news headline article current event
paper research academic scholar scholarly scientific study publication
book novel read literature
movie film cinema show series tv
song music track playlist melody audio
picture image photo photograph png jpg jpeg
video clip youtube
gift present
recipe cook meal dish ingredient food cuisine
restaurant dine dining eat
exercise workout fitness training gym
doctor medical health symptom disease medicine
diet nutrition calorie
law legal attorney lawyer court
job career vacancy employment hire hiring recruit
resume cv
house home property apartment rent real estate
learn course lesson tutorial tutor teach education class
quiz trivia test question
game play player
sport match team league
astrology horoscope zodiac tarot
joke humor funny meme
presentation ppt pptx powerpoint slide slideshow
document doc docx word
spreadsheet excel xlsx xls worksheet
markdown md
folder directory
file path
code script program programming
repository repo git
issue bug ticket defect
website site webpage web url link page
internet online web
user person people member
employee staff worker
customer client
company business firm corporation enterprise organization
chart graph plot diagram visualize
measure metric statistic
picture drawing sketch
domain whois dns
password credential login
`;

let kin: ReadonlyMap<string, readonly string[]> | undefined;

/** The words that are used for the same as this one. */
export function kindredOf(term: string): readonly string[] {
  kin ??= readKindred();
  return kin.get(term) ?? NONE;
}

const NONE: readonly string[] = [];

function readKindred(): ReadonlyMap<string, readonly string[]> {
  const read = new Map<string, Set<string>>();
  for (const line of KINDRED.trim().split('\n')) {
    const terms = new Set(termsOf(line));
    for (const term of terms) read.set(term, new Set([...(read.get(term) ?? []), ...terms]));
  }
  return new Map(Array.from(read, ([term, all]) => [term, [...all].filter((other) => other !== term)]));
}

/** What of a tool is looked into. */
export interface SearchedTool {
  readonly name: string;
  readonly description?: string;
  readonly parameters?: JsonSchema;
  /** The toolset or the server that it belongs to, where that says something. */
  readonly namespace?: string;
}

/** How much a word counts in one part of a tool, and how much less in a long one. */
interface Field {
  readonly weight: number;
  /** From 0, where the length does not matter, to 1. */
  readonly lengthWeight: number;
  /** The length of an ordinary one, in words. A constant, so that no tool counts otherwise because of another. */
  readonly ordinary: number;
}

const FIELDS = {
  name: { weight: 2.5, lengthWeight: 0.15, ordinary: 3 },
  namespace: { weight: 0.6, lengthWeight: 0.3, ordinary: 2 },
  description: { weight: 1, lengthWeight: 0.6, ordinary: 10 },
  parameters: { weight: 0.7, lengthWeight: 0.75, ordinary: 5 },
  parameterTexts: { weight: 0.5, lengthWeight: 0.75, ordinary: 20 },
  values: { weight: 0.8, lengthWeight: 0.75, ordinary: 4 },
} as const satisfies Readonly<Record<string, Field>>;

type FieldName = keyof typeof FIELDS;

/** Where a word stops to count for more however often it stands there. */
const SATURATION = 1.2;

/** The words of a tool, and how much each of them says of it: from 0 to 1. */
interface ToolTerms {
  readonly terms: readonly string[];
  readonly impacts: readonly number[];
}

/** What the words of a tool say of it. It depends on this tool alone. */
export function toolTerms(tool: SearchedTool): ToolTerms {
  const texts = textsOf(tool);
  const weights = new Map<string, number>();
  for (const field of FIELD_NAMES) addField(weights, texts[field], FIELDS[field]);
  const terms: string[] = [];
  const impacts: number[] = [];
  for (const [term, weight] of weights) {
    terms.push(term);
    impacts.push(weight / (SATURATION + weight));
  }
  return { terms, impacts };
}

const FIELD_NAMES = Object.keys(FIELDS) as readonly FieldName[];

function addField(weights: Map<string, number>, texts: readonly string[], field: Field): void {
  if (texts.length === 0) return;
  const terms: string[] = [];
  for (const text of texts) addTerms(text, terms);
  const { weight, lengthWeight, ordinary } = field;
  const worth = weight / (1 - lengthWeight + (lengthWeight * terms.length) / ordinary);
  for (const term of terms) weights.set(term, (weights.get(term) ?? 0) + worth);
}

type Texts = Readonly<Record<FieldName, string[]>>;

function textsOf({ name, description = '', parameters, namespace }: SearchedTool): Texts {
  const texts: Texts = {
    name: [name],
    namespace: namespace === undefined ? [] : [namespace],
    description: [description],
    parameters: [],
    parameterTexts: [],
    values: [],
  };
  if (parameters !== undefined) collect(parameters, texts, 0);
  return texts;
}

/** Schemas of foreign servers may be as deep, and have as many values, as they like. */
const MAX_DEPTH = 6;
const MAX_VALUES = 50;

function collect(schema: unknown, texts: Texts, depth: number): void {
  if (!isRecord(schema) || depth > MAX_DEPTH) return;
  const { properties, items, enum: values, $defs } = schema;
  for (const [key, property] of isRecord(properties) ? Object.entries(properties) : []) {
    texts.parameters.push(key);
    collectDescribed(property, texts, depth);
  }
  for (const definition of isRecord($defs) ? Object.values($defs) : [])
    collectDescribed(definition, texts, depth);
  for (const value of Array.isArray(values) ? values.slice(0, MAX_VALUES) : [])
    if (typeof value === 'string') texts.values.push(value);
  if (items !== undefined) collectDescribed(items, texts, depth);
  for (const key of ['anyOf', 'oneOf', 'allOf']) {
    const branches = schema[key];
    for (const branch of Array.isArray(branches) ? branches : []) collectDescribed(branch, texts, depth);
  }
}

function collectDescribed(schema: unknown, texts: Texts, depth: number): void {
  if (!isRecord(schema)) return;
  if (typeof schema.description === 'string') texts.parameterTexts.push(schema.description);
  collect(schema, texts, depth + 1);
}
