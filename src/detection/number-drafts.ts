import type { ToolCall } from '../contract/llm-provider.js';
import type { DraftCall } from './draft-call.js';

/**
 * Gives each call an id: the model's own if it is new, otherwise `call_1`, `call_2`, …,
 * continuing after the highest number among the ids that are taken.
 */
export function numberDrafts(
  drafts: readonly DraftCall[],
  taken: Iterable<string> = [],
): readonly ToolCall[] {
  const used = new Set(taken);
  let last = highestNumber(used);
  const kept = drafts.map(({ id }) => {
    if (id === undefined || used.has(id)) return undefined;
    used.add(id);
    return id;
  });
  const next = (): string => {
    do last += 1;
    while (used.has(`call_${last}`));
    return `call_${last}`;
  };
  return drafts.map(({ name, arguments: args }, index) => ({
    id: kept[index] ?? next(),
    name,
    arguments: args,
  }));
}

function highestNumber(ids: Iterable<string>): number {
  let highest = 0;
  for (const id of ids) highest = Math.max(highest, Number(/^call_(\d{1,9})$/.exec(id)?.[1] ?? 0));
  return highest;
}
