export { createLogger, type LoggerOptions, type LogLevel } from './create-logger.js';
