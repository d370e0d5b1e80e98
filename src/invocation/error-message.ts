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
        thrown.message || ('name' in thrown && String(thrown.name)) || 'the tool failed without a message'
      );
    }
    return textOf(thrown) || 'the tool failed without a message';
  } catch {
    return 'the tool failed with an error that cannot be read';
  }
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
