import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { AuthedRequest } from './user.js';

/** The user of the request, in route handlers and tools. The model never sees this parameter. */
export const CurrentUser = createParamDecorator(
  (_data: unknown, context: ExecutionContext) => context.switchToHttp().getRequest<AuthedRequest>().user,
);
