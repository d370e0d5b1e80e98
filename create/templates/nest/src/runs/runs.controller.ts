import { Body, Controller, HttpCode, Param, Post, UseGuards } from '@nestjs/common';
import { IsBoolean, IsIn, IsOptional, IsString, MinLength } from 'class-validator';
import type { Answer, ToolLoopResult } from 'toolwright';
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

  @IsOptional()
  @IsBoolean()
  approved?: boolean;

  /** For a call that a crash interrupted: whether it happened */
  @IsOptional()
  @IsIn(['done', 'not-done'])
  outcome?: 'done' | 'not-done';

  /** What the call that happened returned */
  @IsOptional()
  result?: unknown;

  @IsOptional()
  @IsString()
  reason?: string;
}

/**
 * Runs over plain HTTP: a prompt, and later the decision about a pending call. A refused decision has the status 400,
 * 403, 404 or 409 and changes nothing.
 */
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
    return summary(await this.toolwright.resumeStored(runId, [decision as Answer]));
  }
}

/** The run waits as long as `pending` has calls; its id is `runId`. */
function summary({ runId, status, content, pending = [], toolCalls }: ToolLoopResult) {
  return {
    status,
    content,
    runId,
    pending: pending.map(({ id, kind, tool, arguments: args }) => ({ id, kind, tool, arguments: args })),
    calls: toolCalls.map(({ name, arguments: args, status: ended }) => ({
      name,
      arguments: args,
      status: ended,
    })),
  };
}
