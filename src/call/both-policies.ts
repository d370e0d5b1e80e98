import type { PolicyDecision, ToolPolicy } from '../contract/call.js';

/** Two policies as one: a no of either is a no, what either asks about is asked about. */
export function bothPolicies(
  one: ToolPolicy | undefined,
  other: ToolPolicy | undefined,
): ToolPolicy | undefined {
  if (one === undefined || other === undefined || one === other) return one ?? other;
  return async (request) => {
    const first = await one(request);
    if (!isYes(first) && !asks(first)) return first;
    const second = await other(request);
    return isYes(second) ? first : asks(first) && asks(second) ? first : second;
  };
}

function isYes(word: PolicyDecision): boolean {
  return word === true || (isWord(word) && !('ask' in word) && word.allow === true);
}

function asks(word: PolicyDecision): boolean {
  return isWord(word) && 'ask' in word && word.ask === true;
}

/** What policies of plain JavaScript give may be anything. */
function isWord(word: PolicyDecision): word is Exclude<PolicyDecision, boolean> {
  return typeof word === 'object' && word !== null;
}
