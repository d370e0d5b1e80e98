import type { Logform } from 'winston';

// winston keeps what a caller gave beside the message under this symbol (package triple-beam).
const GIVEN = Symbol.for('splat');

/** One entry as the caller wrote it: plain data, before any layout. */
export interface LogEntry {
  readonly level: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/**
 * Reads an entry back from winston's own record, which mixes message and fields: a field `message` is
 * appended to the message there, and fields beside a message with `%s` or `%d` in it are left out.
 */
export function readLogEntry(info: Logform.TransformableInfo): LogEntry {
  const { level, message, ...merged } = info;
  const given = givenFields(info);
  const appended = 'message' in given && given.message ? ` ${given.message}` : '';
  const text = String(message);
  return {
    level,
    message: appended !== '' && text.endsWith(appended) ? text.slice(0, -appended.length) : text,
    fields: given instanceof Error ? { ...withoutErrorParts(merged), error: given } : { ...merged, ...given },
  };
}

function givenFields(info: Logform.TransformableInfo): Record<string, unknown> | Error {
  const given: unknown = info[GIVEN];
  const first: unknown = Array.isArray(given) ? given[0] : undefined;
  if (first instanceof Error) return first as Error & Record<string, unknown>;
  return typeof first === 'object' && first !== null ? { ...first } : {};
}

function withoutErrorParts({ stack, cause, ...rest }: Record<string, unknown>): Record<string, unknown> {
  return rest;
}
