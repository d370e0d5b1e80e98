import { isObject } from './json.js';

/** The message of any thrown value, including values that are not errors or that throw when they are read. */
export function errorMessage(thrown: unknown): string {
  try {
    if (isObject(thrown) && 'message' in thrown && typeof thrown.message === 'string') {
      return (
        thrown.message ||
        messagesIn(thrown) ||
        ('name' in thrown && String(thrown.name)) ||
        'an error without a message was thrown'
      );
    }
    return textOf(thrown) || 'an error without a message was thrown';
  } catch {
    return 'an error that cannot be read was thrown';
  }
}

const MOST_ERRORS = 5;

/** Messages in an AggregateError, which often has no own message, as when a connection failed on every address. */
function messagesIn(thrown: object): string {
  const errors: unknown = 'errors' in thrown ? thrown.errors : undefined;
  if (!Array.isArray(errors)) return '';
  const messages = errors.slice(0, MOST_ERRORS).map((item) => (item instanceof Error ? item.message : ''));
  return [...new Set(messages.filter((message) => message !== ''))].join('; ');
}

function textOf(thrown: unknown): string {
  if (thrown === undefined || thrown === null) return '';
  const text = String(thrown);
  // A type name or an empty object does not describe the problem.
  const isUseful = !Array.isArray(thrown) && !/^\[object \w+\]$|^$/.test(text);
  if (typeof thrown !== 'object' || isUseful) return text;
  const json = JSON.stringify(thrown);
  return json === '{}' ? '' : json;
}

const MOST_CAUSES = 8;

/**
 * An error and its causes, outermost first; a chain may be circular. By shape and not by `instanceof`, because errors
 * of `fetch` may belong to another realm.
 */
export function causesOf(error: unknown): readonly unknown[] {
  const causes: unknown[] = [];
  for (let cause = error; cause && causes.length < MOST_CAUSES; cause = Object(cause).cause)
    causes.push(cause);
  return causes;
}

/** Whether an error is an `HttpException` of NestJS, by its shape: it may come from another copy of that package. */
export function isHttpError(thrown: unknown): thrown is HttpError {
  return (
    thrown instanceof Error &&
    typeof Reflect.get(thrown, 'getStatus') === 'function' &&
    typeof Reflect.get(thrown, 'getResponse') === 'function'
  );
}

interface HttpError extends Error {
  getStatus(): number;
  getResponse(): string | object;
}

/** The first status of server errors. */
const SERVER_ERROR = 500;

/** Whether a thrown value reports a client error; false if it cannot be read. */
export function isClientError(thrown: unknown): boolean {
  try {
    return isHttpError(thrown) && thrown.getStatus() < SERVER_ERROR;
  } catch {
    return false;
  }
}
/** Explains that a value belongs to the same class in another copy of the package. */
export function ofAnotherCopy(wanted: abstract new (...args: never) => object) {
  return (value: unknown, option: string) => {
    if (!isObject(value) || value instanceof wanted) return [];
    if (value.constructor?.name !== wanted.name) return [];
    const problem = `${option} is a ${wanted.name} of another copy of toolwright`;
    return [{ option, problem, fix: 'a single copy of toolwright: `npm ls toolwright` lists all copies' }];
  };
}
