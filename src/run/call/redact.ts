import { isObject } from '../../core/kernel/json.js';
import { visibleText } from '../../core/kernel/visible-text.js';

/** Keeps secrets out of the log. */
export interface Redaction {
  /** A copy of a value: secrets hidden, long texts cut, deep objects flattened. */
  copy(value: unknown): unknown;
  /** A text, or its first `most` characters, without secrets. */
  mask(text: string, most?: number): string;
  /** Whether the value of a key is a secret. */
  hides(key: string): boolean;
}

/** Hidden in any part of a key. */
const SECRET_PARTS = [
  'password',
  'passphrase',
  'passwd',
  'secret',
  'token',
  'apikey',
  'accesskey',
  'privatekey',
  'authorization',
  'cookie',
  'credential',
  'cardnumber',
  'creditcard',
  'sessionid',
];
/** Too short for that: hidden only as a word of a key (`pin_code`, but not `shipping`). */
const SECRET_WORDS = [
  ...['auth', 'bearer', 'jwt', 'otp', 'pin', 'pwd', 'passcode'],
  ...['card', 'cvv', 'cvc', 'iban', 'ssn'],
];
/** Hidden names of at least this length also match as parts of a key. */
const MIN_PART = 6;

const MAX_TEXT = 200;
const MAX_ITEMS = 20;
const MAX_DEPTH = 5;
/** The most characters and values of an entry. */
const MAX_SIZE = 4000;
/** The most cached keys: the fields of arguments repeat. */
const MOST_KNOWN_KEYS = 1000;

/** Hides `names` in addition to known secrets; `customerNo` also matches `customer_no` and `oldCustomerNo`. */
export function createRedaction(names: readonly string[] = []): Redaction {
  const own = names.map((name) => wordsOf(name).join('')).filter((name) => name !== '');
  const parts = [...SECRET_PARTS, ...own.filter((name) => name.length >= MIN_PART)];
  const words = new Set([...SECRET_WORDS, ...own]);
  const test = (key: string): boolean => {
    const spelt = wordsOf(key);
    const whole = spelt.join('');
    return (
      words.has(whole) ||
      spelt.some((word) => words.has(word) || words.has(word.replace(/s$/, ''))) ||
      parts.some((part) => whole.includes(part))
    );
  };
  const known = new Map<string, boolean>();
  const isSecret = (key: string): boolean => {
    const before = known.get(key);
    if (before !== undefined) return before;
    const answer = test(key);
    if (key.length <= MAX_TEXT && known.size < MOST_KNOWN_KEYS) known.set(key, answer);
    return answer;
  };
  return {
    copy: (value) => new RedactedCopy(isSecret).of(value, 0),
    mask: (text, most) => maskSecrets(text, isSecret, most),
    hides: isSecret,
  };
}

/** Hides known secrets. */
export const KNOWN_SECRETS: Redaction = createRedaction();

/** The first items of a list, as they are shown, and how many are missing. */
export function firstItems(list: readonly unknown[], show: (item: unknown) => unknown): readonly unknown[] {
  const shown = list.slice(0, MAX_ITEMS).map(show);
  return list.length > MAX_ITEMS ? [...shown, `… ${list.length - MAX_ITEMS} more`] : shown;
}

class RedactedCopy {
  #left = MAX_SIZE;

  constructor(private readonly isSecret: (key: string) => boolean) {}

  of(value: unknown, depth: number): unknown {
    this.#left -= 1;
    if (typeof value === 'string') return this.#text(value);
    if (typeof value === 'bigint') return this.#text(value.toString());
    if (!isObject(value) || value instanceof Date) return value;
    if (value instanceof Error) return this.#text(`${value.name}: ${value.message}`);
    if (depth >= MAX_DEPTH || this.#left <= 0) return '…';
    return Array.isArray(value)
      ? firstItems(value, (item) => this.of(item, depth + 1))
      : this.#object(value, depth);
  }

  #text(text: string): string {
    const shown = Math.min(text.length, MAX_TEXT, Math.max(0, this.#left));
    this.#left -= shown;
    const masked = visibleText(maskSecrets(text, this.isSecret, shown));
    return shown === text.length ? masked : `${masked}… (${text.length - shown} more characters)`;
  }

  #object(value: object, depth: number): unknown {
    const keys = Object.keys(value);
    const entries = keys.slice(0, MAX_ITEMS).map((key) => {
      const shown = this.#text(key);
      const field: unknown = (value as Readonly<Record<string, unknown>>)[key];
      return [shown, this.isSecret(key) ? HIDDEN : this.of(field, depth + 1)] as const;
    });
    const missing = keys.length - entries.length;
    return Object.fromEntries(missing === 0 ? entries : [...entries, ['…', `${missing} more`]]);
  }
}

/** `customerNo`, `customer_no` and `CUSTOMER-NO` have the same words. */
function wordsOf(key: string): readonly string[] {
  const words = key.slice(0, MAX_TEXT).match(/\p{Lu}+(?!\p{Ll})|\p{Lu}?[\p{Ll}\p{Lo}]+|\p{N}+/gu) ?? [];
  return words.map((word) => word.toLowerCase());
}

/** Replaces a secret. */
const HIDDEN = '[redacted]';

/**
 * Removes secrets from a text in one pass: texts in the form of secrets, and the values of secret keys in URLs, in
 * JSON (also nested JSON text) and in program output.
 */
function maskSecrets(text: string, isSecret: (key: string) => boolean, most = text.length): string {
  // Searches a longer part than is shown, so that no half of a secret remains.
  const looked = text.slice(0, most + Math.max(most, MAX_TEXT));
  if (!MARKS.test(looked)) return looked.slice(0, most);
  const shaped = looked.replace(SHAPES, (_secret, scheme?: string, address?: string) =>
    scheme === undefined ? `${address ?? ''}${HIDDEN}` : `${scheme} ${HIDDEN}`,
  );
  const masked = maskValues(shaped, isSecret).replace(HEADERS, `$1${HIDDEN}`);
  if (text.length <= most) return masked;
  // Hiding moves later text forward, so the end may contain half a secret.
  const behind = looked.length - most;
  return masked.slice(0, Math.max(0, Math.min(most, masked.length - behind)));
}

/** Matches every text in which a pattern below can match; most texts contain no match. */
const MARKS = /[=:]|%3D|bearer|basic|eyj|[spr]k[-_]|gh[pousr]_|github_pat_|xox|akia|aiza|-----begin/i;

/** Headers that are secret to the end of their line, or of the quotes around them. */
const HEADERS =
  /(?<![\p{L}\p{N}_])((?:authorization|cookie)[ \t]{0,9}:[ \t]{0,9}(?:(?:Bearer|Basic)[ \t]{1,9})?)[^\s"'\\][^\r\n"'\\]*/giu;

/** Values of `Authorization`, signed tokens, keys of well-known services, private keys, passwords in URLs. */
const SHAPES = new RegExp(
  [
    String.raw`(?<![\w-])(Bearer|Basic)(?:[ \t+]|%20){1,9}[^\s"'<>\\,;&]{4,}`,
    String.raw`(?<![\w-])eyJ[\w-]{6,}\.[\w-]{4,}(?:\.[\w-]*)?`,
    String.raw`(?<![\w-])(?:[spr]k[-_]|gh[pousr]_|github_pat_|xox[abeprs]-|AKIA|AIza)[\w-]{16,}`,
    String.raw`-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[\s\S]*?(?:-----END|$)`,
    String.raw`(:\/\/[^\s/:@]{0,64}:)[^\s/@]+(?=@)`,
  ].join('|'),
  'gi',
);

const KEY_PART = String.raw`[\p{L}\p{N}_.$[\]-]`;
/** A key, its closing quote, the separator, and the opening quote of the value. */
const PAIR = new RegExp(
  String.raw`(?<!${KEY_PART})((?:${KEY_PART}|%5[BD]){1,64})(\\*["'])?\s{0,9}(=(?![=>])|%3D|:)\s{0,9}(\\*["']|[[{])?`,
  'giu',
);
const BARE = /[^\s&"'<>;\\]*/y;
const BARE_IN_JSON = /[^\s&"'<>;\\,}\]]*/y;
/**
 * Words after a colon are usually prose (`token: expired`), and `token.ts:12` is a location; `pin: 4711` is a value.
 */
const LIKE_A_VALUE = /(?<=\s)[^\s\p{N}]{0,64}\p{N}/uy;

function maskValues(text: string, isSecret: (key: string) => boolean): string {
  let masked = '';
  let copied = 0;
  for (let pair = PAIR.exec(text); pair !== null; pair = PAIR.exec(text)) {
    const [, key = '', quote, separator = '', open = ''] = pair;
    if (!isSecret(key)) continue;
    const from = PAIR.lastIndex;
    LIKE_A_VALUE.lastIndex = from;
    if (open === '' && separator === ':' && quote === undefined && !LIKE_A_VALUE.test(text)) continue;
    const end = endOfValue(text, { from, open, isBareInJson: separator === ':' });
    if (end === from && open === '') continue;
    const isBracket = open === '[' || open === '{';
    masked += `${text.slice(copied, isBracket ? from - 1 : from)}${HIDDEN}`;
    copied = end;
    PAIR.lastIndex = end;
  }
  return masked + text.slice(copied);
}

/** The end of a value; a value that was cut ends with its text. */
function endOfValue(
  text: string,
  { from, open, isBareInJson }: { from: number; open: string; isBareInJson: boolean },
): number {
  if (open === '[' || open === '{') return endOfBrackets(text, from);
  if (open !== '') return endOfQuotes(text, from, open);
  const bare = isBareInJson ? BARE_IN_JSON : BARE;
  bare.lastIndex = from;
  bare.exec(text);
  return Math.max(from, bare.lastIndex);
}

/** In nested JSON text, the closing quote has as many backslashes as the opening one. */
function endOfQuotes(text: string, from: number, open: string): number {
  const quote = open.slice(-1);
  const escapes = open.length - 1;
  for (let at = text.indexOf(quote, from); at !== -1; at = text.indexOf(quote, at + 1)) {
    let start = at;
    while (start > from && text[start - 1] === '\\') start -= 1;
    if (at - start <= escapes) return at - Math.min(at - start, escapes);
  }
  return text.length;
}

const QUOTE_OR_BRACKET = /\\*["']|[[\]{}]/g;

function endOfBrackets(text: string, from: number): number {
  let depth = 1;
  QUOTE_OR_BRACKET.lastIndex = from;
  for (let mark = QUOTE_OR_BRACKET.exec(text); mark !== null; mark = QUOTE_OR_BRACKET.exec(text)) {
    const [found] = mark;
    if (found === '[' || found === '{') depth += 1;
    else if (found === ']' || found === '}') depth -= 1;
    else QUOTE_OR_BRACKET.lastIndex = endOfQuotes(text, QUOTE_OR_BRACKET.lastIndex, found) + found.length;
    if (depth === 0) return mark.index + 1;
  }
  return text.length;
}
