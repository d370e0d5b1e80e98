import type { DataValidateFunction } from 'ajv/dist/types/index.js';
import { canonicalJson } from './canonical-json.js';

/**
 * The keyword `uniqueItems`, in time that grows with the list; the validator's own way compares each item with
 * each other one.
 */
export const uniqueItems: UniqueItems = (isWanted, items, parentSchema) => {
  const twice = isWanted ? duplicateItems(items) : undefined;
  if (twice === undefined) return true;
  uniqueItems.errors = [{ keyword: 'uniqueItems', ...twice, parentSchema }];
  return false;
};

type UniqueItems = Pick<DataValidateFunction, 'errors'> &
  ((isWanted: boolean, items: readonly unknown[], parentSchema?: object) => boolean);

interface DuplicateItems {
  readonly params: { readonly i: number; readonly j: number };
  readonly message: string;
}

/** Told as the validator tells it: the last item that stood there before, and where it did. */
export function duplicateItems(items: readonly unknown[]): DuplicateItems | undefined {
  const places = new Map<string, number>();
  let params: DuplicateItems['params'] | undefined;
  items.forEach((item, again) => {
    const key = canonicalJson(item);
    const first = places.get(key);
    if (first !== undefined) params = { i: again, j: first };
    places.set(key, again);
  });
  if (params === undefined) return undefined;
  const { i, j } = params;
  return { params, message: `must NOT have duplicate items (items ## ${j} and ${i} are identical)` };
}
