import { FORMAT_RULES } from './format-rules.js';
import { partly, type RuleMeaning, type RuleTable } from './rule-meaning.js';
import { TEXT_RULES } from './text-rules.js';
import { ARRAY_RULES, VALUE_RULES } from './value-rules.js';

/**
 * Rules for text of which JSON Schema can say no more than that it is text: checksums, lists of codes,
 * formats that depend on a country. class-validator judges them when the tool is called.
 */
export const RUN_AT_CALL_TIME: readonly string[] = [
  'isCreditCard',
  'isCurrency',
  'isDecimal',
  'isFqdn',
  'isFullWidth',
  'isHSL',
  'isHalfWidth',
  'isIBAN',
  'isISO6391',
  'isIdentityCard',
  'isIsbn',
  'isJson',
  'isLocale',
  'isMobilePhone',
  'isPassportNumber',
  'isPhoneNumber',
  'isPostalCode',
  'isStrongPassword',
  'isTaxId',
  'isTimeZone',
  'isVariableWidth',
];

/** The table: one row per class-validator decorator, by the name that it records (0.14 and 0.15). */
export const CLASS_VALIDATOR_RULES: RuleTable = {
  ...VALUE_RULES,
  ...TEXT_RULES,
  ...FORMAT_RULES,
  ...ARRAY_RULES,
  ...Object.fromEntries(RUN_AT_CALL_TIME.map((name) => [name, () => partly('string')])),
};

/**
 * What JSON Schema can say of a rule. Of a rule that is not in the table (a validator of the author's own)
 * it says nothing, and class-validator judges it when the tool is called.
 *
 * @example
 * ```ts
 * ruleMeaning('maxLength', [80]); // { hint: 'string', keywords: { maxLength: 80 }, exact: true }
 * ```
 */
export function ruleMeaning(name: string | undefined, constraints: readonly unknown[]): RuleMeaning {
  const isKnown = name !== undefined && Object.hasOwn(CLASS_VALIDATOR_RULES, name);
  return (isKnown && CLASS_VALIDATOR_RULES[name]?.(constraints)) || { exact: false };
}
