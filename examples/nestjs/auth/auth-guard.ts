import { type CanActivate, type ExecutionContext, Injectable, UnauthorizedException } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { OnlyFor } from './only-for.js';
import type { AuthedRequest } from './user.js';
import { Users } from './users.js';

/**
 * The guard of all routes and tool calls. A tool call has the request that started the loop, whose user is already
 * known.
 */
@Injectable()
export class AuthGuard implements CanActivate {
  constructor(
    private readonly users: Users,
    private readonly reflector: Reflector,
  ) {}

  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<AuthedRequest | undefined>();
    const user = request && this.userOf(request);
    if (user === undefined) throw new UnauthorizedException('log in first');
    const role = this.reflector.getAllAndOverride(OnlyFor, [context.getHandler(), context.getClass()]);
    return role === undefined || user.role === role;
  }

  private userOf(request: AuthedRequest) {
    const [, token] = /^Bearer (\S+)$/.exec(request.headers?.authorization ?? '') ?? [];
    request.user ??= token === undefined ? undefined : this.users.byToken(token);
    return request.user;
  }
}
