import {
  BadRequestException,
  ConflictException,
  ForbiddenException,
  type HttpException,
  InternalServerErrorException,
} from '@nestjs/common';
import { ToolwrightError } from 'toolwright';

/** What a client has sent is none: its answers, its state, or the id of a run. */
const SENT_WRONG: ReadonlySet<string> = new Set(['InvalidAnswer', 'InvalidState', 'InvalidOptions']);

/** What a client is told of a run that cannot be resumed. Nothing has happened then, and the run still waits. */
export function asHttpException(error: unknown): HttpException {
  const name = ToolwrightError.is(error) ? error.name : undefined;
  if (name === 'RunNotAllowed') return new ForbiddenException('this is somebody else’s to answer');
  if (name !== undefined && SENT_WRONG.has(name)) return new BadRequestException((error as Error).message);
  if (name === 'RunClaimed' || name === 'RunNotFound') return new ConflictException((error as Error).message);
  return new InternalServerErrorException(undefined, { cause: error });
}
