import type { SearchedTool } from './tool-index.js';

/**
 * Turns texts into vectors, so that tools can be found by meaning; for example with `embedMany` of the AI SDK or an
 * embedding endpoint. Texts with the same meaning must point in the same direction; lengths do not matter.
 *
 * @example
 * ```ts
 * import { embedMany } from 'ai';
 *
 * const embedder: ToolEmbedder = {
 *   async embed(texts) {
 *     const { embeddings } = await embedMany({ model: 'openai/text-embedding-3-small', values: [...texts] });
 *     return embeddings;
 *   },
 * };
 * ```
 */
export interface ToolEmbedder {
  /** One vector for each text, in order; `kind` states whether the texts are tools or a query. */
  embed(
    texts: readonly string[],
    about: { readonly kind: 'tool' | 'query'; readonly signal?: AbortSignal },
  ): Promise<readonly (readonly number[])[]>;
}

/** Finds tools by the vectors of an embedder. Vectors are cached by text. */
export class EmbeddedTools {
  readonly #embedder: ToolEmbedder;
  readonly #vectors = new Map<string, Float32Array>();

  constructor(embedder: ToolEmbedder) {
    this.#embedder = embedder;
  }

  /** Names of the tools nearest to a query, nearest first. Rejects if the embedder does. */
  async nearest(search: {
    readonly query: string;
    readonly tools: readonly SearchedTool[];
    readonly limit: number;
    readonly signal?: AbortSignal;
  }): Promise<readonly string[]> {
    const { query, tools, limit, signal } = search;
    const texts = tools.map(({ name, description, namespace }) =>
      [namespace, name, description].filter(Boolean).join('\n'),
    );
    const missing = [...new Set(texts)].filter((text) => !this.#vectors.has(text));
    const [[asked], made] = await Promise.all([
      this.#embed([query], { kind: 'query', signal }),
      missing.length === 0 ? [] : this.#embed(missing, { kind: 'tool', signal }),
    ]);
    for (const [index, text] of missing.entries()) this.#vectors.set(text, made[index] as Float32Array);
    const near = tools.map(({ name }, index) => {
      const vector = this.#vectors.get(texts[index] as string);
      const nearness = vector?.reduce((sum, part, place) => sum + part * (asked?.[place] ?? 0), 0);
      return { name, nearness: nearness ?? 0 };
    });
    near.sort((one, other) => other.nearness - one.nearness || (one.name < other.name ? -1 : 1));
    return near.slice(0, limit).map(({ name }) => name);
  }

  /** Vectors of length 1. */
  async #embed(
    texts: readonly string[],
    about: Parameters<ToolEmbedder['embed']>[1],
  ): Promise<readonly Float32Array[]> {
    const vectors = await this.#embedder.embed(texts, about);
    if (vectors.length !== texts.length)
      throw new Error(`the embedder returned ${vectors.length} vectors for ${texts.length} texts`);
    return vectors.map((vector) => {
      const length = Math.hypot(...vector) || 1;
      return Float32Array.from(vector, (part) => part / length);
    });
  }
}

/** How strongly the first ranks count compared with the later ones. */
const SMOOTHING = 20;

/** Merges several rankings by the ranks of the tools in each of them. */
export function mergeRankings(rankings: readonly (readonly string[])[], limit: number): readonly string[] {
  const scores = new Map<string, number>();
  for (const ranking of rankings)
    for (const [place, name] of ranking.entries())
      scores.set(name, (scores.get(name) ?? 0) + 1 / (SMOOTHING + place));
  return Array.from(scores)
    .sort(([one, score], [other, otherScore]) => otherScore - score || (one < other ? -1 : 1))
    .slice(0, limit)
    .map(([name]) => name);
}
