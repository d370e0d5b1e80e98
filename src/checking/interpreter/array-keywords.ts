import { canonicalJson } from '../../kernel/json.js';
import { countBound, type Judge, type MakeJudge, type Part, type Run, testOf, withTest } from './judge.js';

/** Keywords that say something of lists. */
export const ARRAY_KEYWORDS: Readonly<Record<string, MakeJudge>> = {
  maxItems: countBound('more', 'items', (most) => (items: Items) => items.length <= most),
  minItems: countBound('fewer', 'items', (least) => (items: Items) => items.length >= least),
  additionalItems: (part) => {
    const { items } = part.schema;
    return Array.isArray(items) ? itemsFrom(part, items.length) : undefined;
  },
  prefixItems: (part) => tuple(part),
  items: (part) => {
    if (Array.isArray(part.given)) return tuple(part);
    const { prefixItems } = part.schema;
    // Drafts before have no tuples by that name.
    const isTuple = Array.isArray(prefixItems) && part.knows('prefixItems');
    return isTuple ? itemsFrom(part, prefixItems.length) : eachItem(part);
  },
  contains,
  maxContains: () => undefined,
  minContains: () => undefined,
  unevaluatedItems: (part) => (part.isTracking ? unevaluatedItems(part) : undefined),
  uniqueItems: (part) =>
    part.given === true
      ? (value, run) => {
          const twice = duplicateItems(value as Items);
          if (twice === undefined) return true;
          const { params, message } = twice;
          return run.refuse(value, part, { params, message });
        }
      : undefined,
};

type Items = readonly unknown[];

function tuple(part: Part): Judge {
  const judges = (part.given as readonly unknown[]).map((schema) => part.judgeOf(schema));
  return (value, run, seen) => {
    const items = value as Items;
    let fits = true;
    for (const [index, judge] of judges.entries()) {
      if (index >= items.length) break;
      seen?.addIndex(index);
      if (run.below(index, items[index], judge)) continue;
      if (!run.isTelling) return false;
      fits = false;
    }
    return fits;
  };
}

function eachItem(part: Part): Judge {
  const judge = part.judgeOf(part.given);
  const test = testOf(judge);
  return withTest(
    (value, run, seen) => {
      seen?.addAllIndexes();
      return fitEach(value as Items, run, { judge, from: 0 });
    },
    (value) => {
      const items = value as Items;
      for (let index = 0; index < items.length; index += 1) if (!test(items[index])) return false;
      return true;
    },
  );
}

/** What stands behind a tuple. */
function itemsFrom(part: Part, from: number): Judge {
  const judge = part.judgeOf(part.given);
  const complaint = { params: { limit: from }, message: `must NOT have more than ${from} items` };
  return (value, run, seen) => {
    const items = value as Items;
    seen?.addAllIndexes();
    if (part.given === false) return items.length <= from || run.refuse(value, part, complaint);
    return fitEach(items, run, { judge, from });
  };
}

function fitEach(
  items: Items,
  run: Run,
  { judge, from }: { readonly judge: Judge; readonly from: number },
): boolean {
  let fits = true;
  for (let index = from; index < items.length; index += 1) {
    if (run.below(index, items[index], judge)) continue;
    if (!run.isTelling) return false;
    fits = false;
  }
  return fits;
}

function contains(part: Part): Judge | undefined {
  const least = part.knows('minContains') ? Number(part.schema.minContains ?? 1) : 1;
  const most = part.knows('maxContains') ? (part.schema.maxContains as number | undefined) : undefined;
  const judge = part.judgeOf(part.given);
  const upTo = most === undefined ? '' : ` and no more than ${most}`;
  const complaint = {
    params: most === undefined ? { minContains: least } : { minContains: least, maxContains: most },
    message: `must contain at least ${least}${upTo} valid item(s)`,
  };
  if (least === 0 && most === undefined && !part.isTracking) return undefined;
  return (value, run, seen) => {
    const items = value as Items;
    let count = 0;
    let index = 0;
    for (; index < items.length && (most === undefined || count <= most); index += 1) {
      if (!run.quietly(items[index], judge)) continue;
      count += 1;
      if (part.marksContained) seen?.addIndex(index);
    }
    if (count >= least && (most === undefined || count <= most)) return true;
    // Why each of them is not what was looked for.
    if (run.isTelling && (most === undefined || least <= most))
      for (const [at, item] of items.slice(0, index).entries()) run.below(at, item, judge);
    return run.refuse(value, part, complaint);
  };
}

function unevaluatedItems(part: Part): Judge {
  const judge = part.judgeOf(part.given);
  return (value, run, seen) => {
    const items = value as Items;
    let fits = true;
    for (const [index, item] of items.entries()) {
      if (seen?.hasIndex(index)) continue;
      if (part.given === false) {
        fits = run.refuse(value, part, {
          params: { limit: index },
          message: `must NOT have more than ${index} items`,
        });
        break;
      }
      fits = run.below(index, item, judge) && fits;
    }
    seen?.addAllIndexes();
    return fits;
  };
}

interface DuplicateItems {
  readonly params: { readonly i: number; readonly j: number };
  readonly message: string;
}

/** Told as the validator tells it: the last item that stood there before, and where it did. */
export function duplicateItems(items: readonly unknown[]): DuplicateItems | undefined {
  const places = new Map<string, number>();
  let params: DuplicateItems['params'] | undefined;
  items.forEach((item, again) => {
    const key = canonicalJson(item);
    const first = places.get(key);
    if (first !== undefined) params = { i: again, j: first };
    places.set(key, again);
  });
  if (params === undefined) return undefined;
  const { i, j } = params;
  return { params, message: `must NOT have duplicate items (items ## ${j} and ${i} are identical)` };
}
