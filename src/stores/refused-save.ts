import { ToolwrightError } from '../errors/toolwright-error.js';

/** Why a store does not take a state: it would undo what somebody else does, or has done. */
export function refusedSave(runId: string): ToolwrightError {
  return new ToolwrightError('RunClaimed', `Run '${runId}' is claimed, or a newer state of it is kept.`);
}
