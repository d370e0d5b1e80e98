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
    return thrown === undefined || thrown === null || thrown === ''
      ? 'the tool failed without a message'
      : String(thrown);
  } catch {
    return 'the tool failed with an error that cannot be read';
  }
}
