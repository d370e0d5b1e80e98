import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import { catchError, isObservable, type Observable } from 'rxjs';

/** By what was thrown: the interceptor that it came out of first. */
const origins = new WeakMap<object, NestInterceptor>();

/**
 * An interceptor that is known by what it throws. Nest's consumer runs interceptors within each other and tells
 * nobody which of them failed.
 */
export function watchedInterceptor(interceptor: NestInterceptor): NestInterceptor {
  const note = (thrown: unknown): never => {
    if (typeof thrown === 'object' && thrown !== null && !origins.has(thrown))
      origins.set(thrown, interceptor);
    throw thrown;
  };
  const watch = (answer: Observable<unknown>): Observable<unknown> =>
    isObservable(answer) ? (answer as Observable<unknown>).pipe(catchError(note)) : answer;
  const intercept = (
    context: ExecutionContext,
    next: CallHandler,
  ): ReturnType<NestInterceptor['intercept']> => {
    try {
      const answer = interceptor.intercept(context, next);
      return answer instanceof Promise ? answer.then(watch, note) : watch(answer as Observable<unknown>);
    } catch (thrown) {
      return note(thrown);
    }
  };
  return Object.create(interceptor, { intercept: { value: intercept } });
}

/** The innermost interceptor through which something came that was thrown. */
export function interceptorOf(thrown: unknown): NestInterceptor | undefined {
  return typeof thrown === 'object' && thrown !== null ? origins.get(thrown) : undefined;
}
