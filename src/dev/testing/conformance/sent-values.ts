import { isRecord } from '../../../core/kernel/json.js';

/** The position of a text in what a model received, counted in its keys and strings; -1 if it is absent. */
export function indexOfText(sent: unknown, text: string): number {
  return textsIn(sent).findIndex((candidate) => candidate.includes(text));
}

/**
 * The smallest part of what a model received that contains a text and one of the others, as text; `undefined` if no
 * part contains them.
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

/** The keys that lead to the first value that fits; `undefined` if no value fits. */
export function pathIn(sent: unknown, fits: (value: unknown) => boolean): readonly string[] | undefined {
  if (fits(sent)) return [];
  if (typeof sent !== 'object' || sent === null) return undefined;
  for (const [key, inner] of Object.entries(sent)) {
    const path = pathIn(inner, fits);
    if (path !== undefined) return [key, ...path];
  }
  return undefined;
}

export function valueAt(sent: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (value, key) => (value as Readonly<Record<string, unknown>> | undefined)?.[key],
    sent,
  );
}

function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return value.flatMap(textsIn);
  return isRecord(value) ? Object.entries(value).flatMap(([key, inner]) => [key, ...textsIn(inner)]) : [];
}
