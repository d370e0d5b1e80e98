import type { LogFields, Logger } from 'toolwright';

/** Writes warnings and errors, one per line; the fleet adds the name of the process. */
export const logger: Logger = {
  debug() {},
  info() {},
  warn: (message, fields) => console.error(lineOf(message, fields)),
  error: (message, fields) => console.error(lineOf(message, fields)),
};

function lineOf(message: string, { error }: LogFields = {}): string {
  return error instanceof Error ? `${message}: ${error.message}` : message;
}
