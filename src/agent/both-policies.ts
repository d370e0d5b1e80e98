import type { PolicyDecision, ToolPolicy } from '../contract/call.js';

/** Two policies as one: a no of either is a no, what either asks about is asked about. */
export function bothPolicies(
  one: ToolPolicy | undefined,
  other: ToolPolicy | undefined,
): ToolPolicy | undefined {
  if (one === undefined || other === undefined || one === other) return one ?? other;
  return async (request) => {
    const words = [await one(request), await other(request)];
    return words.find((word) => !isYes(word) && !asks(word)) ?? words.find(asks) ?? words.every(isYes);
  };
}

function isYes(word: PolicyDecision): boolean {
  return (
    word === true || (typeof word === 'object' && word !== null && 'allow' in word && word.allow === true)
  );
}

function asks(word: PolicyDecision): boolean {
  return typeof word === 'object' && word !== null && 'ask' in word && word.ask === true;
}
