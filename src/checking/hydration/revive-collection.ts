import { childPath, type Place, type Revive } from './revival.js';

/** An array whose items need reviving. */
export function reviveItems(reviveItem: Revive): Revive {
  return (value, place) => {
    const items: unknown[] = [];
    for (const [index, item] of (value as readonly unknown[]).entries()) {
      const put = (later: unknown) => {
        items[index] = later;
      };
      items.push(reviveItem(item, { revival: place.revival, path: childPath(place.path, index), put }));
    }
    return items;
  };
}

/** An object used as a map, whose values need reviving. Keys are data: `__proto__` is one like any other. */
export function reviveValues(reviveValue: Revive): Revive {
  return (value, place) => {
    const values = {};
    for (const [key, one] of Object.entries(value as object)) {
      const define = (what: unknown) =>
        Object.defineProperty(values, key, {
          value: what,
          writable: true,
          enumerable: true,
          configurable: true,
        });
      define(reviveValue(one, { revival: place.revival, path: childPath(place.path, key), put: define }));
    }
    return values;
  };
}

/** A `Set` from an array. What comes later is taken over when all of it is there. */
export function reviveSet(reviveArray: Revive | undefined): Revive {
  return collect(reviveArray, (items) => new Set(items as readonly unknown[]));
}

/** A `Map` from an object. */
export function reviveMap(reviveObject: Revive | undefined): Revive {
  return collect(reviveObject, (values) => new Map(Object.entries(values as object)));
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
