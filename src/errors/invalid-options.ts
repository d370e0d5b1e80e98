import type { OptionFault } from '../kernel/option-rules.js';
import { type OptionTable, optionFaults } from '../kernel/options.js';
import { describeAuthorFaults } from './author-fault.js';
import { ToolwrightError } from './toolwright-error.js';

/** One option that is wrong, and whose. */
export interface InvalidOption extends OptionFault {
  /** What was given it: `runToolLoop`. */
  readonly where: string;
}

/**
 * Everything that is wrong with the options of something, thrown before any of it has taken effect. `faults` has
 * it as data.
 *
 * @example
 * ```ts
 * try {
 *   await runToolLoop(config, messages);
 * } catch (error) {
 *   if (error instanceof InvalidOptionsError) for (const { option, fix } of error.faults) console.error(option, fix);
 * }
 * ```
 */
export class InvalidOptionsError extends ToolwrightError {
  readonly faults: readonly InvalidOption[];

  constructor(faults: readonly InvalidOption[]) {
    super('InvalidOptions', describeAuthorFaults(faults, 'options'));
    this.faults = faults;
  }
}

const NONE: readonly InvalidOption[] = [];

/** What is wrong with options, and whose they are. */
export function invalidOptions(given: unknown, table: OptionTable): readonly InvalidOption[] {
  const faults = optionFaults(given, table);
  return faults.length === 0 ? NONE : faults.map((fault) => ({ where: table.of, ...fault }));
}

/** Throws faults, if there are any. */
export function refuseOptions(faults: readonly InvalidOption[]): void {
  if (faults.length > 0) throw new InvalidOptionsError(faults);
}

/**
 * Checks the options of a door.
 *
 * @throws InvalidOptionsError (521) naming everything that is wrong.
 */
export function checkOptions(given: unknown, table: OptionTable): void {
  refuseOptions(invalidOptions(given, table));
}
