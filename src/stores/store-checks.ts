import { checkArguments } from '../errors/author-fault.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import type { OptionRule } from '../kernel/options.js';

const AGE: OptionRule = {
  accepts: (value) => typeof value === 'number' && value >= 0,
  fix: 'milliseconds, 0 or more',
};

/** What is no age must not pass for none, or every run would be forgotten. */
export function checkAge(ageMs: number): void {
  checkArguments({ of: 'removeOlderThan', given: { ageMs }, rules: { ageMs: AGE } });
}

/** Why a store does not take a state: it would undo what somebody else does, or has done. */
export function refusedSave(runId: string): ToolwrightError {
  return new ToolwrightError('RunClaimed', `Run '${runId}' is claimed, or a newer state of it is kept.`);
}
