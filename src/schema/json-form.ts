/**
 * A default as JSON carries it: dates and URLs as text, bytes in base64. `undefined` where JSON has nothing
 * for the value, which then is no default that a model could be shown.
 */
export function jsonForm(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (value instanceof Date && Number.isNaN(value.getTime())) return undefined;
  if (value instanceof Set) return [...value].map(jsonForm);
  try {
    const text = JSON.stringify(value, refuseNonNumbers);
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** JSON would write `null` for them: `limit = Infinity` does not mean that. */
function refuseNonNumbers(_key: string, value: unknown): unknown {
  if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError('JSON has no such number');
  return value;
}
