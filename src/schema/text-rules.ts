import { portablePattern } from './portable-pattern.js';
import { exactly, optionsOf, partly, type RuleMeaning, type RuleTable } from './rule-meaning.js';

/**
 * Rules about the length and the content of text. JSON Schema counts characters by code points and so does
 * class-validator, apart from variation selectors, which it does not count: the one place where the
 * schema is narrower (`maxLength` on emoji) or wider (`minLength`).
 */
export const TEXT_RULES: RuleTable = {
  isLength: ([least, most]) =>
    exactly('string', { ...lengthOf('minLength', least), ...lengthOf('maxLength', most) }),
  minLength: ([least]) => exactly('string', lengthOf('minLength', least)),
  maxLength: ([most]) => exactly('string', lengthOf('maxLength', most)),
  // A character takes one to four bytes.
  isByteLength: ([least, most]) =>
    partly('string', {
      ...(typeof least === 'number' ? lengthOf('minLength', Math.ceil(least / 4)) : {}),
      ...lengthOf('maxLength', most),
    }),
  matches: ([pattern, flags]) => matching(pattern, flags),
  contains: ([part]) => containing(part),
  notContains: ([part]) => {
    const { keywords, exact } = containing(part);
    return keywords?.pattern === undefined
      ? partly('string')
      : { hint: 'string', keywords: { not: keywords }, exact };
  },
  isAlpha: ([locale]) => inLocale(locale, '^[a-zA-Z]+$'),
  isAlphanumeric: ([locale]) => inLocale(locale, '^[0-9a-zA-Z]+$'),
  isAscii: () => exactly('string', { pattern: '^[\\x00-\\x7F]+$' }),
  isMultibyte: () => exactly('string', { pattern: '[^\\x00-\\x7F]' }),
  isSurrogatePair: () => exactly('string', { pattern: '[\\u{10000}-\\u{10FFFF}]' }),
  isLowercase: () => partly('string', { pattern: '^[^A-Z]*$' }),
  isUppercase: () => partly('string', { pattern: '^[^a-z]*$' }),
  isBooleanString: () => ({ ...exactly('string'), values: ['true', 'false', '1', '0'] }),
  isNumberString: ([options]) => numberString(optionsOf(options)),
};

function lengthOf(keyword: 'minLength' | 'maxLength', length: unknown): Record<string, number> {
  return typeof length === 'number' && length >= 0 && Number.isFinite(length)
    ? { [keyword]: keyword === 'minLength' ? Math.ceil(length) : Math.floor(length) }
    : {};
}

/** A pattern without flags, if it can be written without; otherwise class-validator alone judges. */
function matching(pattern: unknown, flags: unknown): RuleMeaning {
  const expression = pattern instanceof RegExp ? pattern : compile(pattern, flags);
  const portable = expression && portablePattern(expression);
  if (portable === undefined) return partly('string');
  return { hint: 'string', keywords: { pattern: portable.source }, exact: portable.exact };
}

function compile(pattern: unknown, flags: unknown): RegExp | undefined {
  try {
    return new RegExp(String(pattern), typeof flags === 'string' ? flags : '');
  } catch {
    return undefined;
  }
}

function containing(part: unknown): RuleMeaning {
  if (typeof part !== 'string' || part === '') return partly('string');
  return exactly('string', { pattern: part.replace(/[\^$\\.*+?()[\]{}|/]/g, '\\$&') });
}

function inLocale(locale: unknown, pattern: string): RuleMeaning {
  return locale === undefined || locale === 'en-US' ? exactly('string', { pattern }) : partly('string');
}

function numberString(options: Readonly<Record<string, unknown>>): RuleMeaning {
  if (options.no_symbols) return exactly('string', { pattern: '^[0-9]+$' });
  if (options.locale !== undefined) return partly('string');
  return exactly('string', { pattern: '^[+-]?([0-9]*[.])?[0-9]+$' });
}
