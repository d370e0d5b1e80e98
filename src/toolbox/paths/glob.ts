import { escapePattern } from '../../core/kernel/escape-pattern.js';
import { FILLED_TEXT, listOf, type OptionRule, protecting } from '../../core/kernel/options.js';
import { ifPossible, realPath } from './folder-path.js';

const MOST_CHARACTERS = 500;
const MOST_ALTERNATIVES = 256;

/**
 * Matches paths with `/` against a pattern: `*` and `?` within a name, `**` for any number of folders, `[a-z]`, `[!a]`,
 * `{a,b}` and `\` before a literal character; with `/` at the end, a folder and its contents. Names that start with a
 * dot are not special. Patterns come from models: unlike picomatch's, these regular expressions never backtrack, and
 * take linear time.
 *
 * @throws Error if the pattern is too long or has too many alternatives.
 */
export function globMatcher(pattern: string): (path: string) => boolean {
  return fitsOne(alternativesOf(pattern).map(pathExpression));
}

/** Whether a folder, or something that may be in it, matches a pattern. */
export function globReaches(pattern: string): (path: string) => boolean {
  const beginnings = alternativesOf(pattern).flatMap((names) =>
    names.map((_, index) => names.slice(0, index)),
  );
  return fitsOne([...beginnings, ...alternativesOf(pattern)].map(pathExpression));
}

/** A pattern that matches only this path. */
export function globLiteral(path: string): string {
  return path.replace(/[*?[\]{}\\]|^[~$!\s]|\s$/g, '\\$&');
}

/** An absolute pattern whose part before the first wildcard has its links resolved. */
export function withoutLinks(pattern: string): string {
  const names = pattern.replace(/\/$/, '/**').split('/');
  const wild = names.findIndex((name) => /[*?[{\\]/.test(name));
  for (let count = wild < 0 ? names.length : wild; count > 1; count--) {
    const real = realPath(names.slice(0, count).join('/'));
    if (real !== undefined) return [globLiteral(real), ...names.slice(count)].join('/');
  }
  return pattern;
}

/** Syntax of shells and of ignore files, which a pattern does not have: `~/a`, `$HOME/a`, `!a`; and outer spaces. */
const FOREIGN_SYNTAX = /^(?:~[\w-]*(?:\/|$)|\$\{?[A-Z_]+\}?(?:\/|$)|!|\s)|(?<!\\)\s$/;

/** Option rule for a path pattern. Patterns that would match nothing are refused. */
export const PATH_PATTERN: OptionRule = {
  accepts: (value) => {
    const alternatives = ifPossible(() => expanded(String(value)));
    if (!FILLED_TEXT.accepts(value) || alternatives === undefined) return false;
    return alternatives.every((one) => !one.split('/').includes('..') && !FOREIGN_SYNTAX.test(one));
  },
  fix: "a pattern without '..', '~', variables and '!': 'src/**', or '/srv/keys/**' for paths outside of the folder",
  schema: { type: 'string', pattern: '\\S' },
};

/** Option rule for paths that are closed to commands. */
export const CLOSED_PATHS: OptionRule = protecting(listOf(PATH_PATTERN, "['**/.env*']"));

/** Matches text against a pattern in which only `*` and `\` are special. */
export function textMatcher(pattern: string): (text: string) => boolean {
  const literal = pattern.replace(/\\.|[?[]/gsu, (text) => (text.length > 1 ? text : `\\${text}`));
  const expression = new RegExp(`^${nameSource(literal, '[^]')}$`, 'u');
  return (text) => expression.test(text);
}

/** The innermost braces that contain a comma. */
const BRACES = /(?<before>(?:\\.|[^\\])*?)\{(?<choices>(?:\\.|[^\\{},])*(?:,(?:\\.|[^\\{},])*)+)\}/suy;
const COMMA = /(?<=(?:^|[^\\])(?:\\\\)*),/su;

/** The alternatives of a pattern, each as a list of names. */
function alternativesOf(pattern: string): readonly (readonly string[])[] {
  return expanded(pattern).map((one) =>
    one
      .replace(/\/$/, '/**')
      .split('/')
      .filter((name) => name !== '' && name !== '.'),
  );
}

/** Expands braces. */
function expanded(pattern: string): readonly string[] {
  if (pattern.length > MOST_CHARACTERS)
    throw new Error(`The pattern is too long: ${pattern.length} characters, at most ${MOST_CHARACTERS}.`);
  const open = [pattern];
  const done: string[] = [];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    BRACES.lastIndex = 0;
    const { before = '', choices } = BRACES.exec(one)?.groups ?? {};
    if (choices === undefined) done.push(one);
    else
      for (const choice of choices.split(COMMA))
        open.push(before + choice + one.slice(before.length + choices.length + 2));
    if (open.length + done.length > MOST_ALTERNATIVES)
      throw new Error(`The pattern has more than ${MOST_ALTERNATIVES} alternatives.`);
  }
  return done;
}

/** A regular expression for a path in which each name ends with `/`. */
function pathExpression(names: readonly string[]): RegExp {
  const parts = [''];
  for (const name of names)
    if (name === '**') parts.push('');
    else parts.push(`${parts.pop()}${nameSource(name, '[^/]')}/`);
  return new RegExp(`^${withGaps(parts, '(?:[^/]*/)')}$`, 'u');
}

function fitsOne(expressions: readonly RegExp[]): (path: string) => boolean {
  return (path) => {
    const names = path === '.' ? '' : `${path}/`;
    return expressions.some((expression) => expression.test(names));
  };
}

/** An escaped character, a set, stars, or any other character; a `[` without `]` is literal. */
const PIECES = /\\(?<meant>.)|\[(?<not>[!^]|(?![!^]))(?<set>.[^\]]*)\]|(?<star>\*+)|./gsu;
const RANGES = /(.)-(.)|./gsu;

function nameSource(name: string, anyCharacter: string): string {
  const parts = [''];
  for (const { 0: text, groups = {} } of name.matchAll(PIECES)) {
    const literal = groups.meant ?? text;
    if (groups.star !== undefined) parts.push('');
    else if (groups.set !== undefined) parts.push(parts.pop() + setSource(groups.set, groups.not !== ''));
    else parts.push(parts.pop() + (text === '?' ? anyCharacter : escapePattern(literal)));
  }
  return withGaps(parts, anyCharacter);
}

function setSource(set: string, isNot: boolean): string {
  const ranges = Array.from(set.matchAll(RANGES), ([one, from = one, to = one]) =>
    Number(from.codePointAt(0)) <= Number(to.codePointAt(0))
      ? [from, to].map((character) => character.replace(/[\\\]^-]/, '\\$&')).join('-')
      : '',
  );
  return `(?!/)[${isNot ? '^' : ''}${ranges.join('')}]`;
}

/** A gap ends at the first match of the next part: a later match is never better. */
function withGaps([first = '', ...others]: readonly string[], gap: string): string {
  const last = others.pop();
  const middle = others.map((part) => `(?:(?!${part})${gap})*${part}`).join('');
  return first + middle + (last === undefined ? '' : `${gap}*${last}`);
}
