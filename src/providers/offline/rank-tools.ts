import type { ToolSchema } from '../../contract/tool-schema.js';
import { readWords, topicOf } from './words.js';

/** Indexes tools; the function it gives scores them in order, by BM25, against a text: 0 is nothing in common. */
export function rankTools(tools: readonly ToolSchema[]): (text: string) => number[] {
  const documents = tools.map(countWords);
  const lengths = documents.map((counts) => [...counts.values()].reduce((sum, count) => sum + count, 0));
  const average = lengths.reduce((sum, length) => sum + length, 0) / tools.length;
  return (text) => {
    const terms = [...topicOf(text)].map((term) => {
      const holders = documents.filter((counts) => counts.has(term)).length;
      return [term, Math.log(1 + (tools.length - holders + 0.5) / (holders + 0.5))] as const;
    });
    return documents.map((counts, index) => {
      const norm = 1.2 * (0.5 + (0.5 * (lengths[index] ?? 0)) / average);
      const gain = (count: number) => (2.2 * count) / (count + norm);
      return terms.reduce((sum, [term, rarity]) => sum + rarity * gain(counts.get(term) ?? 0), 0);
    });
  };
}

// A word of the name says most, one in a parameter's details least; JSON Schema's own words say nothing.
function countWords({ function: { name, description, parameters } }: ToolSchema): Map<string, number> {
  const details = JSON.stringify(parameters.properties ?? {}).replace(
    /"(?:type|description|items)":|"string"/g,
    '',
  );
  const weighted = [[name, 3] as const, [description, 1.5] as const, [details, 0.4] as const];
  const words = weighted.flatMap(([text, weight]) => readWords(text).map((word) => ({ ...word, weight })));
  const counts = new Map<string, number>();
  for (const { stem, common, weight } of words)
    if (!common) counts.set(stem, (counts.get(stem) ?? 0) + weight);
  return counts;
}
