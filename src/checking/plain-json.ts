/** A copy of what JSON shows of a value, big integers as their digits; `undefined` where JSON cannot say it. */
export function plainJson(value: unknown): unknown {
  try {
    const text: string | undefined = JSON.stringify(value, (_key, field: unknown) =>
      typeof field === 'bigint' ? field.toString() : field,
    );
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
