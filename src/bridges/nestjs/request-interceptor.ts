import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import { Observable } from 'rxjs';
import type { RequestContexts } from './request-contexts.js';

/** Lets every HTTP handler run within its request, so that the tools it calls find the request. */
export class RequestInterceptor implements NestInterceptor {
  readonly #requests: RequestContexts;

  constructor(requests: RequestContexts) {
    this.#requests = requests;
  }

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const request: unknown = context.getType() === 'http' ? context.switchToHttp().getRequest() : undefined;
    if (typeof request !== 'object' || request === null) return next.handle();
    // What comes after may begin only with its subscriber: a deferring interceptor, an observable of the handler.
    return new Observable((subscriber) =>
      this.#requests.within(request, () => next.handle().subscribe(subscriber)),
    );
  }
}
