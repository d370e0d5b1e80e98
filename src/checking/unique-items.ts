import type { DataValidateFunction } from 'ajv/dist/types/index.js';
import { canonicalJson } from './canonical-json.js';

/**
 * The keyword `uniqueItems`, in time that grows with the list; the validator's own way compares each item with
 * each other one. Told as the validator tells it: the last item that stood there before, and where it did.
 */
export const uniqueItems: UniqueItems = (isWanted, items, parentSchema) => {
  const twice = isWanted ? lastTwice(items) : undefined;
  if (twice === undefined) return true;
  const { first, again } = twice;
  const message = `must NOT have duplicate items (items ## ${first} and ${again} are identical)`;
  uniqueItems.errors = [{ keyword: 'uniqueItems', message, params: { i: again, j: first }, parentSchema }];
  return false;
};

type UniqueItems = Pick<DataValidateFunction, 'errors'> &
  ((isWanted: boolean, items: readonly unknown[], parentSchema?: object) => boolean);

interface Twice {
  readonly first: number;
  readonly again: number;
}

function lastTwice(items: readonly unknown[]): Twice | undefined {
  const places = new Map<string, number>();
  let found: Twice | undefined;
  items.forEach((item, again) => {
    const key = canonicalJson(item);
    const first = places.get(key);
    if (first !== undefined) found = { first, again };
    places.set(key, again);
  });
  return found;
}
