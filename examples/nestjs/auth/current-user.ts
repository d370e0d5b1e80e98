import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { AuthedRequest } from './user.js';

/** The user of the request, in route handlers and in tools alike. The model never sees the parameter. */
export const CurrentUser = createParamDecorator(
  (_data: unknown, context: ExecutionContext) => context.switchToHttp().getRequest<AuthedRequest>().user,
);
