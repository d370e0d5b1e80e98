import { type CanActivate, type ExecutionContext, Injectable, UnauthorizedException } from '@nestjs/common';

export interface User {
  readonly id: string;
}

export interface SignedInRequest {
  readonly headers?: Readonly<Record<string, string | undefined>>;
  user?: User;
}

/** A placeholder for your sign-in: `Authorization: Bearer ada` is the user `ada`. */
@Injectable()
export class AuthGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<SignedInRequest>();
    const [, id] = /^Bearer (\w+)$/.exec(request.headers?.authorization ?? '') ?? [];
    if (id === undefined) throw new UnauthorizedException('Sign in first');
    request.user = { id };
    return true;
  }
}
