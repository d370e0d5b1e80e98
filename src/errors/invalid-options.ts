import { type OptionFault, type OptionRule, required } from '../kernel/option-rules.js';
import { type OptionTable, optionFaults, optionTable, wrongValues } from '../kernel/options.js';
import { AuthorError } from './author-fault.js';

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
export class InvalidOptionsError extends AuthorError<InvalidOption> {
  constructor(faults: readonly InvalidOption[]) {
    super('InvalidOptions', 'options', faults);
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

/** What a door was given beside options, by the names of its parameters, and what each has to be. */
export interface GivenArguments {
  readonly of: string;
  readonly given: Readonly<Record<string, unknown>>;
  readonly rules: Readonly<Record<string, OptionRule>>;
}

/** What is wrong with arguments; all of them have to be there. */
export function invalidArguments({ of, given, rules }: GivenArguments): readonly InvalidOption[] {
  const all = Object.fromEntries(Object.entries(rules).map(([name, rule]) => [name, required(rule)]));
  return wrongValues(given, optionTable(of, all)).map((fault) => ({ where: of, ...fault }));
}

/**
 * Checks the arguments of a door.
 *
 * @throws InvalidOptionsError (521) naming everything that is wrong.
 */
export function checkArguments(given: GivenArguments): void {
  refuseOptions(invalidArguments(given));
}
