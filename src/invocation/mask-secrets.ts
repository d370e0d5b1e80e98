/** Stands where a secret was. */
export const HIDDEN = '[redacted]';

/**
 * A text without the secrets in it, in one pass: what looks like one by itself, and the values of secret keys
 * in addresses, in JSON (also in JSON within JSON) and in what programs print.
 */
export function maskSecrets(text: string, isSecret: (key: string) => boolean): string {
  const shaped = text.replace(SHAPES, (_secret, scheme?: string, address?: string) =>
    scheme === undefined ? `${address ?? ''}${HIDDEN}` : `${scheme} ${HIDDEN}`,
  );
  return maskValues(shaped, isSecret);
}

/** What `Authorization` carries, signed tokens, keys of well-known services, private keys, passwords in addresses. */
const SHAPES = new RegExp(
  [
    String.raw`(?<![\w-])(Bearer|Basic)[ \t]+[\w.~+/=-]{4,}`,
    String.raw`(?<![\w-])eyJ[\w-]{6,}\.[\w-]{4,}(?:\.[\w-]*)?`,
    String.raw`(?<![\w-])(?:[spr]k[-_]|gh[pousr]_|github_pat_|xox[abeprs]-|AKIA|AIza)[\w-]{16,}`,
    String.raw`-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[\s\S]*?(?:-----END|$)`,
    String.raw`(:\/\/[^\s/:@]{0,64}:)[^\s/@]+(?=@)`,
  ].join('|'),
  'gi',
);

const KEY_PART = String.raw`[\p{L}\p{N}_.$[\]-]`;
/** A key, what closes its quotes, what separates it from its value, and what opens that. */
const PAIR = new RegExp(
  String.raw`(?<!${KEY_PART})((?:${KEY_PART}|%5[BD]){1,64})(\\*["'])?\s{0,9}(=(?![=>])|%3D|:)\s{0,9}(\\*["']|[[{])?`,
  'giu',
);
const BARE = /[^\s&"'<>;\\]*/y;
const BARE_IN_JSON = /[^\s&"'<>;\\,}\]]*/y;
/** Words behind a colon are mostly prose (`token: expired`), and `token.ts:12` is a place; `pin: 4711` is a value. */
const LIKE_A_VALUE = /(?<=\s)[^\s\p{N}]{0,64}\p{N}/uy;

function maskValues(text: string, isSecret: (key: string) => boolean): string {
  let masked = '';
  let copied = 0;
  for (let pair = PAIR.exec(text); pair !== null; pair = PAIR.exec(text)) {
    const [, key = '', quote, separator = '', open = ''] = pair;
    if (!isSecret(key)) continue;
    const from = PAIR.lastIndex;
    if (open === '' && separator === ':' && quote === undefined && !matchesAt(LIKE_A_VALUE, text, from))
      continue;
    const end = endOfValue(text, { from, open, isBareInJson: separator === ':' });
    if (end === from && open === '') continue;
    const isBracket = open === '[' || open === '{';
    masked += `${text.slice(copied, isBracket ? from - 1 : from)}${HIDDEN}`;
    copied = end;
    PAIR.lastIndex = end;
  }
  return masked + text.slice(copied);
}

interface ValueStart {
  readonly from: number;
  readonly open: string;
  readonly isBareInJson: boolean;
}

/** Where a value ends; one that was cut ends with its text. */
function endOfValue(text: string, { from, open, isBareInJson }: ValueStart): number {
  if (open === '[' || open === '{') return endOfBrackets(text, from);
  if (open !== '') return endOfQuotes(text, from, open);
  const bare = isBareInJson ? BARE_IN_JSON : BARE;
  bare.lastIndex = from;
  bare.exec(text);
  return Math.max(from, bare.lastIndex);
}

/** In JSON within JSON, what closes has as many backslashes before it as what opens. */
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

function matchesAt(pattern: RegExp, text: string, from: number): boolean {
  pattern.lastIndex = from;
  return pattern.test(text);
}
