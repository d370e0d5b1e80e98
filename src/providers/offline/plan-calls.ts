import type { ToolCall } from '../../contract/llm-provider.js';
import type { ToolSchema } from '../../contract/tool-schema.js';
import { type Filled, fillArguments } from './fill-arguments.js';
import { rankTools } from './rank-tools.js';
import { topicOf } from './words.js';

type Plan = Filled & Readonly<{ text: string; tool: ToolSchema; rank: number }>;

/** The calls that a text asks of the tools, in the order in which it asks for them. */
export function planCalls(text: string, tools: readonly ToolSchema[], today: Date): Omit<ToolCall, 'id'>[] {
  const plans: Plan[] = [];
  let loose = '';
  for (const clause of text.split(/(?<=[.?!;])\s+|(?<=,)\s+|\s+(?=and )/)) {
    const next = choose(loose + clause, tools, today);
    const last = plans.at(-1);
    if (next && opensCall(next, last)) plans.push(next);
    else if (last) plans.push(fill(`${plans.pop()?.text} ${clause}`, last.tool, last.rank, today));
    loose = plans.length > 0 ? '' : `${loose}${clause} `;
  }
  const chosen = plans.length > 1 ? plans : [choose(text, tools, today)];
  return chosen.flatMap(
    (one) => one?.calls.map((args) => ({ name: one.tool.function.name, arguments: args })) ?? [],
  );
}

function fill(text: string, tool: ToolSchema, rank: number, today: Date): Plan {
  const { name, description, parameters } = tool.function;
  const own = topicOf(`${name} ${description} find get list look search see show say tell`);
  return { ...fillArguments(parameters, text, own, today), text, tool, rank };
}

function choose(text: string, tools: readonly ToolSchema[], today: Date): Plan | undefined {
  const ranks = rankTools(tools, text);
  const score = ({ rank, certain, covered }: Plan) => rank + (certain ? 2 : 0) + covered * 2;
  // Some word must speak for a tool, except that an arithmetic expression says without one what is wanted.
  const usable = ({ rank, certain, calls: [args] }: Plan) =>
    args && (rank > 0 || (certain && Object.keys(args).some((key) => /express/i.test(key))));
  const plans = tools.map((tool, index) => fill(text, tool, ranks[index] ?? 0, today)).filter(usable);
  return plans.sort((a, b) => score(b) - score(a))[0];
}

// Whether a clause is a request of its own: names another tool clearly, or the same with values as full.
function opensCall({ text, tool, certain, rank, calls: [args = {}] }: Plan, last?: Plan): boolean {
  const [own, said] = [[...topicOf(tool.function.name)], topicOf(text)];
  const named = own.filter((stem) => said.has(stem)).length >= own.length * 0.3;
  if (last === undefined) return certain;
  if (tool !== last.tool) return (certain || rank > 1) && named;
  const firm =
    Object.values(args).length > 1 || Object.values(args).some((value) => typeof value !== 'string');
  return certain && rank > 0 && firm && Object.keys(args).join() === Object.keys(last.calls[0] ?? {}).join();
}
