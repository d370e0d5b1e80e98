import type { Logger } from '../contract/ports.js';
import { counted } from '../kernel/counted.js';
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

/** A mistake in a declaration: its place, the problem, and the fix. */
export interface AuthorFault {
  /** `ShopTools`, `ShopTools.placeOrder`, or a tool's name. */
  readonly where: string;
  /** The parameter with the mistake, if there is one: `order (#1)`. */
  readonly parameter?: string;
  /** The problem, as a sentence without its full stop. */
  readonly problem: string;
  /** Possible causes. */
  readonly causes?: readonly string[];
  /** The text to write instead. */
  readonly fix: string;
}

/** A mistake whose place the caller adds. */
export type UnplacedFault = Omit<AuthorFault, 'where'>;

/** A result, or all faults that prevent it. */
export type OrFaults<Result, Fault = UnplacedFault> =
  | ({ readonly ok: true } & Result)
  | { readonly ok: false; readonly faults: readonly Fault[] };

/** All mistakes of an author: as text and as data. */
class AuthorError<Fault extends AuthorFault> extends ToolwrightError {
  declare readonly faults: readonly Fault[];

  constructor(name: ErrorName, message: string, faults: readonly Fault[]) {
    super(name, message);
    // Not enumerable: an uncaught error would be printed with its message and then with all faults again.
    Object.defineProperty(this, 'faults', { value: faults });
  }
}

const CHECK_THE_PROJECT = '`npx toolwright doctor` checks the set-up of the project.';

/**
 * All mistakes of all declarations, thrown together at start-up, before any request to a model. `faults` contains
 * them as data.
 */
export class ToolDeclarationError extends AuthorError<AuthorFault> {
  constructor(faults: readonly AuthorFault[]) {
    const message = describeAuthorFaults(faults, 'tool declarations');
    super('InvalidToolSignature', `${message}\n\n${CHECK_THE_PROJECT}`, faults);
  }
}

/** Warnings without a logger are written once, because a class may be discovered for every request. */
const said = new Set<string>();
const MOST_SAID = 1_000;

/**
 * Warns of code that works but is probably a mistake. Without a logger, each warning is written once, as a process
 * warning.
 */
export function warnAuthor({ where, problem, fix }: AuthorFault, logger?: Logger): void {
  // Names from untrusted files may contain terminal control characters.
  const message = visibleText(`${where}: ${problem} (${fix})`);
  if (logger !== undefined) logger.warn(message);
  else if (!said.has(message) && said.size < MOST_SAID) {
    said.add(message);
    process.emitWarning(message, { type: 'ToolwrightWarning' });
  }
}

/** The warning for a tool without a description. */
export function undescribed(where: string, fix: string): AuthorFault {
  return { where, problem: 'it has no description: the model sees only its name', fix };
}

/** Numbers mistakes in a text for people. */
function describeAuthorFaults(faults: readonly AuthorFault[], place: string): string {
  const described = faults.map(({ where, parameter, problem, causes = [], fix }, index) => {
    const before = faults[index - 1];
    const head = `${index + 1}. ${parameter ? `${where}, parameter ${parameter}` : where}: ${problem}.`;
    const list = causes.map((cause) => `\n   - ${cause}`).join('');
    const isSame = fix === before?.fix && String(causes) === String(before.causes);
    if (list && isSame) return `${head} Causes and fix: see above.`;
    return `${head}${list && `\n   Possible causes:${list}`}\n   Write instead: ${fix}`;
  });
  return [`${counted(faults.length, 'mistake')} in ${place}:`, ...described].join('\n\n');
}

/** An invalid option and the function that it was passed to. */
export interface InvalidOption extends OptionFault {
  /** The function or class, for example `runToolLoop`. */
  readonly where: string;
}

/**
 * All problems of a set of options, thrown before any of them takes effect. `faults` contains them as data.
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

/** Lists invalid options, with the function that they were passed to. */
export function invalidOptions(given: unknown, table: OptionTable): readonly InvalidOption[] {
  return optionFaults(given, table).map((fault) => ({ where: table.of, ...fault }));
}

/** Throws if there are faults. */
export function refuseOptions(faults: readonly InvalidOption[]): void {
  if (faults.length > 0) throw new InvalidOptionsError(faults);
}

/**
 * Checks the options of a public function.
 *
 * @throws InvalidOptionsError (521) with every problem.
 */
export function checkOptions(given: unknown, table: OptionTable): void {
  refuseOptions(invalidOptions(given, table));
}

/** The arguments of a public function other than its options, by parameter name, and their rules. */
interface GivenArguments {
  readonly of: string;
  readonly given: Readonly<Record<string, unknown>>;
  readonly rules: Readonly<Record<string, OptionRule>>;
}

/** Lists invalid arguments; all of them are required. */
export function invalidArguments({ of, given, rules }: GivenArguments): readonly InvalidOption[] {
  const all = Object.fromEntries(Object.entries(rules).map(([name, rule]) => [name, required(rule)]));
  return wrongValues(given, optionTable(of, all)).map((fault) => ({ where: of, ...fault }));
}

/**
 * Checks the arguments of a public function.
 *
 * @throws InvalidOptionsError (521) with every problem.
 */
export function checkArguments(given: GivenArguments): void {
  refuseOptions(invalidArguments(given));
}
