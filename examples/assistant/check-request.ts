import { UserFault } from './user-fault.js';

/** Far more than a person types, and less than would fill a model's window. */
const MAX_CHARACTERS = 100_000;

/** The request, if it is one. Throws a {@link UserFault} where it is empty, too long or no text. */
export function checkRequest(request: string): string {
  const text = request.trim();
  if (text === '') throw new UserFault('the request is empty', { exitCode: 2 });
  if (text.length > MAX_CHARACTERS) {
    throw new UserFault(`the request has ${text.length} characters; at most ${MAX_CHARACTERS} are read`, {
      exitCode: 2,
    });
  }
  if (text.includes('\0')) throw new UserFault('the request is not text', { exitCode: 2 });
  return text;
}
