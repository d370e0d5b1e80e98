import type { JsonSchema } from '../contract/json-schema.js';
import { KEYWORDS } from './keywords.js';

const STRICTEST = { larger: Math.max, smaller: Math.min };

/** Both schemas at once: the stricter of two bounds; two patterns (or the like) that must both hold in `allOf`. */
export function mergeKeywords(first: JsonSchema, second: JsonSchema): JsonSchema {
  const merged: Record<string, unknown> = { ...first };
  const both: JsonSchema[] = [];
  for (const [keyword, value] of Object.entries(second)) {
    const before = merged[keyword];
    const stricter = KEYWORDS.get(keyword)?.stricter;
    if (before === undefined) merged[keyword] = value;
    else if (stricter) merged[keyword] = STRICTEST[stricter](before as number, value as number);
    else if (keyword === 'allOf') both.push(...(value as readonly JsonSchema[]));
    else if (JSON.stringify(before) !== JSON.stringify(value)) both.push({ [keyword]: value });
  }
  if (both.length === 0) return merged;
  return { ...merged, allOf: [...((merged.allOf as readonly JsonSchema[] | undefined) ?? []), ...both] };
}
