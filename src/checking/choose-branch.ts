import type { JsonSchema } from '../contract/json-schema.js';
import { resolveReference } from './resolve-reference.js';

/** Which branch of a union a value was meant for, as far as that can be told. */
export type ChosenBranch =
  | { readonly kind: 'branch'; readonly branch: JsonSchema }
  /** The union has a tag, and the value's tag is none of them. */
  | { readonly kind: 'tag'; readonly property: string; readonly tags: readonly unknown[] }
  | { readonly kind: 'unclear' };

/** Tells the branch by its `const` tag, or because all others are `null`. */
export function chooseBranch(
  branches: readonly JsonSchema[],
  value: unknown,
  root: JsonSchema,
): ChosenBranch {
  const candidates = branches.filter((branch) => resolveReference(branch, root).type !== 'null');
  const [only] = candidates;
  if (candidates.length === 1 && only !== undefined && value !== null)
    return { kind: 'branch', branch: only };
  if (typeof value !== 'object' || value === null) return { kind: 'unclear' };
  const property = tagOf(candidates, root);
  if (property === undefined) return { kind: 'unclear' };
  const tags = candidates.map((branch) => constOf(branch, property, root));
  const sent = Object.hasOwn(value, property) ? (value as Record<string, unknown>)[property] : undefined;
  const branch = candidates[tags.indexOf(sent)];
  return branch === undefined || sent === undefined
    ? { kind: 'tag', property, tags }
    : { kind: 'branch', branch };
}

function tagOf(branches: readonly JsonSchema[], root: JsonSchema): string | undefined {
  const [first] = branches;
  if (first === undefined) return undefined;
  return Object.keys(resolveReference(first, root).properties ?? {}).find((name) =>
    branches.every((branch) => constOf(branch, name, root) !== undefined),
  );
}

function constOf(branch: JsonSchema, property: string, root: JsonSchema): unknown {
  return resolveReference(branch, root).properties?.[property]?.const;
}
