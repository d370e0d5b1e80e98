import type { Logger } from '../contract/logger.js';
import type { ErrorName } from './error-table.js';
import { ToolwrightError } from './toolwright-error.js';

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
export class AuthorError<Fault extends AuthorFault> extends ToolwrightError {
  readonly faults: readonly Fault[];

  constructor(name: ErrorName, place: string, faults: readonly Fault[]) {
    super(name, describeAuthorFaults(faults, place));
    this.faults = faults;
  }
}

/**
 * All mistakes of all declarations, thrown once at start-up, before any model is called. `faults` has them as data.
 */
export class ToolDeclarationError extends AuthorError<AuthorFault> {
  constructor(faults: readonly AuthorFault[]) {
    super('InvalidToolSignature', 'what was declared', faults);
  }
}

/** What was said without a logger: a class that is discovered for every request is not warned of each time. */
const said = new Set<string>();
const MOST_SAID = 1_000;

/** Tells of what works and is probably not meant; without a logger as a warning of the process, once each. */
export function warnAuthor({ where, problem, fix }: AuthorFault, logger?: Logger): void {
  const message = `${where}: ${problem} (${fix})`;
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
