/*
 * Compatible servers leave fields out or send null, so nothing of a reply may be trusted to have the type
 * that the client's declarations give it. These three readers are total: every JSON value is fine.
 */

/** The value if it is an object that is no array, otherwise an empty object. */
export function jsonRecord(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

/** The value if it is an array, otherwise an empty array. */
export function jsonList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The value if it is text, otherwise an empty text. */
export function jsonText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** The object that a text is the JSON of, or `undefined` where it is the JSON of something else or of nothing. */
export function parseJsonRecord(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
