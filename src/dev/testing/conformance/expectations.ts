import { canonicalJson, isRecord } from '../../../core/kernel/json.js';

/** What a provider does wrong, as a sentence without its full stop. */
export class BrokenRule extends Error {}

/** Throws where something is not as it has to be. */
export function expectThat(isRight: boolean, problem: string): void {
  if (!isRight) throw new BrokenRule(problem);
}

/** Throws where a value is not the wanted one, as JSON. */
export function expectSame(what: string, given: unknown, wanted: unknown): void {
  if (canonicalJson(given) !== canonicalJson(wanted))
    throw new BrokenRule(`${what} is ${shown(given)}, and should be ${shown(wanted)}`);
}

/** What a request is rejected with, where it must not be answered. */
export async function errorOf(reply: Promise<unknown>, problem: string): Promise<unknown> {
  try {
    await reply;
  } catch (error) {
    return error;
  }
  throw new BrokenRule(problem);
}

const LONGEST = 300;

function shown(value: unknown): string {
  const text = value === undefined ? 'absent' : (JSON.stringify(value) ?? String(value));
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}

/** What an error says of a failed request; the errors of the AI SDK say `isRetryable`. */
export function failureIn(error: unknown): {
  readonly [Fact in 'status' | 'retryable' | 'retryAfterMs']: unknown;
} {
  const { status, retryable, isRetryable, retryAfterMs } = isRecord(error) ? error : {};
  return { status, retryable: retryable ?? isRetryable, retryAfterMs };
}
