import { canonicalJson, isRecord } from '../../../core/kernel/json.js';

/** A violation of the contract, as a sentence without a full stop. */
export class BrokenRule extends Error {}

/** Throws if a condition is not met. */
export function expectThat(isRight: boolean, problem: string): void {
  if (!isRight) throw new BrokenRule(problem);
}

/** Throws if a value differs from the expected one, compared as JSON. */
export function expectSame(what: string, given: unknown, wanted: unknown): void {
  if (canonicalJson(given) !== canonicalJson(wanted))
    throw new BrokenRule(`${what} is ${shown(given)}, and should be ${shown(wanted)}`);
}

/** The error of a request; throws if it is answered. */
export async function errorOf(reply: Promise<unknown>, problem: string): Promise<unknown> {
  try {
    await reply;
  } catch (error) {
    if (error instanceof BrokenRule) throw error;
    return error;
  }
  throw new BrokenRule(problem);
}

const LONGEST = 300;

function shown(value: unknown): string {
  const text = value === undefined ? 'absent' : (JSON.stringify(value) ?? String(value));
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}

/** The facts about a failed request in its error; errors of the AI SDK have `isRetryable`. */
export function failureIn(error: unknown): {
  readonly [Fact in 'status' | 'retryable' | 'retryAfterMs']: unknown;
} {
  const { status, retryable, isRetryable, retryAfterMs } = isRecord(error) ? error : {};
  return { status, retryable: retryable ?? isRetryable, retryAfterMs };
}
