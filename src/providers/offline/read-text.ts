import { readWords } from './words.js';

type Kind = 'quoted' | 'date' | 'time' | 'expression' | 'number' | 'name' | 'phrase';

/** A value in a text. Dates are `2024-03-05`, times `15:30`; a phrase is words that are nothing else. */
export type Found = Readonly<{ kind: Kind; value: string | number; text: string; at: number; end: number }>;

const MONTHS = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ');
const NUMBERS = 'zero one two three four five six seven eight nine ten eleven twelve'.split(' ');
const MONTH = `(?<m>${MONTHS.join('|')})[a-z]*\\.?`;
const CAPITAL = "(?<![\\p{L}\\p{N}_'’.])\\p{Lu}(?:[\\p{L}\\p{N}&-]|['’](?!s\\b)|(?<=\\b\\p{Lu})\\.)*";
const REGION = `\\p{Lu}{2,3}(?![\\p{L}\\d])|${CAPITAL}(?![\\p{L}\\d]|, \\p{Lu}|,? and \\p{Lu})`;

// Tried in this order; what one pattern took, the later ones do not see, but for numbers in expressions.
const PATTERNS: readonly (readonly [Kind, RegExp])[] = [
  ['quoted', /(?<![\p{L}\p{N}])['"`“‘].+?['"`”’](?![\p{L}\p{N}])/gu],
  ['date', /\b(?<y>\d{4})[-./](?<m>\d{1,2})[-./](?<d>\d{1,2})\b/g],
  [
    'date',
    RegExp(`\\b${MONTH} (?:the )?(?<d>\\d{1,2})(?:st|nd|rd|th)?\\b(?:,? ?(?:of )?(?<y>\\d{4}))?`, 'gi'),
  ],
  ['date', RegExp(`\\b(?<d>\\d{1,2})(?:st|nd|rd|th)? (?:of )?${MONTH}(?:,? ?(?<y>\\d{4}))?\\b`, 'gi')],
  ['date', /\b(?:yesterday|today|tomorrow)\b/gi],
  ['time', /\b(?<h>\d{1,2})(?::(?<min>\d\d)|(?=\s*[ap]\.?m\b))(?:\s*(?<half>[ap])\.?m\b\.?)?/gi],
  ['expression', /[-(]*\d[\d.]*\)*(?:\s*[-+*/^%×÷]+\s*[-(]*\d[\d.]*\)*)+/g],
  ['number', /(?<![\p{L}\p{N}_.-]|[A-Za-z]-)-?\d+(?:,\d{3})*(?:\.\d+)?%?(?=\p{L}{0,3}(?![\p{L}\p{N}_]))/gu],
  ['number', RegExp(`\\b(?:${NUMBERS.join('|')})\\b`, 'gi')],
  ['name', /https?:\/\/\S+|[\w.+-]+@[\w-]+\.\w+|\/?\w[\w-]*[/_.][\w/.-]*\w/g],
  ['name', /(?<![\p{L}\p{N}])(?:\p{L}+[\d-]*\d[\p{L}\d-]*|\d+\p{L}[\p{L}\d-]*|\p{Ll}+\p{Lu}\w*)/gu],
  ['name', RegExp(`${CAPITAL}(?: (?:(?:of|the|de|del) )?${CAPITAL})*(?:, (?:${REGION}))?`, 'gu')],
  ['phrase', /[\p{L}\p{N}]+(?:[ -][\p{L}\p{N}]+)*/gu],
];

/** The values in a text, as they stand; a year that is not said is that of `today`; `own` makes no phrase. */
export function readValues(text: string, own: ReadonlySet<string>, today: Date): Found[] {
  let unread = text;
  const found: Found[] = [];
  const take = (at: number, end: number) =>
    (unread = unread.slice(0, at) + ' '.repeat(end - at) + unread.slice(end));
  for (const [kind, pattern] of PATTERNS) {
    const dull = readWords(unread).filter(
      ({ stem, common }) => kind === 'phrase' && (common || own.has(stem)),
    );
    for (const { at, end } of dull) take(at, end);
    for (const { 0: whole, index, groups = {} } of unread.matchAll(pattern)) {
      const end = index + whole.length;
      const at = kind === 'name' ? skipOpening(text, index, end) : index;
      const said = text.slice(at, end);
      if (said !== '') found.push({ kind, value: toValue(kind, said, groups, today), text: said, at, end });
      if (kind !== 'expression') take(at, end);
    }
  }
  return found.sort((a, b) => a.at - b.at);
}

function toValue(kind: Kind, text: string, groups: Record<string, string>, today: Date): string | number {
  const word = text.toLowerCase();
  const { y = today.getFullYear(), m = today.getMonth() + 1, d, h, min = '00', half } = groups;
  if (kind === 'quoted') return text.slice(1, -1);
  if (kind === 'number')
    return NUMBERS.includes(word) ? NUMBERS.indexOf(word) : Number(word.replace(/[,%]/g, ''));
  const hour = half ? (Number(h) % 12) + (/p/i.test(half) ? 12 : 0) : h;
  if (kind === 'time') return `${String(hour).padStart(2, '0')}:${min}`;
  if (kind !== 'date') return text;
  const month = Number(m) || MONTHS.indexOf(String(m).toLowerCase()) + 1;
  const day = Number(d ?? today.getDate() + ['yesterday', 'today', 'tomorrow'].indexOf(word) - 1);
  return new Date(Date.UTC(Number(y), month - 1, day)).toISOString().slice(0, 10);
}

// The capital that opens a sentence makes no name: `Find Yamaha` is `Yamaha`, `Translate` is nothing.
function skipOpening(text: string, at: number, end: number): number {
  const opens =
    /^\p{Lu}\p{Ll}+$/u.test(text.slice(at, end)) && /(?:^|[.?!:;]\s+|\n)["']?$/.test(text.slice(0, at));
  const first = readWords(text.slice(at, end)).find((word) => !word.common);
  return opens || !first ? end : at + first.at;
}
