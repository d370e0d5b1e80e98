import type { JsonObject } from '../../contract/json-schema.js';
import type { ToolCall, ToolSchema } from '../../contract/llm-provider.js';
import { fillArguments } from './fill-arguments.js';
import { readText, readWords, topicOf } from './read-text.js';

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
    const own = topicOf(`${name} ${description} find get list look search see show say tell`);
    const args = fillArguments(parameters, readText(text, own, year));
    // Some word must speak for a tool, except that an arithmetic expression says without one what is wanted.
    const rank = (ranks[index] ?? 0) + (args?.expression ? 2 : 0);
    return args && rank > 0 ? [{ name, args, score: rank + (Object.keys(args).length > 0 ? 1 : 0) }] : [];
  });
  return plans.sort((a, b) => b.score - a.score)[0];
}

// Whether a text is a request of its own: it names another tool than the last, or has numbers for the same.
function opensCall({ name, args }: Plan, text: string, last?: Plan): boolean {
  const [own, said] = [[...topicOf(name)], topicOf(text)];
  const named = own.filter((stem) => said.has(stem)).length >= own.length * 0.3;
  const same = Object.keys(args).join() === Object.keys(last?.args ?? {}).join();
  if (name !== last?.name) return named || 'expression' in args;
  return same && ('expression' in args || Object.values(args).some(Number.isFinite));
}

/** Scores tools by BM25, a word of the name counting most; 0 has no word in common with the text. */
export function rankTools(tools: readonly ToolSchema[], text: string): number[] {
  const documents = tools.map(({ function: { name, description, parameters } }) => {
    const properties = Object.entries(parameters.properties ?? {});
    const details = properties.map(([key, { description, enum: options }]) => [key, description, options]);
    const said = `${`${name} `.repeat(6)}${`${description} `.repeat(3)}${details}`;
    return readWords(said).map(({ stem }) => stem);
  });
  const average = documents.flat().length / tools.length;
  const norms = documents.map(({ length }) => 0.6 + (0.6 * length) / average);
  const gains = [...topicOf(text)].map((term) => {
    const counts = documents.map((document) => document.filter((stem) => stem === term).length / 2);
    const rarity = Math.log((tools.length + 1) / (counts.filter((count) => count > 0).length + 0.5));
    return counts.map((count, index) => (rarity * 2.2 * count) / (count + (norms[index] ?? 1)));
  });
  return tools.map((_, index) => gains.reduce((sum, gain) => sum + (gain[index] ?? 0), 0));
}
