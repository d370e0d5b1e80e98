import { BIGINT_DIGITS } from '../../schema/value-type.js';
import type { TypeHandle } from '../compiler/compiler-view.js';
import { CodeReference, type DescribedSchema } from './described-schema.js';
import { enumNotes } from './enum-notes.js';
import type { TypeWalk, Written } from './type-walk.js';

const BIGINT = new CodeReference('BigInt');

/** One value, or one of several; without any, any big integer. Big integers are digits in JSON. */
export function literalSchema(types: readonly TypeHandle[], walk: TypeWalk): Written {
  const values = types.map((type) => walk.view.literalOf(type));
  const notes = enumNotes(types, walk);
  if (values.length === 0 || values.some((value) => typeof value === 'bigint')) {
    return { schema: bigIntSchema(values, walk), notes };
  }
  const kinds = new Set(values.map((value) => typeof value));
  const [kind] = kinds;
  const type = kinds.size === 1 ? { type: kind } : {};
  return { schema: values.length === 1 ? { ...type, const: values[0] } : { ...type, enum: values }, notes };
}

function bigIntSchema(values: readonly unknown[], walk: TypeWalk): DescribedSchema {
  const digits = values.map(String);
  const revived = walk.direction === 'in' ? { instanceOf: BIGINT } : {};
  if (digits.length === 0) return { type: 'string', pattern: BIGINT_DIGITS, ...revived };
  return { type: 'string', ...(digits.length === 1 ? { const: digits[0] } : { enum: digits }), ...revived };
}
