import { type CanActivate, type ExecutionContext, Injectable, UnauthorizedException } from '@nestjs/common';

/** The signed-in user. */
export interface User {
  readonly id: string;
}

/** A request after the guard. */
export interface AuthedRequest {
  readonly headers?: Readonly<Record<string, string | undefined>>;
  user?: User;
}

/** A placeholder for a login: `Bearer token-ada` is Ada. */
@Injectable()
export class AuthGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<AuthedRequest>();
    const [, id] = /^Bearer token-(\w+)$/.exec(request.headers?.authorization ?? '') ?? [];
    if (id === undefined) throw new UnauthorizedException('log in first');
    request.user = { id };
    return true;
  }
}
