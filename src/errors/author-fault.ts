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

/**
 * All mistakes of all declarations, thrown once at start-up, before any model is called. `faults` has them as data.
 */
export class ToolDeclarationError extends ToolwrightError {
  readonly faults: readonly AuthorFault[];

  constructor(faults: readonly AuthorFault[]) {
    super('InvalidToolSignature', describeAuthorFaults(faults, 'what was declared'));
    this.faults = faults;
  }
}

/** Mistakes as people read them, numbered. */
export function describeAuthorFaults(faults: readonly AuthorFault[], place: string): string {
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
