import type { JsonObject } from '../../contract/json-schema.js';
import type { ToolCall } from '../../contract/llm-provider.js';
import type { ToolSchema } from '../../contract/tool-schema.js';
import { fillArguments } from './fill-arguments.js';
import { rankTools } from './rank-tools.js';
import { readText } from './read-text.js';
import { topicOf } from './words.js';

type Plan = Readonly<{ name: string; args: JsonObject; score: number }>;

/** The calls that a text asks of the tools, in the order in which it asks for them. */
export function planCalls(text: string, tools: readonly ToolSchema[], year: number): Omit<ToolCall, 'id'>[] {
  const plans: Plan[] = [];
  let open = '';
  // What stands after so many clauses is data and no further request.
  for (const clause of text.split(/(?<=[.?!;,])\s+|\s+(?=and )/).slice(0, 20)) {
    open += `${clause} `;
    const next = choose(open, tools, year);
    if (!next || !opensCall(next, open, plans.at(-1))) continue;
    plans.push(next);
    open = '';
  }
  const chosen = plans.length > 1 ? plans : [choose(text, tools, year) ?? []].flat();
  return chosen.map(({ name, args }) => ({ name, arguments: args }));
}

function choose(text: string, tools: readonly ToolSchema[], year: number): Plan | undefined {
  const ranks = rankTools(tools, text);
  const plans = tools.flatMap(({ function: { name, description, parameters } }, index) => {
    const args = fillArguments(parameters, readText(text, topicOf(`${name} ${description}`), year));
    // Some word must speak for a tool, except that an arithmetic expression says without one what is wanted.
    const score = (ranks[index] ?? 0) + (args?.expression ? 2 : 0);
    return args && score > 0 ? [{ name, args, score }] : [];
  });
  return plans.sort((a, b) => b.score - a.score)[0];
}

// Whether a text is a request of its own: it names another tool than the last, or has numbers for the same.
function opensCall({ name, args }: Plan, text: string, last?: Plan): boolean {
  const [own, said] = [[...topicOf(name)], topicOf(text)];
  const named = own.filter((stem) => said.has(stem)).length >= own.length * 0.3;
  return 'expression' in args || (name === last?.name ? Object.values(args).some(Number.isFinite) : named);
}
