import type { LogFields, Logger } from 'toolwright';

/** Warnings and errors, a line each; the fleet puts the name of the process before it. */
export const logger: Logger = {
  debug() {},
  info() {},
  warn: (message, fields) => console.error(lineOf(message, fields)),
  error: (message, fields) => console.error(lineOf(message, fields)),
};

function lineOf(message: string, { error }: LogFields = {}): string {
  return error instanceof Error ? `${message}: ${error.message}` : message;
}
