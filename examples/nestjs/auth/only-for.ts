import { Reflector } from '@nestjs/core';
import type { User } from './user.js';

/** Only users of this role may call the method, over HTTP and as a tool. */
export const OnlyFor = Reflector.createDecorator<User['role']>();
