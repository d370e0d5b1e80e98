import type { JobEngine } from '../../core/contract/job-engine.js';
import type { Logger } from '../../core/contract/ports.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { logFailure, logRecovery } from './failure-log.js';

/** Logs that an engine does not answer: in the same words whatever part of the process noticed it, so once. */
export function logSilence(engine: EngineName, { logger, error }: Silence): void {
  logFailure(logger, { what: silenceOf(engine), error: errorMessage(error) });
}

/** Logs that an engine answers again. */
export function logAnswer(engine: EngineName, logger: Logger | undefined): void {
  logRecovery(logger, { what: silenceOf(engine), now: `${nameOf(engine)} answers again` });
}

type EngineName = Pick<JobEngine, 'name'>;

interface Silence {
  readonly logger: Logger | undefined;
  readonly error: unknown;
}

function silenceOf(engine: EngineName): string {
  return `${nameOf(engine)} does not answer, and background work waits until it does`;
}

function nameOf({ name = 'The engine' }: EngineName): string {
  return name;
}
