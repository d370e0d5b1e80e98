import type { ToolCall } from '../../contract/llm-provider.js';
import type { ToolSchema } from '../../contract/tool-schema.js';
import { type Filled, fillArguments } from './fill-arguments.js';
import { rankTools } from './rank-tools.js';
import { topicOf } from './words.js';

interface Plan extends Filled {
  readonly text: string;
  readonly tool: ToolSchema;
  readonly rank: number;
  readonly score: number;
}

/** The calls that a text asks of the tools, in the order in which it asks for them. */
export function planCalls(text: string, tools: readonly ToolSchema[], today: Date): Omit<ToolCall, 'id'>[] {
  const rank = rankTools(tools);
  const plan = (part: string, tool: ToolSchema, rank: number): Plan => {
    const { name, description, parameters } = tool.function;
    const own = topicOf(`${name} ${description} find get list look search see show say tell`);
    const filled = fillArguments(parameters, part, own, today);
    return { ...filled, text: part, tool, rank, score: rank + (filled.certain ? 2 : 0) + filled.covered * 2 };
  };
  const best = (part: string): Plan | undefined => {
    const plans = rank(part).map((score, index) => plan(part, tools[index]!, score));
    const usable = plans.filter((one) => one.calls.length > 0 && (one.rank > 0 || isFormula(one)));
    return usable.sort((a, b) => b.score - a.score)[0];
  };
  const plans: Plan[] = [];
  let loose = '';
  for (const clause of text.split(/(?<=[.?!;])\s+|(?<=,)\s+|\s+(?=and )/)) {
    const next = best(loose + clause);
    const last = plans.at(-1);
    const opens =
      next && (next.tool === last?.tool ? repeats(next, last) : last ? changes(next) : next.certain);
    if (opens) plans.push(next);
    else if (last) plans[plans.length - 1] = plan(`${last.text} ${clause}`, last.tool, last.rank);
    loose = opens || last ? '' : `${loose}${clause} `;
  }
  const whole = plans.length > 1 ? plans : [best(text)];
  return whole.flatMap(
    (one) => one?.calls.map((args) => ({ name: one.tool.function.name, arguments: args })) ?? [],
  );
}

// An arithmetic expression says what is wanted without a word.
function isFormula({ certain, calls }: Plan): boolean {
  return certain && Object.keys(calls[0] ?? {}).some((key) => /express|formula/i.test(key));
}

/** Whether a clause names another tool clearly enough to be a request of its own. */
function changes({ text, tool, certain, rank }: Plan): boolean {
  const [own, said] = [[...topicOf(tool.function.name)], topicOf(text)];
  return (certain || rank > 1) && own.filter((stem) => said.has(stem)).length >= own.length * 0.3;
}

/** Whether a clause gives the same tool a second full set of values. */
function repeats({ certain, rank, calls: [args = {}] }: Plan, last: Plan): boolean {
  const same = Object.keys(args).join() === Object.keys(last.calls[0] ?? {}).join();
  const firm =
    Object.values(args).length > 1 || Object.values(args).some((value) => typeof value !== 'string');
  return certain && rank > 0 && same && firm;
}
