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
  const rarities = [...topicOf(text)].map((term) => {
    const holders = documents.filter((document) => document.includes(term)).length;
    return { term, rarity: Math.log(1 + (tools.length - holders + 0.5) / (holders + 0.5)) };
  });
  return documents.map((document) =>
    rarities.reduce((sum, { term, rarity }) => {
      const count = document.filter((stem) => stem === term).length / 2;
      return sum + (rarity * 2.2 * count) / (count + 0.6 + (0.6 * document.length) / average);
    }, 0),
  );
}
