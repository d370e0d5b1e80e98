import { setOwn } from './set-own.js';

/**
 * A copy of what was sent, which stays as it is whatever is done to the original. What is nested too deep to be
 * copied is given as it is.
 */
export function copyOfJson(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  try {
    return copy(value);
  } catch {
    return value;
  }
}

function copy(value: object): object {
  const copied = (Array.isArray(value) ? [...value] : { ...value }) as Record<string, unknown>;
  for (const key in copied) {
    const part = copied[key];
    if (typeof part === 'object' && part !== null) setOwn(copied, key, copy(part));
  }
  return copied;
}
