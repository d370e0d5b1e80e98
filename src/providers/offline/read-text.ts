import { readWords } from './words.js';

/** A value in a text; the date kind is `2024-03-05`, the time kind `15:30`, a phrase any words that are left. */
export type Found = Readonly<{ kind: string; value: string | number; at: number; end: number }>;

const MONTHS = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ');
const NUMBERS = 'zero one two three four five six seven eight nine ten eleven twelve'.split(' ');
const MONTH = `(?<m>${MONTHS.join('|')})[a-z]*\\.?`;
const DAY = '(?<d>\\d{1,2})(?:st|nd|rd|th)?';
const CAPITAL = "(?<![\\p{L}\\p{N}_'’.])\\p{Lu}(?:[\\p{L}\\p{N}&-]|['’](?!s\\b)|(?<=\\b\\p{Lu})\\.)*";
const REGION = `\\p{Lu}{2,3}(?![\\p{L}\\d])|${CAPITAL}(?![\\p{L}\\d]|, \\p{Lu}|,? and \\p{Lu})`;

// Tried in this order; what one pattern took, the later ones do not see, but for numbers in expressions.
const PATTERNS: readonly (readonly [kind: string, pattern: RegExp])[] = [
  ['quoted', /(?<![\p{L}\p{N}])['"`“‘].+?['"`”’](?![\p{L}\p{N}])/gu],
  ['date', /\b(?<y>\d{4})[-./](?<m>\d{1,2})[-./](?<d>\d{1,2})\b/g],
  ['date', RegExp(`\\b${MONTH} (?:the )?${DAY}\\b(?:,? ?(?:of )?(?<y>\\d{4}))?`, 'gi')],
  ['date', RegExp(`\\b${DAY} (?:of )?${MONTH}(?:,? ?(?<y>\\d{4}))?\\b`, 'gi')],
  ['time', /\b(?<h>\d{1,2})(?::(?<min>\d\d)|(?=\s*[ap]\.?m\b))(?:\s*(?<half>[ap])\.?m\b\.?)?/gi],
  ['expression', /[-(]*\d[\d.]*\)*(?:\s*[-+*/^%×÷]+\s*[-(]*\d[\d.]*\)*)+/g],
  ['percent', /(?<![\w.-])-?\d+(?:\.\d+)?%/g],
  ['number', /(?<![\p{L}\p{N}_.-]|[A-Za-z]-)-?\d+(?:,\d{3})*(?:\.\d+)?(?=\p{L}{0,3}(?![\p{L}\p{N}_]))/gu],
  ['number', RegExp(`\\b(?:${NUMBERS.join('|')})\\b`, 'gi')],
  ['name', /https?:\/\/\S+|[\w.+-]+@[\w-]+\.\w+|\/?\w[\w-]*[/_.][\w/.-]*\w/g],
  ['name', /(?<![\p{L}\p{N}])(?:\p{L}+[\d-]*\d[\p{L}\d-]*|\d+\p{L}[\p{L}\d-]*|\p{Ll}+\p{Lu}\w*)/gu],
  ['name', RegExp(`${CAPITAL}(?: (?:(?:of|the|de|del) )?${CAPITAL})*(?:, (?:${REGION}))?`, 'gu')],
  ['phrase', /[\p{L}\p{N}]+(?:[ -][\p{L}\p{N}]+)*/gu],
];

/** The values in a text, as they stand; a year that is not said is `year`; the stems `own` make no phrase. */
export function readValues(text: string, own: ReadonlySet<string>, year: number): Found[] {
  let unread = text;
  const found: Found[] = [];
  const skip = ({ at, end }: { readonly at: number; readonly end: number }) => {
    unread = unread.slice(0, at) + ' '.repeat(end - at) + unread.slice(end);
  };
  for (const [kind, pattern] of PATTERNS) {
    const dull = kind === 'phrase' ? readWords(unread) : [];
    for (const word of dull) if (word.common || own.has(word.stem)) skip(word);
    for (const { 0: whole, index, groups = {} } of unread.matchAll(pattern)) {
      const end = index + whole.length;
      // The capital that opens a sentence makes no name: `Find Yamaha` is `Yamaha`, `Translate` is nothing.
      const opens = /(?:^|[.?!:;]\s+|\n)["']?$/.test(text.slice(0, index));
      const mute = (stem: string) => opens && (own.has(stem) || /^\p{Lu}\p{Ll}+$/u.test(whole));
      const first = readWords(whole).find(({ stem, common }) => !common && !mute(stem))?.at ?? whole.length;
      const at = kind === 'name' ? index + first : index;
      const value = toValue(kind, text.slice(at, end), { year: `${year}`, ...groups });
      if (at < end) found.push({ kind, value, at, end });
      if (kind !== 'expression') skip({ at, end });
    }
  }
  return found.sort((a, b) => a.at - b.at);
}

function toValue(kind: string, text: string, groups: Record<string, string>): string | number {
  const { year, y = year, m = '', d = '', h, min = '00', half } = groups;
  const word = NUMBERS.indexOf(text.toLowerCase());
  const two = (part: unknown) => `${part}`.padStart(2, '0');
  if (kind === 'quoted') return text.slice(1, -1);
  if (kind === 'number' && word >= 0) return word;
  if (kind === 'number' || kind === 'percent') return Number(text.replace(/[,%]/g, ''));
  if (kind === 'time') return `${two(half ? (Number(h) % 12) + (/p/i.test(half) ? 12 : 0) : h)}:${min}`;
  return kind === 'date' ? `${y}-${two(Number(m) || MONTHS.indexOf(m.toLowerCase()) + 1)}-${two(d)}` : text;
}
