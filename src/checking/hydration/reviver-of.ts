import type { ValueType } from '../../schema/value-type.js';
import type { Revive } from './revival.js';
import { reviveClass, reviveTagged } from './revive-class.js';
import { reviveItems, reviveMap, reviveSet, reviveValues } from './revive-collection.js';
import { reviveDescribed } from './revive-described.js';
import { reviveStandard } from './revive-standard.js';
import { reviveBigInt, reviveBuffer, reviveBytes, reviveDate, reviveUrl } from './revive-text.js';

/**
 * The reviver of a type; nothing where JSON's own value is the tool's, so that what needs no work gets none.
 * `cascaded`: class-validator gets to the value by itself, from the object around it.
 */
export function reviverOf(type: ValueType, cascaded = false): Revive | undefined {
  // A Standard Schema has its own view of `null`; elsewhere the schema has let it through as a value.
  if (type.kind === 'schema') return type.standard && reviveStandard(type.standard);
  const revive = reviverOfValue(type, cascaded);
  return revive && ((value, place) => (value === null ? null : revive(value, place)));
}

function reviverOfValue(type: ValueType, cascaded: boolean): Revive | undefined {
  switch (type.kind) {
    case 'date':
      return reviveDate;
    case 'url':
      return reviveUrl;
    case 'bytes':
      return reviveBytes;
    case 'buffer':
      return reviveBuffer;
    case 'bigint':
      return reviveBigInt;
    case 'array': {
      const item = reviverOf(type.items, cascaded);
      const array = item && reviveItems(item);
      return type.collection === 'set' ? reviveSet(array) : array;
    }
    case 'record': {
      // class-validator does not go into the values of plain objects, but it does into those of a Map.
      const value = reviverOf(type.values, cascaded && type.collection === 'map');
      const record = value && reviveValues(value);
      return type.collection === 'map' ? reviveMap(record, type.keys) : record;
    }
    case 'class':
      return reviveClass(type, cascaded, reviverOf);
    case 'described':
      return reviveDescribed(type, reviverOf);
    case 'tagged':
      return reviveTagged(type, cascaded, reviverOf);
    default:
      return undefined;
  }
}
