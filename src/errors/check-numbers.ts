import { type AuthorFault, ToolDeclarationError } from './author-fault.js';

/** What a number has to be. */
export interface NumberRule {
  readonly min: number;
  /** Only whole numbers; `Infinity` counts as one where it is allowed. */
  readonly isWhole?: boolean;
  readonly allowsInfinity?: boolean;
}

/**
 * Checks numbers that an author gave: a `NaN` from an unset variable would otherwise switch off a limit, or
 * everything, in silence.
 *
 * @throws ToolDeclarationError (502) naming every number that is none or out of range.
 */
export function checkNumbers(
  where: string,
  given: object,
  rules: Readonly<Record<string, NumberRule>>,
): void {
  const faults = Object.entries(rules).flatMap(([name, rule]): readonly AuthorFault[] => {
    const value = (given as Readonly<Record<string, unknown>>)[name];
    if (value === undefined || fits(value, rule)) return [];
    return [{ where, problem: `${name} is ${String(value)}`, fix: `${name}: ${describe(rule)}` }];
  });
  if (faults.length > 0) throw new ToolDeclarationError(faults);
}

function fits(value: unknown, { min, isWhole = false, allowsInfinity = false }: NumberRule): boolean {
  if (typeof value !== 'number' || Number.isNaN(value) || value < min) return false;
  if (value === Number.POSITIVE_INFINITY) return allowsInfinity;
  return !isWhole || Number.isInteger(value);
}

function describe({ min, isWhole = false, allowsInfinity = false }: NumberRule): string {
  return `a ${isWhole ? 'whole ' : ''}number, ${min} or more${allowsInfinity ? ', or Infinity' : ''}`;
}
