import type { JsonSchema } from '../contract/json-schema.js';
import { resolveReference } from './resolve-reference.js';

/** The JSON types that the branches of a union allow together; empty where one of them does not say. */
export function branchTypes(branches: readonly JsonSchema[], root: JsonSchema): readonly string[] {
  const types = branches.map((branch) => [resolveReference(branch, root).type ?? []].flat());
  return types.some((ofBranch) => ofBranch.length === 0) ? [] : [...new Set(types.flat())];
}
