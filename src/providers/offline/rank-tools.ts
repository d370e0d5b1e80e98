import type { ToolSchema } from '../../contract/tool-schema.js';
import { readWords, topicOf } from './words.js';

/** Indexes tools; the function it gives scores them in order, by BM25: 0 has no word in common with the text. */
export function rankTools(tools: readonly ToolSchema[]): (text: string) => number[] {
  const documents = tools.map(countWords);
  const lengths = documents.map((counts) => [...counts.values()].reduce((sum, count) => sum + count, 0));
  const average = lengths.reduce((sum, length) => sum + length, 0) / tools.length;
  const gain = (term: string, index: number) => {
    const count = documents[index]?.get(term) ?? 0;
    const holders = documents.filter((counts) => counts.has(term)).length;
    const rarity = Math.log(1 + (tools.length - holders + 0.5) / (holders + 0.5));
    return (rarity * 2.2 * count) / (count + 1.2 * (0.5 + (0.5 * (lengths[index] ?? 0)) / average));
  };
  return (text) =>
    tools.map((_, index) => [...topicOf(text)].reduce((sum, term) => sum + gain(term, index), 0));
}

// A word of the name says most, one in a parameter's details least; JSON Schema's own words say nothing.
function countWords({ function: { name, description, parameters } }: ToolSchema): Map<string, number> {
  const details = JSON.stringify(parameters.properties ?? {}).replace(
    /"(?:type|description|items)":|"string"/g,
    '',
  );
  const counts = new Map<string, number>();
  for (const [text, weight] of [[name, 3] as const, [description, 1.5] as const, [details, 0.4] as const]) {
    for (const { stem, common } of readWords(text))
      if (!common) counts.set(stem, (counts.get(stem) ?? 0) + weight);
  }
  return counts;
}
