import type { JsonSchema } from '../contract/json-schema.js';
import { resolveReference } from './resolve-reference.js';

/** All values of a union of constants, as some libraries write an enum; `undefined` where it is another union. */
export function branchValues(
  branches: readonly JsonSchema[],
  root: JsonSchema,
): readonly unknown[] | undefined {
  const values = branches.map((branch) => valuesOf(resolveReference(branch, root)));
  return values.length > 0 && values.every((each) => each !== undefined) ? values.flat() : undefined;
}

function valuesOf(branch: JsonSchema): readonly unknown[] | undefined {
  if (branch.const !== undefined) return [branch.const];
  return branch.type === 'null' ? [null] : branch.enum;
}
