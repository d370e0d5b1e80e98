/** Words that nearly every request has and that contain nothing about what is to be done. */
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

/** Words that requests have for no reason of their own: the meaning is in the words around them. */
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

/** Words that people and tools use for the same thing. */
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
 * The words of a text as the index stores them: `getHTTPStatus` and `get_http_status` are `http` and `status`, in the
 * same stems as “statuses”. Texts without spaces give their pairs of characters.
 */
export function termsOf(text: string): string[] {
  const plain = text
    .normalize('NFKD')
    .replace(/\p{Mn}/gu, '')
    .normalize('NFC');
  const terms: string[] = [];
  for (const word of plain.match(WORD) ?? []) {
    if (UNSPACED.test(word)) terms.push(...pairsOf(word));
    else {
      const term = termOf(word);
      if (term !== '') terms.push(term);
    }
  }
  return terms;
}

function pairsOf(word: string): readonly string[] {
  const letters = Array.from(word);
  if (letters.length === 1) return letters;
  return letters.slice(1).map((letter, index) => `${letters[index]}${letter}`);
}

const known = new Map<string, string>();
const MAX_KNOWN = 50_000;

/** The stem of a word; empty for a stop word. Words come again and again, and are looked up. */
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

let weak: ReadonlySet<string> | undefined;

/** Whether a word means little in a request. */
export function isWeak(term: string): boolean {
  weak ??= new Set(termsOf(WEAK_WORDS));
  return weak.has(term);
}

let synonyms: Map<string, Set<string>> | undefined;

/** The words that are used for the same as this one. */
export function synonymsOf(term: string): ReadonlySet<string> | undefined {
  if (synonyms === undefined) {
    synonyms = new Map();
    for (const group of SYNONYMS.split(';')) {
      const terms = new Set(termsOf(group));
      for (const each of terms) synonyms.set(each, new Set([...(synonyms.get(each) ?? []), ...terms]));
    }
  }
  return synonyms.get(term);
}
