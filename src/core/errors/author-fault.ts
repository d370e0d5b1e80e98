import type { Logger } from '../contract/ports.js';
import {
  type OptionFault,
  type OptionRule,
  type OptionTable,
  optionFaults,
  optionTable,
  required,
  wrongValues,
} from '../kernel/options.js';
import { visibleText } from '../kernel/visible-text.js';
import { type ErrorName, ToolwrightError } from './toolwright-error.js';

/** One mistake in a declaration: where it is, what it is, and what to write instead. */
export interface AuthorFault {
  /** `ShopTools`, `ShopTools.placeOrder`, or a tool's name. */
  readonly where: string;
  /** The parameter, where it is one parameter's mistake: `order (#1)`. */
  readonly parameter?: string;
  /** What is wrong, as a sentence without its full stop. */
  readonly problem: string;
  /** What can have caused it. */
  readonly causes?: readonly string[];
  /** What to write instead. */
  readonly fix: string;
}

/** Mistakes of an author, all together: as people read them, and as data. */
class AuthorError<Fault extends AuthorFault> extends ToolwrightError {
  readonly faults: readonly Fault[];

  constructor(name: ErrorName, message: string, faults: readonly Fault[]) {
    super(name, message);
    this.faults = faults;
  }
}

const CHECK_THE_PROJECT = '`npx toolwright doctor` checks the set-up of the project.';

/**
 * All mistakes of all declarations, thrown once at start-up, before any model is called. `faults` has them as data.
 */
export class ToolDeclarationError extends AuthorError<AuthorFault> {
  constructor(faults: readonly AuthorFault[]) {
    const message = describeAuthorFaults(faults, 'what was declared');
    super('InvalidToolSignature', `${message}\n\n${CHECK_THE_PROJECT}`, faults);
  }
}

/** What was said without a logger: a class that is discovered for every request is not warned of each time. */
const said = new Set<string>();
const MOST_SAID = 1_000;

/** Tells of what works and is probably not meant; without a logger as a warning of the process, once each. */
export function warnAuthor({ where, problem, fix }: AuthorFault, logger?: Logger): void {
  // Names in files that strangers have written may be meant for the terminal.
  const message = visibleText(`${where}: ${problem} (${fix})`);
  if (logger !== undefined) logger.warn(message);
  else if (!said.has(message) && said.size < MOST_SAID) {
    said.add(message);
    process.emitWarning(message, { type: 'ToolwrightWarning' });
  }
}

/** The warning of a tool that the model knows by its name alone. */
export function undescribed(where: string, fix: string): AuthorFault {
  return { where, problem: 'it has no description: the model knows it by its name alone', fix };
}

/** Mistakes as people read them, numbered. */
function describeAuthorFaults(faults: readonly AuthorFault[], place: string): string {
  const count = faults.length === 1 ? '1 mistake' : `${faults.length} mistakes`;
  return [
    `${count} in ${place}:`,
    ...faults.map((fault, index) => `\n${index + 1}. ${describeOne(fault)}`),
  ].join('\n');
}

function describeOne({ where, parameter, problem, causes = [], fix }: AuthorFault): string {
  const place = parameter === undefined ? where : `${where}, parameter ${parameter}`;
  const lines = [`${place}: ${problem}.`];
  if (causes.length > 0) lines.push('   Possible causes:', ...causes.map((cause) => `   - ${cause}`));
  lines.push(`   Write instead: ${fix}`);
  return lines.join('\n');
}

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
    super('InvalidOptions', describeAuthorFaults(faults, 'options'), faults);
  }
}

/** What is wrong with options, and whose they are. */
export function invalidOptions(given: unknown, table: OptionTable): readonly InvalidOption[] {
  return optionFaults(given, table).map((fault) => ({ where: table.of, ...fault }));
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
interface GivenArguments {
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
