import { HttpException } from '@nestjs/common';
import { errorMessage } from '../../invocation/error-message.js';

/** What the model is told of an exception: its message, or what an `HttpException` says beside it. */
export function exceptionText(exception: unknown): string {
  return responseText(exception) ?? errorMessage(exception);
}

/** The exception with everything that it says as its message. */
export function withMessages(exception: unknown): unknown {
  const text = responseText(exception);
  if (text === undefined || !(exception instanceof HttpException)) return exception;
  return new HttpException(text, exception.getStatus(), { cause: exception });
}

/** What `message` does not show: the list that a pipe throws, or a body of the author's own. */
function responseText(exception: unknown): string | undefined {
  if (!(exception instanceof HttpException)) return undefined;
  const response: unknown = exception.getResponse();
  if (typeof response !== 'object' || response === null) return undefined;
  const message: unknown = Reflect.get(response, 'message');
  if (Array.isArray(message)) return message.join('; ');
  return typeof message === 'string' ? undefined : JSON.stringify(response);
}
