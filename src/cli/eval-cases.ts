import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Message } from '../contract/llm-provider.js';
import { isRecord, parsedJson } from '../kernel/json.js';
import { misspeltName } from '../kernel/nearest-name.js';
import {
  ANYTHING,
  BOOLEAN,
  FILLED_TEXT,
  LIST,
  type OptionTable,
  objectOf,
  optionFaults,
  optionTable,
  RECORD,
  required,
} from '../kernel/options.js';
import { historyFaults } from '../loop/given-history.js';
import { UserFault } from './command.js';

/** A call that is expected; of its arguments those that are named, each by a value or a matcher. */
export interface ExpectedCall {
  readonly tool: string;
  readonly arguments?: Readonly<Record<string, unknown>>;
}

/** What is asked, and the calls that the model should make: these and no others, in any order. */
export interface EvalCase {
  readonly id: string;
  readonly messages: readonly Message[];
  readonly calls: readonly ExpectedCall[];
}

/** A line of a file of cases. */
interface WrittenCase {
  readonly id?: string;
  readonly prompt?: string;
  readonly messages?: readonly Message[];
  readonly expect: WrittenExpectation;
}

interface WrittenExpectation extends Partial<ExpectedCall> {
  readonly tools?: readonly (string | ExpectedCall)[];
  readonly noTool?: boolean;
}

const CALL = { tool: FILLED_TEXT, arguments: RECORD };
const CASE = optionTable<WrittenCase>(
  'a case',
  {
    id: FILLED_TEXT,
    prompt: FILLED_TEXT,
    messages: LIST,
    expect: required(
      objectOf<WrittenExpectation>(
        { ...CALL, tools: LIST, noTool: BOOLEAN },
        { fix: '{ tool: "…", arguments: { … } }', meant: { args: 'arguments', name: 'tool' } },
      ),
    ),
  },
  { input: 'prompt', question: 'prompt', expected: 'expect' },
);
const EXPECTED_CALL = optionTable<ExpectedCall>('an expected call', {
  tool: required(FILLED_TEXT),
  arguments: RECORD,
});

/** Where cases come from, and the names of the tools that they may expect. */
interface CaseSource {
  readonly file: string;
  readonly folder: string;
  readonly names: readonly string[];
}

/**
 * The cases of a file, one JSON line each.
 *
 * @throws UserFault with the line of the first mistake.
 */
export function readCases({ file, folder, names }: CaseSource): readonly EvalCase[] {
  const path = resolve(folder, file);
  if (!existsSync(path)) throw new UserFault(`there is no file ${file}`, 1);
  const ids = new Set<string>();
  const cases = readFileSync(path, 'utf8')
    .split('\n')
    .flatMap((text, index) => {
      if (text.trim() === '') return [];
      const read = readCase(text, names);
      const problem = typeof read === 'string' ? read : undefined;
      if (typeof read === 'string') throw new UserFault(`${file}:${index + 1}: ${problem}`, 1);
      const found = { ...read, id: read.id ?? ownId(read.messages, ids) };
      if (ids.has(found.id))
        throw new UserFault(`${file}:${index + 1}: there is another case '${found.id}'`, 1);
      ids.add(found.id);
      return [found];
    });
  if (cases.length === 0) throw new UserFault(`${file} has no cases`, 1);
  return cases;
}

type ReadCase = Omit<EvalCase, 'id'> & { readonly id?: string };

/** A case, or what is wrong with it. */
function readCase(text: string, names: readonly string[]): ReadCase | string {
  const written = parsedJson(text);
  if (!isRecord(written)) return 'a case is a JSON object on one line';
  const fault = firstFault(written, CASE);
  if (fault !== undefined) return fault;
  const { id, prompt, messages, expect } = written as unknown as WrittenCase;
  if ((prompt === undefined) === (messages === undefined))
    return 'a case has a prompt or messages, and not both';
  const asked = messages ?? [{ role: 'user' as const, content: prompt ?? '' }];
  const [wrong] = historyFaults(asked, 'refuse');
  if (wrong !== undefined) return wrong.problem;
  const calls = callsOf(expect);
  if (typeof calls === 'string') return calls;
  const problem = calls.map((call) => callFault(call, names)).find((found) => found !== undefined);
  return problem ?? { messages: asked, calls, ...(id === undefined ? {} : { id }) };
}

/** The calls that are expected, or why nobody can tell. */
function callsOf(expect: WrittenExpectation): readonly ExpectedCall[] | string {
  const { tool, tools, noTool, arguments: args } = expect;
  if ([tool, tools, noTool].filter((one) => one !== undefined).length !== 1 || noTool === false)
    return 'expect has one of tool, tools and noTool: true';
  if (tool === undefined && args !== undefined)
    return 'expect has arguments, but no tool; write them to each of tools';
  if (noTool) return [];
  if (tool !== undefined) return [args === undefined ? { tool } : { tool, arguments: args }];
  if (tools?.length === 0) return 'expect.tools is empty; write noTool: true';
  const calls = (tools ?? []).map((call) => (typeof call === 'string' ? { tool: call } : call));
  const fault = calls.map((call) => firstFault(call, EXPECTED_CALL)).find((found) => found !== undefined);
  return fault ?? calls;
}

function callFault({ tool, arguments: args }: ExpectedCall, names: readonly string[]): string | undefined {
  if (names.includes(tool)) return matcherFault(args, 'arguments');
  const near = misspeltName(tool, names);
  return `there is no tool '${tool}'${near === undefined ? '' : ` (did you mean '${near}'?)`}`;
}

/** What was asked last names a case that has no id; where another one asked the same, with a number behind it. */
function ownId(messages: readonly Message[], taken: ReadonlySet<string>): string {
  const last = messages.findLast(({ role }) => role === 'user');
  const text = typeof last?.content === 'string' ? last.content : JSON.stringify(last?.content ?? 'case');
  let id = text;
  for (let number = 2; taken.has(id); number++) id = `${text} (${number})`;
  return id;
}

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
function firstFault(given: unknown, table: OptionTable): string | undefined {
  const [fault] = optionFaults(given, table);
  return fault && `${fault.problem}; write ${fault.fix}`;
}

/** What is wrong with a matcher within what is expected. */
function matcherFault(value: unknown, path: string): string | undefined {
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
