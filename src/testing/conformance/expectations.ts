import { canonicalJson, isRecord } from '../../kernel/json.js';

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

/** Where a text stands in what a model was sent, counted in the keys and texts of it; -1 where it does not. */
export function placeIn(sent: unknown, text: string): number {
  return textsIn(sent).findIndex((candidate) => candidate.includes(text));
}

/**
 * The smallest part of what a model was sent that has a text and one of some others, as text; `undefined` where there
 * is none.
 */
export function smallestWith(sent: unknown, text: string, others: readonly string[]): string | undefined {
  const texts = textsIn(sent);
  const has = (wanted: string): boolean => texts.some((candidate) => candidate.includes(wanted));
  if (typeof sent !== 'object' || sent === null || !has(text) || !others.some(has)) return undefined;
  for (const inner of Object.values(sent)) {
    const found = smallestWith(inner, text, others);
    if (found !== undefined) return found;
  }
  return JSON.stringify(sent);
}

function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return value.flatMap(textsIn);
  return isRecord(value) ? Object.entries(value).flatMap(([key, inner]) => [key, ...textsIn(inner)]) : [];
}

/** What an error says of a failed request; the errors of the AI SDK say `isRetryable`. */
export function failureIn(error: unknown): {
  readonly [Fact in 'status' | 'retryable' | 'retryAfterMs']: unknown;
} {
  const { status, retryable, isRetryable, retryAfterMs } = isRecord(error) ? error : {};
  return { status, retryable: retryable ?? isRetryable, retryAfterMs };
}
