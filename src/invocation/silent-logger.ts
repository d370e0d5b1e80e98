import type { Logger } from '../contract/logger.js';

const nothing = (): void => {};

/** The logger where none was given. */
export const silentLogger: Logger = {
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
  isLevelEnabled: () => false,
};
