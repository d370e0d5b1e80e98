import type { JsonSchema } from '../../contract/json-schema.js';
import { canonicalJson } from '../../kernel/json.js';
import { formatTest, patternOf } from '../formats.js';
import { type Chooser, unionChooser } from '../unions.js';
import {
  allOfJudges,
  countBound,
  FITS,
  type Judge,
  type MakeJudge,
  type Part,
  refusesUnless,
  type Test,
  testOf,
  withTest,
} from './judge.js';

/** Keywords that compare a value of any type. */
const ANY_KEYWORDS: Readonly<Record<string, MakeJudge>> = {
  const: (part) => refusesUnless(part, { params: { allowedValue: part.given } }, isOneOf([part.given])),
  enum: (part) =>
    refusesUnless(part, { params: { allowedValues: part.given } }, isOneOf(part.given as readonly unknown[])),
};

/** Keywords that say something of numbers. */
const NUMBER_KEYWORDS: Readonly<Record<string, MakeJudge>> = {
  maximum: bound('<=', (limit) => (value) => value <= limit),
  minimum: bound('>=', (limit) => (value) => value >= limit),
  exclusiveMaximum: bound('<', (limit) => (value) => value < limit),
  exclusiveMinimum: bound('>', (limit) => (value) => value > limit),
  multipleOf: (part) => {
    const step = part.given as number;
    const complaint = { params: { multipleOf: step }, message: `must be multiple of ${step}` };
    return refusesUnless(part, complaint, (value: number) => isWhole(value / step));
  },
  format: (part) => format(part, 'number'),
};

/** Keywords that say something of texts. */
const TEXT_KEYWORDS: Readonly<Record<string, MakeJudge>> = {
  maxLength: countBound('more', 'characters', (most) => (text: string) => {
    return text.length <= most || charactersOf(text) <= most;
  }),
  minLength: countBound('fewer', 'characters', (least) => (text: string) => {
    return text.length >= least && charactersOf(text) >= least;
  }),
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

function bound(comparison: string, within: (limit: number) => (value: number) => boolean): MakeJudge {
  return (part) => {
    const limit = part.given as number;
    const complaint = { params: { comparison, limit }, message: `must be ${comparison} ${limit}` };
    return refusesUnless(part, complaint, within(limit));
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

/** Keywords that judge the value itself by other schemas. */
const COMBINING_KEYWORDS: Readonly<Record<string, MakeJudge>> = {
  not: (part) => {
    const judge = part.judgeOf(part.given);
    const complaint = { message: 'must NOT be valid' };
    const test = testOf(judge);
    return withTest(
      (value, run) => !run.quietly(value, judge) || run.refuse(value, part, complaint),
      (value) => !test(value),
    );
  },
  allOf: (part) => allOfJudges((part.given as readonly unknown[]).map((schema) => part.judgeOf(schema))),
  if: condition,
  anyOf: union,
  oneOf: union,
};

/** By what they say something of: values of any type, numbers, texts. */
export const VALUE_KEYWORDS = {
  any: { ...ANY_KEYWORDS, ...COMBINING_KEYWORDS },
  number: NUMBER_KEYWORDS,
  text: TEXT_KEYWORDS,
};

function condition(part: Part): Judge {
  const holds = part.judgeOf(part.given);
  const clause = (failingKeyword: 'then' | 'else'): Judge => {
    const given = part.schema[failingKeyword];
    if (given === undefined) return FITS;
    const judge = part.judgeOf(given);
    const complaint = { params: { failingKeyword }, message: `must match "${failingKeyword}" schema` };
    return withTest(
      (value, run, seen) => judge(value, run, seen) || run.refuse(value, part, complaint),
      testOf(judge),
    );
  };
  const [follows, otherwise] = [clause('then'), clause('else')];
  if (follows === FITS && otherwise === FITS && !part.isTracking) return FITS;
  const judge: Judge = (value, run, seen) => {
    const own = run.track();
    if (!run.quietly(value, holds, own)) return otherwise(value, run, seen);
    if (own !== undefined) seen?.add(own);
    return follows(value, run, seen);
  };
  const [isMet, then, orElse] = [testOf(holds), testOf(follows), testOf(otherwise)];
  return withTest(judge, (value) => (isMet(value) ? then(value) : orElse(value)));
}

/**
 * `anyOf` or `oneOf`. Where the value shows which branch it was meant for, that branch alone is asked and tells
 * what is wrong; otherwise all of them are, and what they say against it is not kept.
 */
function union(part: Part): Judge {
  const branches = part.given as readonly JsonSchema[];
  const judges = branches.map((branch) => part.judgeOf(branch));
  const choose = unionChooser(branches, part.root);
  const complaint = { message: `must match a schema in ${part.keyword}` };
  const isFitting = part.keyword === 'oneOf' ? fitsOne(judges) : fitsAny(judges);
  const judge: Judge = (value, run, seen) => {
    const chosen = choose(value);
    if (chosen.kind === 'branch') return (judges[chosen.index] ?? FITS)(value, run, seen);
    const isHopeless = chosen.kind === 'tag' && chosen.isCertain;
    return (!isHopeless && isFitting(value, run, seen)) || run.refuse(value, part, complaint);
  };
  return withTest(
    judge,
    unionTest(judges.map(testOf), { choose, most: part.keyword === 'oneOf' ? 1 : Number.POSITIVE_INFINITY }),
  );
}

function unionTest(
  tests: readonly Test[],
  { choose, most }: { readonly choose: Chooser; readonly most: number },
): Test {
  return (value) => {
    const chosen = choose(value);
    if (chosen.kind === 'branch') return tests[chosen.index]?.(value) ?? true;
    if (chosen.kind === 'tag' && chosen.isCertain) return false;
    let fitting = 0;
    for (const test of tests) {
      if (!test(value)) continue;
      if (most === Number.POSITIVE_INFINITY) return true;
      fitting += 1;
      if (fitting > most) return false;
    }
    return fitting === 1;
  };
}

function fitsAny(judges: readonly Judge[]): Judge {
  return (value, run, seen) => {
    let fits = false;
    for (const judge of judges) {
      const own = run.track();
      if (!run.quietly(value, judge, own)) continue;
      if (own === undefined || seen === undefined) return true;
      // Each branch that fits has its part in what has been judged.
      seen.add(own);
      fits = true;
    }
    return fits;
  };
}

function fitsOne(judges: readonly Judge[]): Judge {
  return (value, run, seen) => {
    let fitting = 0;
    for (const judge of judges) {
      const own = run.track();
      if (!run.quietly(value, judge, own)) continue;
      if (own !== undefined) seen?.add(own);
      fitting += 1;
      if (fitting > 1) return false;
    }
    return fitting === 1;
  };
}
