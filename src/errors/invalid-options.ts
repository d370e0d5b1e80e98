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

  constructor(where: string, faults: readonly OptionFault[]) {
    const placed = faults.map((fault) => ({ where, ...fault }));
    super('InvalidOptions', describeAuthorFaults(placed, 'options'));
    this.faults = placed;
  }
}

/**
 * Checks options that a table describes, and what else has been found wrong with them.
 *
 * @throws InvalidOptionsError (521) naming everything that is wrong.
 */
export function checkOptions(given: unknown, table: OptionTable, others: readonly OptionFault[] = []): void {
  const faults = optionFaults(given, table);
  if (faults.length + others.length > 0) throw new InvalidOptionsError(table.of, [...faults, ...others]);
}
