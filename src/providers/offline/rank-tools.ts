import type { ToolSchema } from '../../contract/tool-schema.js';
import { readWords, topicOf } from './words.js';

/** Scores tools against a text, in order, by BM25; 0 has no word in common with the text. */
export function rankTools(tools: readonly ToolSchema[], text: string): number[] {
  const documents = tools.map(({ function: { name, description, parameters } }) => {
    const details = JSON.stringify(parameters.properties ?? {}).replace(
      /"(?:type|description|items)":|"string"/g,
      '',
    );
    // A word of the name says most, one in a parameter's details least.
    return readWords(`${`${name} `.repeat(6)}${`${description} `.repeat(3)}${details}`).map(
      ({ stem }) => stem,
    );
  });
  const average = documents.flat().length / tools.length;
  const scores = tools.map(() => 0);
  for (const term of topicOf(text)) {
    const counts = documents.map((stems) => stems.filter((stem) => stem === term).length / 2);
    const holders = counts.filter((count) => count > 0).length;
    const rarity = Math.log(1 + (tools.length - holders + 0.5) / (holders + 0.5));
    for (const [index, count] of counts.entries()) {
      const length = (documents[index]?.length ?? 0) / average;
      scores[index] = (scores[index] ?? 0) + (rarity * 2.2 * count) / (count + 0.6 + 0.6 * length);
    }
  }
  return scores;
}
