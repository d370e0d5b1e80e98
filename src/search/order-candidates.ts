import { termsOf } from './terms.js';

/** A tool that may be what was asked for. */
export interface Candidate {
  readonly name: string;
  readonly terms: readonly string[];
  /** How much each of its words says of it. */
  readonly impacts: readonly number[];
}

/** The words of a query that are known: what each of their meanings weighs, and the most that one can be worth. */
export type QueryTerms = readonly {
  readonly term: string;
  readonly meanings: ReadonlyMap<string, number>;
  readonly worth: number;
}[];

/** How much more a tool counts all of whose name was asked for, or that has all words of the query. */
const BONUS = { name: 0.8, coverage: 0.6 };
/** How much less a word counts for each tool that was chosen for it: queries may need several tools. */
const ANSWERED = { fade: 0.2 };

interface Judged {
  readonly name: string;
  readonly factor: number;
  /** What each word of the query adds, by its index. */
  readonly parts: readonly (readonly [index: number, score: number])[];
}

/** Chooses one tool after the other, each for what the tools before it leave open of the query. */
export function orderCandidates(
  candidates: readonly Candidate[],
  query: QueryTerms,
  limit: number,
): readonly string[] {
  const left = judge(candidates, query);
  const open = query.map(() => 1);
  const chosen: string[] = [];
  while (chosen.length < limit && left.length > 0) {
    let best = 0;
    let bestScore = -1;
    left.forEach(({ parts, factor }, index) => {
      const score = factor * parts.reduce((sum, [term, part]) => sum + part * (open[term] ?? 1), 0);
      // Sums of the same parts in another order differ by less than this.
      if (score > bestScore * (1 + 1e-12)) {
        best = index;
        bestScore = score;
      }
    });
    const [next] = left.splice(best, 1);
    if (next === undefined) break;
    chosen.push(next.name);
    for (const [term] of next.parts) open[term] = (open[term] ?? 1) * (1 - ANSWERED.fade);
  }
  return chosen;
}

function judge(candidates: readonly Candidate[], query: QueryTerms): Judged[] {
  const asked = new Set(query.map(({ term }) => term));
  const whole = query.reduce((sum, { worth }) => sum + worth, 0);
  const meaningOf = new Map<string, (readonly [number, number])[]>();
  query.forEach(({ meanings }, index) => {
    for (const [term, weight] of meanings) {
      const known = meaningOf.get(term);
      if (known === undefined) meaningOf.set(term, [[index, weight]]);
      else known.push([index, weight]);
    }
  });
  return candidates.map(({ name, terms, impacts }) => {
    const parts = new Map<number, number>();
    terms.forEach((term, place) => {
      for (const [index, weight] of meaningOf.get(term) ?? [])
        parts.set(index, (parts.get(index) ?? 0) + weight * (impacts[place] ?? 0));
    });
    const sorted = [...parts].sort(([one], [other]) => one - other);
    const covered = sorted.reduce((sum, [index]) => sum + (query[index]?.worth ?? 0), 0);
    const nameTerms = new Set(termsOf(name));
    let named = 0;
    for (const term of nameTerms) if (asked.has(term)) named += 1;
    const share = nameTerms.size === 0 ? 0 : named / nameTerms.size;
    const factor = (1 + BONUS.name * share) * (1 + BONUS.coverage * (whole === 0 ? 0 : covered / whole));
    return { name, factor, parts: sorted };
  });
}
