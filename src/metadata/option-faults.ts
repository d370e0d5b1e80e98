import { inspect } from 'node:util';
import { isRecord } from '../contract/is-record.js';
import type { OptionRule } from './option-rule.js';

/** The options that something takes. */
export interface OptionRules {
  /** What takes them: `@Tool`. */
  readonly of: string;
  readonly options: Readonly<Record<string, OptionRule>>;
  /** Names that are often given instead, and what to write. */
  readonly meant?: Readonly<Record<string, string>>;
}

/** One option that is wrong; the caller knows where it stands. */
export interface OptionFault {
  readonly problem: string;
  readonly fix: string;
}

/**
 * Options that TypeScript would have refused. What is no option is one too: a limit or an approval that its
 * author believes in must not be missing in silence.
 */
export function optionFaults(given: unknown, rules: OptionRules): readonly OptionFault[] {
  if (!isRecord(given)) {
    const fix = `an object of options: ${Object.keys(rules.options).slice(0, 3).join(', ')}, …`;
    return [{ problem: `what ${rules.of} takes is ${shown(given)}`, fix }];
  }
  return [...wrongValues(given, rules), ...unknownNames(given, rules)];
}

/** The same where anything else may stand beside the options. A run may register each of its tools: no list is made. */
export function wrongValues(given: object, { options }: OptionRules): readonly OptionFault[] {
  const faults: OptionFault[] = [];
  for (const name in options) {
    const value = (given as Readonly<Record<string, unknown>>)[name];
    const rule = options[name];
    if (value === undefined || rule === undefined || rule.accepts(value)) continue;
    faults.push({ problem: `${name} is ${shown(value)}`, fix: `${name}: ${rule.fix}` });
  }
  return faults;
}

/** Of names that are no options only those that are often given instead. */
export function mistakenNames(given: object, { of, meant = {} }: OptionRules): readonly OptionFault[] {
  return Object.entries(meant).flatMap(([name, fix]) =>
    Object.hasOwn(given, name) ? [{ problem: `${name} is no option of ${of}`, fix }] : [],
  );
}

function unknownNames(given: object, { of, options, meant = {} }: OptionRules): readonly OptionFault[] {
  return Object.entries(given).flatMap(([name, value]) => {
    if (value === undefined || Object.hasOwn(options, name)) return [];
    const fix = Object.hasOwn(meant, name) ? meant[name] : undefined;
    return [
      { problem: `${name} is no option of ${of}`, fix: fix ?? `one of ${Object.keys(options).join(', ')}` },
    ];
  });
}

function shown(value: unknown): string {
  return inspect(value, { depth: 0, breakLength: Number.POSITIVE_INFINITY, maxStringLength: 60 });
}
