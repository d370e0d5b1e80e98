import { HttpException } from '@nestjs/common';
import { errorMessage } from '../../invocation/error-message.js';

/** What the model is told of an exception: its message, or the list of messages that an `HttpException` carries. */
export function exceptionText(exception: unknown): string {
  return messageList(exception)?.join('; ') ?? errorMessage(exception);
}

/** The exception with all its messages in one text. Pipes throw lists of them, and `message` shows none. */
export function withMessages(exception: unknown): unknown {
  const messages = messageList(exception);
  if (messages === undefined || !(exception instanceof HttpException)) return exception;
  return new HttpException(messages.join('; '), exception.getStatus(), { cause: exception });
}

function messageList(exception: unknown): readonly unknown[] | undefined {
  if (!(exception instanceof HttpException)) return undefined;
  const response = exception.getResponse();
  const messages: unknown = typeof response === 'object' ? Reflect.get(response, 'message') : undefined;
  return Array.isArray(messages) ? messages : undefined;
}
