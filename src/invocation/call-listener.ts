/**
 * Calls a listener that must not harm the call it hears of: neither by throwing nor, where it is an async
 * function, by a rejection that nobody handles and that would end the process.
 */
export function callListener(listener: () => unknown, onError: (error: unknown) => void): void {
  try {
    const returned = listener();
    if (returned instanceof Promise) returned.catch(onError);
  } catch (error) {
    onError(error);
  }
}
