import type { ToolCall } from '../../contract/llm-provider.js';
import type { ToolSchema } from '../../contract/tool-schema.js';
import { type Filled, fillArguments } from './fill-arguments.js';
import { rankTools } from './rank-tools.js';
import { topicOf } from './words.js';

type Plan = Filled & Readonly<{ text: string; tool: ToolSchema; rank: number }>;

/** The calls that a text asks of the tools, in the order in which it asks for them. */
export function planCalls(text: string, tools: readonly ToolSchema[], year: number): Omit<ToolCall, 'id'>[] {
  const plans: Plan[] = [];
  let loose = '';
  for (const clause of text.split(/(?<=[.?!;])\s+|(?<=,)\s+|\s+(?=and )/)) {
    const [next, last] = [choose(loose + clause, tools, year), plans.at(-1)];
    if (next && opensCall(next, last)) plans.push(next);
    else if (last) plans.splice(-1, 1, { ...last, text: `${last.text} ${clause}` });
    // No request needs more than this before it is clear; without a bound, long texts take quadratic time.
    loose = plans.length > 0 ? '' : `${loose}${clause} `.slice(-400);
  }
  const chosen = plans.length > 1 ? plans : [choose(text, tools, year)].filter((one) => one !== undefined);
  return chosen.flatMap((one) => {
    const { calls, tool } = plan(one.text, one, year);
    return calls.map((args) => ({ name: tool.function.name, arguments: args }));
  });
}

function plan(text: string, { tool, rank }: Pick<Plan, 'tool' | 'rank'>, year: number): Plan {
  const { name, description, parameters } = tool.function;
  const own = topicOf(`${name} ${description} find get list look search see show say tell`);
  return { ...fillArguments(parameters, text, { own, year }), text, tool, rank };
}

function choose(text: string, tools: readonly ToolSchema[], year: number): Plan | undefined {
  const score = ({ rank, certain, covered }: Plan) => rank + (certain ? 2 : 0) + covered * 2;
  const ranks = rankTools(tools, text);
  const plans = tools.map((tool, index) => plan(text, { tool, rank: ranks[index] ?? 0 }, year));
  // Some word must speak for a tool, except that an arithmetic expression says without one what is wanted.
  const usable = plans.filter(({ rank, calls: [args] }) => args && (rank > 0 || 'expression' in args));
  return usable.sort((a, b) => score(b) - score(a))[0];
}

// Whether a clause is a request of its own: names another tool clearly, or the same with other values.
function opensCall({ text, tool, certain, rank, calls: [args = {}] }: Plan, last?: Plan): boolean {
  const [own, said] = [[...topicOf(tool.function.name)], topicOf(text)];
  const named = own.filter((stem) => said.has(stem)).length >= own.length * 0.3;
  if (last && tool !== last.tool) return named && (certain || rank > 1);
  const same = Object.keys(args).join() === Object.keys(last?.calls[0] ?? {}).join();
  return certain && (!last || (same && ('expression' in args || Object.values(args).some(Number.isFinite))));
}
