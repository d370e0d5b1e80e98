import { canonicalJson } from '../../../core/kernel/json.js';

/** A violation of the contract, as a sentence without a full stop. */
export class BrokenRule extends Error {}

/** Throws if a condition is not met. */
export function expectThat(isRight: boolean, problem: string): void {
  if (!isRight) throw new BrokenRule(problem);
}

/** Throws if a value differs from the expected one, compared as JSON. */
export function expectSame(what: string, given: unknown, wanted: unknown): void {
  if (canonicalJson(given) !== canonicalJson(wanted))
    throw new BrokenRule(`${what} is ${shown(given)}, but should be ${shown(wanted)}`);
}

const LONGEST = 300;

function shown(value: unknown): string {
  const text = value === undefined ? 'absent' : (JSON.stringify(value) ?? String(value));
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}
