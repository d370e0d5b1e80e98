import { checkArguments } from '../errors/invalid-options.js';
import type { OptionRule } from '../kernel/option-rules.js';

const AGE: OptionRule = {
  accepts: (value) => typeof value === 'number' && value >= 0,
  fix: 'milliseconds, 0 or more',
};

/** What is no age must not pass for none, or every run would be forgotten. */
export function checkAge(ageMs: number): void {
  checkArguments({ of: 'removeOlderThan', given: { ageMs }, rules: { ageMs: AGE } });
}
