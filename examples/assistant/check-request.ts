import { UserFault } from './user-fault.js';

/** More than a person types, and less than fills a model's context window. */
const MAX_CHARACTERS = 100_000;

/** Returns the request. Throws a {@link UserFault} if it is empty, too long or not text. */
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
