import { isRecord } from '../kernel/json.js';
import { ANYTHING, LIST, type OptionTable, optionFaults, optionTable, required } from '../kernel/options.js';

const ONLY_TRUE = { accepts: (value: unknown) => value === true, fix: 'true' };
const PATTERN = {
  accepts: (value: unknown) => typeof value === 'string' && compiles(value),
  fix: '"^cus_", a regular expression',
};
const FLAGS = {
  accepts: (value: unknown) => typeof value === 'string' && /^[imsu]*$/.test(value),
  fix: '"i", of i, m, s and u',
};

/** What may stand where a value is expected: any value, a text of some form, one of several, none at all. */
const MATCHERS = [
  ['$any', optionTable<{ $any: true }>('a matcher', { $any: required(ONLY_TRUE) })],
  ['$absent', optionTable<{ $absent: true }>('a matcher', { $absent: required(ONLY_TRUE) })],
  [
    '$regex',
    optionTable<{ $regex: string; $flags?: string }>('a matcher', {
      $regex: required(PATTERN),
      $flags: FLAGS,
    }),
  ],
  ['$oneOf', optionTable<{ $oneOf: unknown[] }>('a matcher', { $oneOf: required(LIST) })],
] as const;
const NO_MATCHER = optionTable<Record<'$any' | '$absent' | '$regex' | '$oneOf', unknown>>('a matcher', {
  ...{ $any: ANYTHING, $absent: ANYTHING, $regex: ANYTHING, $oneOf: ANYTHING },
});

/** Whether an expected value is a matcher. */
function isMatcher(value: unknown): value is Readonly<Record<string, unknown>> {
  return isRecord(value) && Object.keys(value).some((key) => key.startsWith('$'));
}

/** The first thing that is wrong with what was written. */
export function firstFault(given: unknown, table: OptionTable): string | undefined {
  const [fault] = optionFaults(given, table);
  return fault && `${fault.problem}; write ${fault.fix}`;
}

/** What is wrong with a matcher within what is expected. */
export function matcherFault(value: unknown, path: string): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (isMatcher(value)) {
    const table = MATCHERS.find(([name]) => name in value)?.[1] ?? NO_MATCHER;
    const fault = firstFault(value, table);
    if (fault !== undefined) return `${path}: ${fault}`;
    return matcherFault(value.$oneOf, path);
  }
  return Object.entries(value)
    .map(([key, part]) => matcherFault(part, `${path}.${key}`))
    .find((found) => found !== undefined);
}

function compiles(pattern: string): boolean {
  try {
    new RegExp(pattern);
    return true;
  } catch {
    return false;
  }
}

/** The first place at which a value is not as expected; of objects only the named fields count. */
export function valueDifference(expected: unknown, given: unknown, path: string): string | undefined {
  if (isMatcher(expected)) return matcherDifference(expected, given, path);
  if (Array.isArray(expected)) {
    if (!Array.isArray(given)) return mismatch(expected, given, path);
    if (expected.length !== given.length)
      return `${path}: expected ${expected.length} items, got ${given.length}`;
    return firstOf(expected.map((item, index) => [item, given[index], `${path}[${index}]`]));
  }
  if (isRecord(expected)) {
    if (!isRecord(given)) return mismatch(expected, given, path);
    return firstOf(
      Object.keys(expected).map((key) => [
        expected[key],
        Object.hasOwn(given, key) ? given[key] : undefined,
        `${path}.${key}`,
      ]),
    );
  }
  return expected === given ? undefined : mismatch(expected, given, path);
}

function firstOf(parts: readonly (readonly [unknown, unknown, string])[]): string | undefined {
  for (const [expected, given, path] of parts) {
    const difference = valueDifference(expected, given, path);
    if (difference !== undefined) return difference;
  }
  return undefined;
}

function matcherDifference(
  matcher: Readonly<Record<string, unknown>>,
  given: unknown,
  path: string,
): string | undefined {
  const { $any, $absent, $regex, $flags = '', $oneOf } = matcher;
  const isMet =
    ($any === true && given !== undefined) ||
    ($absent === true && given === undefined) ||
    (typeof $regex === 'string' &&
      typeof given === 'string' &&
      new RegExp($regex, String($flags)).test(given)) ||
    (Array.isArray($oneOf) && $oneOf.some((one) => valueDifference(one, given, path) === undefined));
  return isMet ? undefined : mismatch(matcher, given, path);
}

function mismatch(expected: unknown, given: unknown, path: string): string {
  return `${path}: expected ${shown(expected)}, got ${shown(given)}`;
}

const MOST_SHOWN = 80;

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}…` : text;
}
