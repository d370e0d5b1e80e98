import type { ToolCall } from '../contract/llm-provider.js';
import type { Message } from '../contract/message.js';

/** Gives each call of a reply an id of its own. */
export type CallNumberer = (calls: readonly ToolCall[]) => readonly ToolCall[];

/**
 * Keeps the provider's ids; a call without one, or with one that stands twice in the same reply, gets
 * `call_1`, `call_2`, …, continuing from the history.
 */
export function createCallNumberer(history: readonly Message[]): CallNumberer {
  let last: number | undefined;
  return (calls) => {
    const seen = new Set<string>();
    return calls.map((call) => {
      if (isUsable(call.id) && !seen.has(call.id)) {
        seen.add(call.id);
        return call;
      }
      last = (last ?? highestNumber(history)) + 1;
      while (calls.some(({ id }) => id === `call_${last}`)) last += 1;
      return { ...call, id: `call_${last}` };
    });
  };
}

function isUsable(id: unknown): id is string {
  return typeof id === 'string' && id !== '';
}

function highestNumber(history: readonly Message[]): number {
  const ids = history.flatMap((message) =>
    message.role === 'assistant' ? (message.tool_calls ?? []).map(({ id }) => id) : [],
  );
  // Nine digits: longer ones are a provider's own ids, and past 2^53 they could no longer be counted on.
  return ids.reduce((highest, id) => Math.max(highest, Number(/^call_(\d{1,9})$/.exec(id)?.[1] ?? 0)), 0);
}
