import type { ToolSchema } from '../../contract/tool-schema.js';
import { readWords, topicOf } from './words.js';

/** Indexes tools; the function it gives scores them in order, by BM25: 0 has no word in common with the text. */
export function rankTools(tools: readonly ToolSchema[]): (text: string) => number[] {
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
  const gain = (term: string, document: readonly string[]) => {
    const count = document.filter((stem) => stem === term).length / 2;
    const holders = documents.filter((stems) => stems.includes(term)).length;
    const rarity = Math.log(1 + (tools.length - holders + 0.5) / (holders + 0.5));
    return (rarity * 2.2 * count) / (count + 0.6 + (0.6 * document.length) / average);
  };
  return (text) =>
    documents.map((document) => [...topicOf(text)].reduce((sum, term) => sum + gain(term, document), 0));
}
