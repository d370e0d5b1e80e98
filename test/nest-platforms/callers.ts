import {
  type CanActivate,
  type ExecutionContext,
  Inject,
  Injectable,
  Scope,
  SetMetadata,
  UnauthorizedException,
} from '@nestjs/common';
import { REQUEST, Reflector } from '@nestjs/core';
import type { FastifyRequest } from 'fastify';
import { Tool, ToolContext } from 'toolwright';
import { toolCallOf } from 'toolwright/nestjs';

/** Whatever stands for a request on these platforms. */
export interface Asking {
  readonly user?: string;
  readonly headers?: FastifyRequest['headers'];
}

/** Only this user may call the method, over HTTP and as a tool. */
export const OnlyFor = (user: string) => SetMetadata('only-for', user);

/** Logs users in by a header, over HTTP, and asks the request of a tool call who it is. */
@Injectable()
export class UserGuard implements CanActivate {
  constructor(@Inject(Reflector) private readonly reflector: Reflector) {}

  canActivate(context: ExecutionContext): boolean {
    const request: FastifyRequest & { user?: unknown } = context.switchToHttp().getRequest();
    if (toolCallOf(context) === undefined) request.user = request.headers.authorization;
    if (request.user === undefined) throw new UnauthorizedException('log in first');
    const only = this.reflector.getAllAndOverride('only-for', [context.getHandler(), context.getClass()]);
    return only === undefined || request.user === only;
  }
}

let made = 0;

/** Made for each request. */
@Injectable({ scope: Scope.REQUEST })
export class Caller {
  readonly number: number;

  constructor(@Inject(REQUEST) readonly request: Asking | undefined) {
    made += 1;
    this.number = made;
  }

  get name(): string {
    return this.request?.user ?? this.request?.headers?.authorization ?? 'nobody';
  }
}

/** Request-scoped, because what it injects is. */
@Injectable()
export class CallerTools {
  constructor(@Inject(Caller) private readonly caller: Caller) {}

  @Tool('Who calls?')
  who() {
    return `${this.caller.name} ${this.caller.number}`;
  }

  @Tool('Only for Ada')
  @OnlyFor('ada')
  secret() {
    return 'the secret';
  }

  @Tool('Wait until the run is aborted')
  wait(context: ToolContext) {
    const { signal } = context;
    return new Promise<string>((resolve) => {
      signal.addEventListener('abort', () => {
        aborted.resolve(String(signal.reason));
        resolve('aborted');
      });
    });
  }
}

/** Why `wait` ended. */
export const aborted = Promise.withResolvers<string>();
