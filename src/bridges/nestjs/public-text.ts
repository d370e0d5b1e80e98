import { createHmac, randomBytes } from 'node:crypto';
import { HttpException } from '@nestjs/common';
import { RetryToolCall } from '../../contract/retry-tool-call.js';
import { ToolwrightError } from '../../errors/toolwright-error.js';
import { errorMessage } from '../../invocation/error-message.js';
import type { DescribeError } from '../../invocation/invocation.js';
import type { ToolwrightModuleOptions } from './module-options.js';
import { SHUTDOWN } from './running-calls.js';

/** What the options say of the texts of errors. */
type ErrorOptions = Pick<ToolwrightModuleOptions, 'describeError' | 'exposeErrors'>;

/** Statuses from here on say that the server broke; as Nest answers them, their texts are nobody else's business. */
const SERVER_ERROR = 500;

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
  const response: unknown = isHttpException(exception) ? exception.getResponse() : undefined;
  if (typeof response !== 'object' || response === null) return errorMessage(exception);
  const message: unknown = Reflect.get(response, 'message');
  if (Array.isArray(message)) return message.join('; ');
  return typeof message === 'string' ? errorMessage(exception) : JSON.stringify(response);
}

/** An error of the framework that only reports another one says what that one says. */
function isPublic(thrown: unknown): boolean {
  if (isHttpException(thrown)) return thrown.getStatus() < SERVER_ERROR;
  if (RetryToolCall.is(thrown) || thrown === SHUTDOWN) return true;
  return ToolwrightError.is(thrown) && (thrown.cause === undefined || isPublic(thrown.cause));
}

/** Also one that another copy of the package made. */
function isHttpException(thrown: unknown): thrown is HttpException {
  if (thrown instanceof HttpException) return true;
  return (
    thrown instanceof Error &&
    typeof Reflect.get(thrown, 'getStatus') === 'function' &&
    typeof Reflect.get(thrown, 'getResponse') === 'function'
  );
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
