import { visibleText } from '../kernel/visible-text.js';
import { HIDDEN, maskSecrets } from './mask-secrets.js';

/** What keeps secrets out of the log. */
export interface Redaction {
  /** A copy of a value: secrets hidden, long texts cut, deep objects flattened. */
  copy(value: unknown): unknown;
  /** A text of any length, without the secrets in it. */
  mask(text: string): string;
}

/** Hidden wherever they stand in a key, whatever is written around them. */
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
/** Too short for that: hidden where they are a word of a key (`pin_code`, and not `shipping`). */
const SECRET_WORDS = [
  ...['auth', 'bearer', 'jwt', 'otp', 'pin', 'pwd', 'passcode'],
  ...['card', 'cvv', 'cvc', 'iban', 'ssn'],
];
/** From this length on, a name that is to be hidden counts as a part. */
const MIN_PART = 6;

const MAX_TEXT = 200;
const MAX_ITEMS = 20;
const MAX_DEPTH = 5;
/** Characters and values of one entry. */
const MAX_SIZE = 4000;

/** Hides `names` as well as what is known to be secret; `customerNo` stands for `customer_no` and `oldCustomerNo` too. */
export function createRedaction(names: readonly string[] = []): Redaction {
  const own = names.map(joined).filter((name) => name !== '');
  const parts = [...SECRET_PARTS, ...own.filter((name) => name.length >= MIN_PART)];
  const words = new Set([...SECRET_WORDS, ...own]);
  const isSecret = (key: string): boolean => {
    const spelt = wordsOf(key);
    const whole = spelt.join('');
    return (
      words.has(whole) ||
      spelt.some((word) => hasWord(words, word)) ||
      parts.some((part) => whole.includes(part))
    );
  };
  return {
    copy: (value) => new RedactedCopy(isSecret).of(value, 0),
    mask: (text) => maskSecrets(text, isSecret),
  };
}

/** Hides what is known to be secret. */
export const KNOWN_SECRETS: Redaction = createRedaction();

class RedactedCopy {
  readonly #isSecret: (key: string) => boolean;
  #left = MAX_SIZE;

  constructor(isSecret: (key: string) => boolean) {
    this.#isSecret = isSecret;
  }

  of(value: unknown, depth: number): unknown {
    this.#left -= 1;
    if (typeof value === 'string') return this.#text(value);
    if (typeof value === 'bigint') return this.#text(value.toString());
    if (typeof value !== 'object' || value === null || value instanceof Date) return value;
    if (value instanceof Error) return this.#text(`${value.name}: ${value.message}`);
    if (depth >= MAX_DEPTH || this.#left <= 0) return '…';
    if (Array.isArray(value)) return this.#some(value, (item) => this.of(item, depth + 1));
    return this.#object(value, depth);
  }

  #text(text: string): string {
    const shown = text.slice(0, Math.max(0, Math.min(MAX_TEXT, this.#left)));
    this.#left -= shown.length;
    // Looked for in somewhat more than is shown, so that no half of a secret stays.
    const masked = maskSecrets(text.slice(0, 2 * MAX_TEXT), this.#isSecret);
    const missing = text.length - shown.length;
    if (missing === 0) return visibleText(masked);
    return `${visibleText(masked.slice(0, shown.length))}… (${missing} more characters)`;
  }

  #object(value: object, depth: number): unknown {
    const keys = Object.keys(value);
    const entries = keys.slice(0, MAX_ITEMS).map((key) => {
      const shown = this.#text(key);
      const field: unknown = (value as Readonly<Record<string, unknown>>)[key];
      return [shown, this.#isSecret(key) ? HIDDEN : this.of(field, depth + 1)] as const;
    });
    const missing = keys.length - entries.length;
    return Object.fromEntries(missing === 0 ? entries : [...entries, ['…', `${missing} more`]]);
  }

  #some(values: readonly unknown[], show: (value: unknown) => unknown): readonly unknown[] {
    const shown = values.slice(0, MAX_ITEMS).map(show);
    const missing = values.length - shown.length;
    return missing === 0 ? shown : [...shown, `… ${missing} more`];
  }
}

function hasWord(words: ReadonlySet<string>, word: string): boolean {
  return words.has(word) || (word.endsWith('s') && words.has(word.slice(0, -1)));
}

function joined(key: string): string {
  return wordsOf(key).join('');
}

/** `customerNo`, `customer_no` and `CUSTOMER-NO` have the same words. */
function wordsOf(key: string): readonly string[] {
  const words = key.slice(0, MAX_TEXT).match(/\p{Lu}+(?!\p{Ll})|\p{Lu}?[\p{Ll}\p{Lo}]+|\p{N}+/gu) ?? [];
  return words.map((word) => word.toLowerCase());
}
