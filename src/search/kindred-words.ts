import { termsOf } from './terms.js';

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
