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

/** The request on these platforms: of Fastify, of a message, or of GraphQL. */
export interface CallerRequest {
  readonly user?: string;
  readonly headers?: FastifyRequest['headers'];
}

/** Allows only this user to call the method, over HTTP and as a tool. */
export const OnlyFor = (user: string) => SetMetadata('only-for', user);

/** Authenticates HTTP requests by a header, and reads the user of a tool call from its request. */
@Injectable()
export class UserGuard implements CanActivate {
  constructor(@Inject(Reflector) private readonly reflector: Reflector) {}

  canActivate(context: ExecutionContext): boolean {
    const request: FastifyRequest & { user?: unknown } = context.switchToHttp().getRequest();
    if (toolCallOf(context) === undefined) request.user = request.headers.authorization;
    if (request.user === undefined) throw new UnauthorizedException('not authenticated');
    const allowedUser = this.reflector.getAllAndOverride('only-for', [
      context.getHandler(),
      context.getClass(),
    ]);
    return allowedUser === undefined || request.user === allowedUser;
  }
}

let created = 0;

/** Created for each request. */
@Injectable({ scope: Scope.REQUEST })
export class Caller {
  readonly number: number;

  constructor(@Inject(REQUEST) readonly request: CallerRequest | undefined) {
    created += 1;
    this.number = created;
  }

  get name(): string {
    return this.request?.user ?? this.request?.headers?.authorization ?? 'anonymous';
  }
}

/** Request-scoped, because it injects a request-scoped provider. */
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

/** Resolves with the abort reason of `wait`. */
export const aborted = Promise.withResolvers<string>();
