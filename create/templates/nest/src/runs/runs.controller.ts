import {
  BadRequestException,
  Body,
  ConflictException,
  Controller,
  ForbiddenException,
  HttpCode,
  Param,
  Post,
  UseGuards,
} from '@nestjs/common';
import { IsBoolean, IsOptional, IsString, MinLength } from 'class-validator';
import { type ToolLoopResult, ToolwrightError } from 'toolwright';
import { ToolwrightService } from 'toolwright/nestjs';
import { AuthGuard } from '../auth/auth.guard.js';

export class Prompt {
  @IsString()
  @MinLength(1)
  text: string;
}

export class Decision {
  /** Id of the pending call */
  @IsString()
  id: string;

  @IsBoolean()
  approved: boolean;

  @IsOptional()
  @IsString()
  reason?: string;
}

/** Runs over plain HTTP: a prompt, and later the decision about a call that waits. */
@Controller('runs')
@UseGuards(AuthGuard)
export class RunsController {
  constructor(private readonly toolwright: ToolwrightService) {}

  @Post()
  @HttpCode(200)
  async start(@Body() { text }: Prompt) {
    return summary(await this.toolwright.run([{ role: 'user', content: text }]));
  }

  @Post(':runId/decisions')
  @HttpCode(200)
  async decide(@Param('runId') runId: string, @Body() decision: Decision) {
    try {
      return summary(await this.toolwright.resumeStored(runId, [decision]));
    } catch (error) {
      throw toHttpException(error);
    }
  }
}

/** The run waits as long as `pending` has calls; its id is `runId`. */
function summary({ status, content, pending = [], state, toolCalls }: ToolLoopResult) {
  return {
    status,
    content,
    runId: state?.runId,
    pending: pending.map(({ id, tool, arguments: args }) => ({ id, tool, arguments: args })),
    calls: toolCalls.map(({ name, arguments: args, status: ended }) => ({
      name,
      arguments: args,
      status: ended,
    })),
  };
}

/** After each of these errors nothing was executed, and the run still waits. */
function toHttpException(error: unknown) {
  if (!ToolwrightError.is(error)) return error;
  switch (error.name) {
    case 'RunNotAllowed':
      return new ForbiddenException('Only the user who started the run can answer it');
    case 'RunNotFound':
    case 'RunClaimed':
      return new ConflictException(error.message);
    case 'InvalidAnswer':
    case 'InvalidState':
      return new BadRequestException(error.message);
    default:
      return error;
  }
}
