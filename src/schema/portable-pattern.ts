/** A pattern as JSON Schema takes it: without flags, read as Unicode (2020-12, 6.3.3 and core 6.4). */
interface PortablePattern {
  readonly source: string;
  /** It means the same for every text, also where characters take two code units. */
  readonly exact: boolean;
}

/** Between slashes these may follow a backslash under the `u` flag; other punctuation may not. */
const SYNTAX = '^$\\.*+?()[]{}|/';

/** What means something else without the `u` flag: halves of characters; `u{…}` and `p{…}` as plain letters. */
const READS_DIFFERENTLY = /[\uD800-\uDFFF]|\\u[dD][89a-fA-F]|\\u\{|\\[pP]/;

/** What, without the `u` flag, matches half of a character that takes two code units. */
const SEES_CODE_UNITS = /\.|\[\^|\\[DSW]/;

/**
 * The pattern of a regular expression with its flags worked into it: `i` spelt out as both cases, `s` as
 * `[\s\S]`. Nothing where that cannot be done faithfully; the rule is then left to class-validator.
 */
export function portablePattern(expression: RegExp): PortablePattern | undefined {
  const { source, flags } = expression;
  if (/[myv]/.test(flags) || (!flags.includes('u') && READS_DIFFERENTLY.test(source))) return undefined;
  const ignoresCase = flags.includes('i');
  if (ignoresCase && !canSpellCases(source, flags)) return undefined;
  const written = rewrite(source, { ignoresCase, dotAll: flags.includes('s') });
  if (!compiles(written)) return undefined;
  return { source: written, exact: flags.includes('u') || !SEES_CODE_UNITS.test(source) };
}

/** Case folding beyond ASCII, escapes and back-references would each need tables of their own. */
function canSpellCases(source: string, flags: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the whole of ASCII is meant
  return /^[\x00-\x7F]*$/.test(source) && !flags.includes('u') && !/\\[1-9kpPuxc]|\(\?</.test(source);
}

function rewrite(source: string, of: { readonly ignoresCase: boolean; readonly dotAll: boolean }): string {
  let written = '';
  let inClass = false;
  for (let at = 0; at < source.length; at++) {
    const character = source.charAt(at);
    if (character === '\\') {
      at++;
      written += escaped(source.charAt(at), inClass);
      continue;
    }
    if (character === '[' && !inClass) inClass = true;
    else if (character === ']') inClass = false;
    const range = inClass ? /^[^\\\]]-[^\\\]]/.exec(source.slice(at))?.[0] : undefined;
    if (of.ignoresCase && range !== undefined && character !== '[') {
      written += bothCasesOfRange(range);
      at += 2;
    } else if (of.ignoresCase && /[a-zA-Z]/.test(character)) {
      const both = `${character.toLowerCase()}${character.toUpperCase()}`;
      written += inClass ? both : `[${both}]`;
    } else {
      written += of.dotAll && character === '.' && !inClass ? '[\\s\\S]' : character;
    }
  }
  return written;
}

/** `\@` and `\-` are allowed without the `u` flag and an error with it; they mean the character itself. */
function escaped(character: string, inClass: boolean): string {
  const isNeedless = !/[a-zA-Z0-9]/.test(character) && !SYNTAX.includes(character);
  return isNeedless && !(inClass && character === '-') ? character : `\\${character}`;
}

/** `a-f` → `a-fA-F`; of a range across both cases, what of it has another case is added. */
function bothCasesOfRange(range: string): string {
  const from = range.charCodeAt(0);
  const to = range.charCodeAt(2);
  const common = (first: string, last: string) => {
    const start = Math.max(from, first.charCodeAt(0));
    const end = Math.min(to, last.charCodeAt(0));
    return start <= end ? String.fromCharCode(start, HYPHEN, end) : '';
  };
  return `${range}${common('a', 'z').toUpperCase()}${common('A', 'Z').toLowerCase()}`;
}

const HYPHEN = 0x2d;

function compiles(source: string): boolean {
  try {
    new RegExp(source, 'u');
    return true;
  } catch {
    return false;
  }
}
