import { readWords } from './words.js';

/** A value in a text. Dates are `2024-03-05`, times `15:30`; a phrase is words that are nothing else. */
export interface Found {
  readonly kind: 'quoted' | 'date' | 'time' | 'expression' | 'number' | 'name' | 'phrase';
  readonly value: string | number;
  readonly text: string;
  readonly at: number;
  readonly end: number;
}

const MONTHS = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ');
const NUMBERS = 'zero one two three four five six seven eight nine ten eleven twelve'.split(' ');
const MONTH = `(?<m>${MONTHS.join('|')})[a-z]*\\.?`;
const CAPITAL = "(?<![\\p{L}\\p{N}_'’.])\\p{Lu}(?:[\\p{L}\\p{N}&-]|['’](?!s\\b)|(?<=\\b\\p{Lu})\\.)*";
const REGION = `\\p{Lu}{2,3}(?![\\p{L}\\d])|${CAPITAL}(?![\\p{L}\\d]|, \\p{Lu}|,? and \\p{Lu})`;
const IDENTIFIER =
  /https?:\/\/\S+|[\w.+-]+@[\w-]+\.\w+|\/?\w[\w-]*[/_.][\w/.-]*\w|(?<![\p{L}\p{N}])(?:\p{L}+[\d-]*\d[\p{L}\d-]*|\d+\p{L}[\p{L}\d-]*|\p{Ll}+\p{Lu}\w*)/gu;

// Tried in this order; what one pattern took, the later ones do not see, but for numbers in expressions.
const PATTERNS: readonly (readonly [Found['kind'], RegExp])[] = [
  ['quoted', /(?<![\p{L}\p{N}])(?<open>['"`“‘])(.+?)['"`”’](?![\p{L}\p{N}])/gu],
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
  ['name', IDENTIFIER],
  ['name', RegExp(`${CAPITAL}(?: (?:(?:of|the|de|del) )?${CAPITAL})*(?:, (?:${REGION}))?`, 'gu')],
];

/** The values in a text, in the order in which they stand; `today` tells what a date without a year means. */
export function readValues(text: string, today: Date): Found[] {
  let unread = text;
  const found: Found[] = [];
  for (const [kind, pattern] of PATTERNS) {
    for (const { 0: whole, index, groups = {} } of unread.matchAll(pattern)) {
      const [at, end] = kind === 'name' ? trimName(text, index, whole) : [index, index + whole.length];
      const value = toValue(kind, text.slice(at, end), groups, today);
      if (value !== '') found.push({ kind, value, text: text.slice(at, end), at, end });
      if (kind !== 'expression') unread = unread.replace(whole, ' '.repeat(whole.length));
    }
  }
  return found.sort((a, b) => a.at - b.at);
}

function toValue(
  kind: Found['kind'],
  text: string,
  groups: Record<string, string | undefined>,
  today: Date,
): string | number {
  const word = text.toLowerCase();
  if (kind === 'quoted') return text.slice(1, -1);
  if (kind === 'number')
    return NUMBERS.includes(word) ? NUMBERS.indexOf(word) : Number.parseFloat(text.replaceAll(',', ''));
  if (kind === 'time') {
    const { h, min = '00', half } = groups;
    const hour = half ? (Number(h) % 12) + (half.toLowerCase() === 'p' ? 12 : 0) : Number(h);
    return `${String(hour).padStart(2, '0')}:${min}`;
  }
  if (kind !== 'date') return text;
  const { y = today.getFullYear(), m = today.getMonth() + 1, d } = groups;
  const month = Number(m) || MONTHS.indexOf(String(m).toLowerCase()) + 1;
  const day = d ?? today.getDate() + ['yesterday', 'today', 'tomorrow'].indexOf(word) - 1;
  return new Date(Date.UTC(Number(y), month - 1, Number(day))).toISOString().slice(0, 10);
}

// The capital that opens a sentence makes no name: `Find Yamaha` is `Yamaha`, `Translate` is nothing.
function trimName(text: string, at: number, name: string): [at: number, end: number] {
  const first = readWords(name).find((word) => !word.common);
  const opens = /^\p{Lu}\p{Ll}+$/u.test(name) && /(?:^|[.?!:;]\s+|\n)["']?$/.test(text.slice(0, at));
  return opens || !first ? [at, at] : [at + first.at, at + name.replace(/ (?:I|Can|And|Please)$/, '').length];
}
