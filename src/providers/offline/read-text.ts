/** A value in a text; a date is like `2024-03-05`, a time like `15:30`, a phrase any words that are left. */
export type Found = Readonly<{ kind: string; value: string | number; at: number; end: number }>;

/** A text with its words and values in their order. */
export type Reading = ReturnType<typeof readText>;

const MONTHS = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ');
const MONTH = `(?<m>${MONTHS.join('|')})(?:r?uary|ch|il|e|y|ust|t|t?ember|ober)?\\.?`;
const DAY = '(?<d>\\d{1,2})(?:st|nd|rd|th)?';
const CAPITAL = "(?<![\\p{L}\\p{N}_'’.])\\p{Lu}(?:[\\p{L}\\p{N}&-]|['’](?!s\\b)|(?<=\\b\\p{Lu})\\.)*";

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

/** Reads a text; a year that is not said is `year`; the stems `own` make no phrase. */
export function readText(text: string, own: ReadonlySet<string>, year: number) {
  const found: Found[] = [];
  const unread = text.split('');
  for (const [kind, pattern] of PATTERNS) {
    for (const { stem, common, at, end } of kind === 'phrase' ? readWords(unread.join('')) : [])
      if (common || own.has(stem)) unread.fill(' ', at, end);
    for (const { 0: whole, index, groups } of unread.join('').matchAll(pattern)) {
      const end = index + whole.length;
      // The capital that opens a sentence makes no name: `Find Yamaha` is `Yamaha`, `Translate` is nothing.
      const opens = /(?:^|[.?!:;]\s+|\n)["']?$/.test(text.slice(Math.max(0, index - 4), index));
      const mute = (stem: string) => opens && (own.has(stem) || /^\p{Lu}\p{Ll}+$/u.test(whole));
      const first = readWords(whole).find(({ stem, common }) => !common && !mute(stem))?.at ?? whole.length;
      // Paths, addresses and the like begin with whatever they begin with: `a.txt`.
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

/** The words of a sentence or an identifier, in order, with crude stems; `common` ones carry no topic. */
export function readWords(text: string) {
  return [...text.matchAll(/\p{Lu}?\p{Ll}+|\p{Lu}+(?!\p{Ll})|\p{L}+|\p{N}+/gu)].map((match) => {
    const [at, word] = [match.index, match[0].toLowerCase()];
    const stem = word.replace(/([^aeiou])(?:ies|y)$/, '$1i').replace(ENDING, '$1');
    return { stem, common: COMMON.has(word), at, end: at + match[0].length };
  });
}

/** The distinct stems of a text that carry its topic. */
export function topicOf(text: string): Set<string> {
  return new Set(readWords(text).flatMap((word) => (word.common ? [] : [word.stem])));
}
