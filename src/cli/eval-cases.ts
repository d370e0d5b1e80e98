import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Message } from '../contract/llm-provider.js';
import { isRecord } from '../kernel/json.js';
import { misspeltName } from '../kernel/nearest-name.js';
import { BOOLEAN, FILLED_TEXT, LIST, objectOf, optionTable, RECORD, required } from '../kernel/options.js';
import { historyFaults } from '../loop/given-history.js';
import { UserFault } from './command.js';
import { firstFault, matcherFault } from './eval-matchers.js';

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
  const written = parse(text);
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

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
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
