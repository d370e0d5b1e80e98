import type { ParamOptions } from '../contract/declaration.js';
import {
  ANYTHING,
  areRight,
  BOOLEAN,
  LIST,
  mistakenNames,
  NUMBER,
  optionTable,
  TEXT,
  WHOLE,
  wrongValues,
} from '../kernel/options.js';
import { type TypeFault } from './type-result.js';

/** Other keywords of JSON Schema may stand beside these. */
const PARAM = optionTable<ParamOptions>(
  '@Param',
  {
    name: TEXT,
    description: TEXT,
    type: ANYTHING,
    items: ANYTHING,
    enum: ANYTHING,
    required: BOOLEAN,
    nullable: BOOLEAN,
    default: ANYTHING,
    additionalProperties: ANYTHING,
    schema: ANYTHING,
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
    const: ANYTHING,
    examples: LIST,
    deprecated: BOOLEAN,
  },
  {
    optional: 'required: false',
    min: 'minimum, minLength or minItems',
    max: 'maximum, maxLength or maxItems',
    isArray: 'items: () => X',
  },
);

/** What is wrong with `@Param`'s options, as one fault of their parameter or property. */
export function paramOptionFault(options: ParamOptions): TypeFault | undefined {
  if (areRight(options, PARAM)) return undefined;
  const faults = [...wrongValues(options, PARAM), ...mistakenNames(options, PARAM)];
  if (faults.length === 0) return undefined;
  return {
    ok: false,
    problem: faults.map(({ problem }) => problem).join(', '),
    causes: [],
    fix: faults.map(({ fix }) => fix).join('; '),
  };
}
