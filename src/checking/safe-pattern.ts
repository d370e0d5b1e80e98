import { loadRedosDetector } from './load-redos-detector.cjs';

/** Longer ones are no patterns that somebody reads. */
const MOST_CHARACTERS = 1_000;
/** Beyond that a pattern counts as unsafe; it keeps the look at it short. */
const MOST_STEPS = 400;
/** How many ways there may be to match the same text. */
const MOST_WAYS = 20;
const MOST_REMEMBERED = 1_000;

const known = new Map<string, boolean>();

/**
 * Whether a pattern takes time in proportion to a text, whatever the text is: nobody can make it try ever more
 * ways to match. Where it cannot be told, it does not. Counted in steps, so that it does not depend on the machine.
 */
export function isSafePattern(pattern: string): boolean {
  // Without repetition there is only one way.
  if (!/[*+{]/.test(pattern)) return true;
  if (pattern.length > MOST_CHARACTERS) return false;
  const before = known.get(pattern);
  if (before !== undefined) return before;
  const isSafe = look(pattern);
  if (known.size < MOST_REMEMBERED) known.set(pattern, isSafe);
  return isSafe;
}

function look(pattern: string): boolean {
  const detector = loadRedosDetector();
  try {
    return detector.isSafePattern(pattern, { unicode: true, maxSteps: MOST_STEPS, maxScore: MOST_WAYS }).safe;
  } catch {
    return false;
  }
}
