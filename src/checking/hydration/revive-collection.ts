import { setOwn } from '../../kernel/set-own.js';
import { ChildPlace, type Holder, type Place, type Revive } from './revival.js';

/** An array whose items need reviving. */
export function reviveItems(reviveItem: Revive): Revive {
  return (value, place) => {
    const source = value as readonly unknown[];
    const items = new Array<unknown>(source.length);
    const holder = items as unknown as Holder;
    for (let index = 0; index < source.length; index += 1) {
      items[index] = reviveItem(source[index], new ChildPlace(place, index, holder));
    }
    return items;
  };
}

/** An object used as a map, whose values need reviving. */
export function reviveValues(reviveValue: Revive): Revive {
  return (value, place) => {
    const values: Holder = {};
    for (const [key, one] of Object.entries(value as object)) {
      setOwn(values, key, reviveValue(one, new ChildPlace(place, key, values)));
    }
    return values;
  };
}

/** A `Set` from an array. What comes later is taken over when all of it is there. */
export function reviveSet(reviveArray: Revive | undefined): Revive {
  return collect(reviveArray, (items) => new Set(items as readonly unknown[]));
}

/** A `Map` from an object, whose keys are text whatever they stand for. */
export function reviveMap(reviveObject: Revive | undefined, keys?: 'number'): Revive {
  return collect(reviveObject, (values) => {
    const entries: [unknown, unknown][] = Object.entries(values as object);
    return new Map(keys === 'number' ? entries.map(([key, value]) => [Number(key), value]) : entries);
  });
}

function collect(revive: Revive | undefined, build: (plain: unknown) => unknown): Revive {
  return (value, place: Place) => {
    const before = place.revival.pending.length;
    const plain = revive ? revive(value, place) : value;
    const later = place.revival.pending.slice(before);
    if (later.length > 0) {
      place.revival.pending.push(Promise.all(later).then(() => place.put(build(plain))));
    }
    return build(plain);
  };
}
