import type { ToolCall } from '../../contract/llm-provider.js';
import type { ToolSchema } from '../../contract/tool-schema.js';
import { type Filled, fillArguments } from './fill-arguments.js';
import { rankTools } from './rank-tools.js';
import { topicOf } from './words.js';

type Plan = Filled & Readonly<{ text: string; tool: ToolSchema; rank: number }>;

/** The calls that a text asks of the tools, in the order in which it asks for them. */
export function planCalls(text: string, tools: readonly ToolSchema[], today: Date): Omit<ToolCall, 'id'>[] {
  const rankAll = rankTools(tools);
  const plan = (text: string, tool: ToolSchema, rank: number): Plan => {
    const { name, description, parameters } = tool.function;
    const own = topicOf(`${name} ${description} find get list look search see show say tell`);
    return { ...fillArguments(parameters, text, own, today), text, tool, rank };
  };
  const choose = (text: string): Plan | undefined => {
    const ranks = rankAll(text);
    const usable = tools.map((tool, index) => plan(text, tool, ranks[index] ?? 0)).filter(isUsable);
    const score = (one: Plan) => one.rank + (one.certain ? 2 : 0) + one.covered * 2;
    return usable.sort((a, b) => score(b) - score(a))[0];
  };
  const plans: Plan[] = [];
  let loose = '';
  for (const clause of text.split(/(?<=[.?!;])\s+|(?<=,)\s+|\s+(?=and )/)) {
    const next = choose(loose + clause);
    const last = plans.at(-1);
    if (next && opensCall(next, last)) plans.push(next);
    else if (last) plans.push(plan(`${plans.pop()?.text} ${clause}`, last.tool, last.rank));
    loose = plans.length > 0 ? '' : `${loose}${clause} `;
  }
  const chosen = plans.length > 1 ? plans : [choose(text)];
  return chosen.flatMap(
    (one) => one?.calls.map((args) => ({ name: one.tool.function.name, arguments: args })) ?? [],
  );
}

// Some word must speak for a tool, except that an arithmetic expression says without one what is wanted.
function isUsable({ rank, certain, calls: [args] }: Plan): boolean {
  return (
    args !== undefined && (rank > 0 || (certain && Object.keys(args).some((key) => /express/i.test(key))))
  );
}

/** Whether a clause is a request of its own: names another tool clearly, or the same with values as full. */
function opensCall({ text, tool, certain, rank, calls: [args = {}] }: Plan, last?: Plan): boolean {
  const [own, said] = [[...topicOf(tool.function.name)], topicOf(text)];
  const named = own.filter((stem) => said.has(stem)).length >= own.length * 0.3;
  if (last === undefined || tool !== last.tool) return certain || (last !== undefined && rank > 1 && named);
  const firm =
    Object.values(args).length > 1 || Object.values(args).some((value) => typeof value !== 'string');
  return certain && rank > 0 && firm && Object.keys(args).join() === Object.keys(last.calls[0] ?? {}).join();
}
