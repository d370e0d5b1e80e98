import { createHmac, randomBytes } from 'node:crypto';
import { type InspectOptions, inspect } from 'node:util';
import { type LogLevel, Logger as NestLogger } from '@nestjs/common';
import type { DescribeError } from '../call/result-text.js';
import type { LogFields, Logger } from '../contract/ports.js';
import { RetryToolCall } from '../contract/tool-result.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { errorMessage, isClientError, isHttpError } from '../kernel/error-message.js';
import { visibleText } from '../kernel/visible-text.js';
import { SHUTDOWN } from './calls.js';
import { logLevels } from './nest-internals.js';
import type { ToolwrightModuleOptions } from './options.js';

/** What the options say of the texts of errors. */
type ErrorOptions = Pick<ToolwrightModuleOptions, 'describeError' | 'exposeErrors'>;

/** What the model is told of something that was thrown; never throws itself. */
export function createErrorDescriber({ describeError, exposeErrors }: ErrorOptions): DescribeError {
  if (exposeErrors === true && describeError === undefined) return exceptionText;
  const describe = describeError ?? ((thrown, tool) => publicText(thrown) ?? internalError(thrown, tool));
  return (thrown, tool) => {
    try {
      return String(describe(thrown, tool));
    } catch {
      return internalError(thrown, tool);
    }
  };
}

/** The text of an error that is meant to be read: of an `HttpException` below 500 and of the framework's own. */
export function publicText(thrown: unknown): string | undefined {
  return isPublic(thrown) ? exceptionText(thrown) : undefined;
}

/** Its message, or what an `HttpException` says beside it: the list that a pipe throws, or a body of the author's own. */
function exceptionText(exception: unknown): string {
  const response: unknown = isHttpError(exception) ? exception.getResponse() : undefined;
  if (typeof response !== 'object' || response === null) return errorMessage(exception);
  const message: unknown = Reflect.get(response, 'message');
  if (Array.isArray(message)) return message.join('; ');
  return typeof message === 'string' ? errorMessage(exception) : JSON.stringify(response);
}

/** An error of the framework that only reports another one says what that one says. */
function isPublic(thrown: unknown): boolean {
  // As Nest answers clients: the text of an error of the server is nobody else's business.
  if (isHttpError(thrown)) return isClientError(thrown);
  if (RetryToolCall.is(thrown) || thrown === SHUTDOWN) return true;
  return ToolwrightError.is(thrown) && (thrown.cause === undefined || isPublic(thrown.cause));
}

const REFERENCE_KEY = randomBytes(16);

/**
 * Stands for an error that nobody expected. The same error has the same reference, so that a model which repeats a
 * call that cannot work is seen to go in circles; without the key it says nothing of the error.
 */
function internalError(thrown: unknown, tool: string): string {
  const text = `${tool}\n${errorMessage(thrown)}`;
  const reference = createHmac('sha256', REFERENCE_KEY).update(text).digest('hex').slice(0, 8);
  return `Internal error (ref ${reference})`;
}

/**
 * A log message with its fields, in the two forms that loggers want. One that collects data (`json: true`, pino,
 * winston) finds own properties; Nest's console, which inspects what is no string, gets one line of text, and
 * under it where an unexpected error came from.
 */
export class LogEntry {
  readonly message: string;
  /** Where `error` says what happened: the error itself, under the name that pino has a serialiser for. */
  declare readonly err?: Error;

  constructor(message: string, fields: LogFields) {
    this.message = message;
    const { error } = fields;
    const told = error instanceof Error ? { error: error.message, err: error } : {};
    // JSON.stringify shows nothing of an error but what was added to it.
    // Fields may be called anything, and a frozen `Object.prototype` lets nobody assign `toString`.
    Object.defineProperties(this, Object.getOwnPropertyDescriptors({ ...fields, ...told, message }));
  }

  [inspect.custom](_depth: number, options: InspectOptions): string {
    const { message, err, ...fields } = this as LogEntry & LogFields;
    const texts = Object.entries(fields).map(([name, value]) => `${name}=${textOf(value)}`);
    const line = [message, ...texts].join(' ');
    const origin = originOf(err);
    return visibleText(origin === undefined ? line : `${line}\n${inspect(origin, options)}`);
  }
}

/** Bare where it is one word, otherwise as JSON. */
function textOf(text: unknown): string {
  if (typeof text === 'string') return /^[^\s"=]+$/.test(text) ? text : JSON.stringify(text);
  try {
    return JSON.stringify(text) ?? String(text);
  } catch {
    return inspect(text, { compact: true, breakLength: Number.POSITIVE_INFINITY });
  }
}

/** The error that nobody expected: the framework's own say everything in their message. */
function originOf(error: Error | undefined): Error | undefined {
  if (!ToolwrightError.is(error)) return error;
  const { cause } = error as Error;
  return cause instanceof Error ? cause : undefined;
}

/**
 * Nest's levels for the framework's: what happens to calls is `debug`, so that an application which logs from `log` on
 * hears only of what went wrong.
 */
const LEVELS: Readonly<Record<string, LogLevel>> = {
  debug: 'debug',
  info: 'debug',
  warn: 'warn',
  error: 'error',
};

/** Nest's logger behind the framework's port. */
export function nestLogger(): Logger {
  const logger = new NestLogger('Toolwright');
  const entry = (message: string, fields?: LogFields): LogEntry | string =>
    fields === undefined ? message : new LogEntry(message, fields);
  return {
    debug: (message, fields) => logger.debug(entry(message, fields)),
    info: (message, fields) => logger.debug(entry(message, fields)),
    warn: (message, fields) => logger.warn(entry(message, fields)),
    error: (message, fields) => logger.error(entry(message, fields)),
    isLevelEnabled: (level) => isEnabled(LEVELS[level] ?? 'log'),
  };
}

/** NestJS 11 reports every level as disabled where none was set, and then all of them are enabled. */
function isEnabled(level: LogLevel): boolean {
  const levels = logLevels();
  // Nest sorts its levels for every question.
  if (levels !== answers.levels) answers = { levels, of: new Map() };
  const known = answers.of.get(level);
  if (known !== undefined) return known;
  const isOn = NestLogger.isLevelEnabled(level) || !NestLogger.isLevelEnabled('fatal');
  answers.of.set(level, isOn);
  return isOn;
}

/** What Nest has said of its levels, as long as they are the same. */
let answers = { levels: logLevels(), of: new Map<LogLevel, boolean>() };

/** What a log calls a guard, a filter or an interceptor: by its class, where it has one. */
export function enhancerName(enhancer: object): string {
  const { name } = enhancer.constructor ?? Object;
  return name === '' || name === 'Object' ? 'without a name' : name;
}
