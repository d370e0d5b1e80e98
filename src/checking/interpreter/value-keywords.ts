import { canonicalJson } from '../canonical-json.js';
import { formatTest, patternOf } from '../json-formats.js';
import { type MakeJudge, type Part, refusesUnless } from './judge.js';

/** Keywords that compare a value of any type. */
export const ANY_KEYWORDS: Readonly<Record<string, MakeJudge>> = {
  const: (part) => refusesUnless(part, { params: { allowedValue: part.given } }, isOneOf([part.given])),
  enum: (part) =>
    refusesUnless(part, { params: { allowedValues: part.given } }, isOneOf(part.given as readonly unknown[])),
};

/** Keywords that say something of numbers. */
export const NUMBER_KEYWORDS: Readonly<Record<string, MakeJudge>> = {
  maximum: bound('<=', (value, limit) => value <= limit),
  minimum: bound('>=', (value, limit) => value >= limit),
  exclusiveMaximum: bound('<', (value, limit) => value < limit),
  exclusiveMinimum: bound('>', (value, limit) => value > limit),
  multipleOf: (part) => {
    const step = part.given as number;
    const complaint = { params: { multipleOf: step }, message: `must be multiple of ${step}` };
    return refusesUnless(part, complaint, (value: number) => isWhole(value / step));
  },
  format: (part) => format(part, 'number'),
};

/** Keywords that say something of texts. */
export const TEXT_KEYWORDS: Readonly<Record<string, MakeJudge>> = {
  maxLength: (part) => {
    const most = part.given as number;
    const complaint = {
      params: { limit: most },
      message: `must NOT have more than ${most} characters`,
    };
    return refusesUnless(
      part,
      complaint,
      (text: string) => text.length <= most || charactersOf(text) <= most,
    );
  },
  minLength: (part) => {
    const least = part.given as number;
    const complaint = {
      params: { limit: least },
      message: `must NOT have fewer than ${least} characters`,
    };
    return refusesUnless(
      part,
      complaint,
      (text: string) => text.length >= least && charactersOf(text) >= least,
    );
  },
  pattern: (part) => {
    const expression = patternOf(part.given as string);
    const complaint = {
      params: { pattern: part.given },
      message: `must match pattern "${part.given}"`,
    };
    return refusesUnless(part, complaint, (text: string) => expression.test(text));
  },
  format: (part) => format(part, 'string'),
};

function bound(comparison: string, holds: (value: number, limit: number) => boolean): MakeJudge {
  return (part) => {
    const limit = part.given as number;
    const complaint = { params: { comparison, limit }, message: `must be ${comparison} ${limit}` };
    return refusesUnless(part, complaint, (value: number) => holds(value, limit));
  };
}

/** Of what is written with an exponent, compiled schemas take no multiple. */
function isWhole(quotient: number): boolean {
  return Number.isInteger(quotient) && Math.abs(quotient) < 1e21;
}

function format(part: Part, type: 'number' | 'string') {
  const name = String(part.given);
  const test = formatTest(name, type);
  if (test === undefined) return undefined;
  return refusesUnless(part, { params: { format: name }, message: `must match format "${name}"` }, test);
}

/** In characters, of which some take two units. */
function charactersOf(text: string): number {
  let characters = 0;
  for (const _ of text) characters += 1;
  return characters;
}

function isOneOf(values: readonly unknown[]): (value: unknown) => boolean {
  const plain = new Set(values.filter((value) => typeof value !== 'object' || value === null));
  const nested = new Set(
    values.filter((value) => typeof value === 'object' && value !== null).map(canonicalJson),
  );
  return (value) => {
    if (typeof value !== 'object' || value === null) return plain.has(value);
    return nested.size > 0 && nested.has(canonicalJson(value));
  };
}
