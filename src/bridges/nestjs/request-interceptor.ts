import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import type { Observable } from 'rxjs';
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
    return this.#requests.within(request, () => next.handle());
  }
}
