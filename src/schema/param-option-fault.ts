import type { ParamOptions } from '../contract/param-options.js';
import { mistakenNames, type OptionRules, wrongValues } from '../metadata/option-faults.js';
import { BOOLEAN, type OptionRule, TEXT, WHOLE } from '../metadata/option-rule.js';
import type { TypeFault } from './type-result.js';

const NUMBER: OptionRule = { accepts: (value) => Number.isFinite(value), fix: 'a number' };

/** Other keywords of JSON Schema may stand beside these. */
const PARAM: OptionRules = {
  of: '@Param',
  options: {
    name: TEXT,
    description: TEXT,
    required: BOOLEAN,
    nullable: BOOLEAN,
    title: TEXT,
    format: TEXT,
    pattern: { accepts: TEXT.accepts, fix: 'the expression’s source, a string' },
    minLength: WHOLE,
    maxLength: WHOLE,
    minimum: NUMBER,
    maximum: NUMBER,
    exclusiveMinimum: NUMBER,
    exclusiveMaximum: NUMBER,
    multipleOf: NUMBER,
    minItems: WHOLE,
    maxItems: WHOLE,
    uniqueItems: BOOLEAN,
    minProperties: WHOLE,
    maxProperties: WHOLE,
    examples: { accepts: Array.isArray, fix: 'a list' },
    deprecated: BOOLEAN,
  },
  meant: {
    optional: 'required: false',
    min: 'minimum, minLength or minItems',
    max: 'maximum, maxLength or maxItems',
    isArray: 'items: () => X',
  },
};

/** What is wrong with `@Param`'s options, as one fault of their parameter or property. */
export function paramOptionFault(options: ParamOptions): TypeFault | undefined {
  const faults = [...wrongValues(options, PARAM), ...mistakenNames(options, PARAM)];
  if (faults.length === 0) return undefined;
  return {
    ok: false,
    problem: faults.map(({ problem }) => problem).join(', '),
    causes: [],
    fix: faults.map(({ fix }) => fix).join('; '),
  };
}
