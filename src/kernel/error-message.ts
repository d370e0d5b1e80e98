/** The message of anything that was thrown, also of what is no error or throws when it is looked at. */
export function errorMessage(thrown: unknown): string {
  try {
    if (
      typeof thrown === 'object' &&
      thrown !== null &&
      'message' in thrown &&
      typeof thrown.message === 'string'
    ) {
      return (
        thrown.message ||
        messagesIn(thrown) ||
        ('name' in thrown && String(thrown.name)) ||
        'the tool failed without a message'
      );
    }
    return textOf(thrown) || 'the tool failed without a message';
  } catch {
    return 'the tool failed with an error that cannot be read';
  }
}

const MOST_ERRORS = 5;

/** Those of an AggregateError, which has often none of its own: of a connection that failed on every address. */
function messagesIn(thrown: object): string {
  const errors: unknown = 'errors' in thrown ? thrown.errors : undefined;
  if (!Array.isArray(errors)) return '';
  const messages = errors.slice(0, MOST_ERRORS).map((item) => (item instanceof Error ? item.message : ''));
  return [...new Set(messages.filter((message) => message !== ''))].join('; ');
}

function textOf(thrown: unknown): string {
  if (thrown === undefined || thrown === null) return '';
  const text = String(thrown);
  // Neither the name of its type nor an empty object says what is wrong.
  const isTelling = !Array.isArray(thrown) && !/^\[object \w+\]$|^$/.test(text);
  if (typeof thrown !== 'object' || isTelling) return text;
  const json = JSON.stringify(thrown);
  return json === '{}' ? '' : json;
}

/** What is thrown of a result that cannot be looked at: its getters, its `toJSON` and its traps are the tool's code. */
export function unreadableResult(cause: unknown): TypeError {
  return new TypeError(`The tool ran, but its result cannot be written as JSON: ${errorMessage(cause)}`, {
    cause,
  });
}
