import type { SearchedTool } from './terms.js';

/**
 * Turns texts into vectors, so that tools are found by what they mean too; for example with `embedMany` of the AI SDK
 * or an embedding endpoint. Texts that mean the same must point the same way; lengths do not matter.
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
  /** One vector for each text, in their order; `kind` says whether they are tools or what somebody asked. */
  embed(
    texts: readonly string[],
    about: { readonly kind: 'tool' | 'query'; readonly signal?: AbortSignal },
  ): Promise<readonly (readonly number[])[]>;
}

/** What is asked of an embedder. */
interface EmbeddedQuery {
  readonly query: string;
  readonly tools: readonly SearchedTool[];
  readonly limit: number;
  readonly signal?: AbortSignal;
}

/** What vectors are known, by the texts that they stand for: no tool is asked for twice. */
export class EmbeddedTools {
  readonly #embedder: ToolEmbedder;
  readonly #vectors = new Map<string, Float32Array>();

  constructor(embedder: ToolEmbedder) {
    this.#embedder = embedder;
  }

  /** Names of the tools nearest to a query, the nearest one first. Rejects where the embedder does. */
  async nearest({ query, tools, limit, signal }: EmbeddedQuery): Promise<readonly string[]> {
    const texts = tools.map(textOf);
    const missing = [...new Set(texts)].filter((text) => !this.#vectors.has(text));
    const [asked] = await Promise.all([
      this.#embed([query], { kind: 'query', signal }),
      missing.length === 0 ? [] : this.#embed(missing, { kind: 'tool', signal }),
    ]).then(([query, made]) => {
      made.forEach((vector, index) => {
        this.#vectors.set(missing[index] as string, vector);
      });
      return query;
    });
    const near = tools.map(({ name }, index) => {
      const vector = this.#vectors.get(texts[index] as string);
      return { name, nearness: vector && asked ? product(vector, asked) : 0 };
    });
    near.sort((one, other) => other.nearness - one.nearness || (one.name < other.name ? -1 : 1));
    return near.slice(0, limit).map(({ name }) => name);
  }

  async #embed(
    texts: readonly string[],
    about: Parameters<ToolEmbedder['embed']>[1],
  ): Promise<readonly Float32Array[]> {
    const vectors = await this.#embedder.embed(texts, about);
    if (vectors.length === texts.length) return vectors.map(unit);
    throw new Error(`the embedder gave ${vectors.length} vectors for ${texts.length} texts`);
  }
}

function textOf({ name, description = '', namespace }: SearchedTool): string {
  return [namespace, name, description].filter(Boolean).join('\n');
}

function unit(vector: readonly number[]): Float32Array {
  const length = Math.hypot(...vector) || 1;
  return Float32Array.from(vector, (part) => part / length);
}

function product(one: Float32Array, other: Float32Array): number {
  let sum = 0;
  for (let index = 0; index < one.length; index += 1) sum += (one[index] ?? 0) * (other[index] ?? 0);
  return sum;
}

/** How much the first places count before the later ones. */
const SMOOTHING = 20;

/** One ranking out of two: by the places that tools have in each of them. */
export function mergeRankings(rankings: readonly (readonly string[])[], limit: number): readonly string[] {
  const scores = new Map<string, number>();
  for (const ranking of rankings)
    ranking.forEach((name, place) => {
      scores.set(name, (scores.get(name) ?? 0) + 1 / (SMOOTHING + place));
    });
  return Array.from(scores)
    .sort(([one, score], [other, otherScore]) => otherScore - score || (one < other ? -1 : 1))
    .slice(0, limit)
    .map(([name]) => name);
}
