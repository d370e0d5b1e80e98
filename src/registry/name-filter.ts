import { FILLED_TEXT, protecting } from '../kernel/option-rules.js';
import { listOf, optionTable, type RulesOf } from '../kernel/options.js';

/** Which tools a view shows: names, or globs with `*`. What is denied is hidden even where it is allowed. */
export interface NameFilter {
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
}

const NAMES = listOf({ ...FILLED_TEXT, fix: "'billing_*'" }, "['billing_*', …]");

/** A list that somebody forgot to load must not show everything. */
export const NAME_FILTER_RULES: RulesOf<NameFilter> = { allow: protecting(NAMES), deny: protecting(NAMES) };

export const NAME_FILTER = optionTable<NameFilter>('a view', NAME_FILTER_RULES);

/** Whether a filter lets a name through; without `allow`, all that is not denied. */
export function createNameFilter({ allow, deny = [] }: NameFilter): (name: string) => boolean {
  const isAllowed = allow === undefined ? () => true : matcher(allow);
  const isDenied = matcher(deny);
  return (name) => isAllowed(name) && !isDenied(name);
}

function matcher(patterns: readonly string[]): (name: string) => boolean {
  const names = new Set(patterns);
  const expressions = patterns.filter((pattern) => pattern.includes('*')).map(toExpression);
  return (name) => names.has(name) || expressions.some((expression) => expression.test(name));
}

function toExpression(glob: string): RegExp {
  const parts = glob.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`);
}
