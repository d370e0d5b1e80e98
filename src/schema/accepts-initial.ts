import type { ValidationRule } from '../validators/validation-rules.js';
import { isStandard, type PropertyRules } from './property-rules.js';

/**
 * Whether the rules accept the value of a property's initialiser. `@Length(2, 5) name = ''` means that a name
 * must be sent. Rules that are not class-validator's own are asked when the tool is called.
 */
export function acceptsInitial(
  value: unknown,
  all: readonly ValidationRule[],
  { isOptional, isConditional }: PropertyRules,
): boolean {
  if (isConditional || (value === null && isOptional)) return true;
  return all.every((rule) => {
    if (rule.role === 'defined') return value !== null;
    // class-validator refuses plain objects, and finds nothing in an empty list.
    if (rule.role === 'nested') return Array.isArray(value) && value.length === 0;
    return !isStandard(rule) || rule.passes(value, {});
  });
}
