import type { ToolSchema } from '../../contract/tool-schema.js';
import { readWords, topicOf } from './words.js';

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
