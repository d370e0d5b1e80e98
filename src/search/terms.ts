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
export function addTerms(text: string, terms: string[]): void {
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

/** What stands in a query as the name of a tool would, in small letters: all of it, or a word that is written as one. */
export function namesIn(query: string): readonly string[] {
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
export function requestTerms(request: string): string[] {
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
export function isWeak(term: string): boolean {
  weak ??= new Set(termsOf(WEAK));
  return weak.has(term);
}
