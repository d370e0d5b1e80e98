import { Buffer } from 'node:buffer';
import { type ValueType } from './value-type.js';

/** What decorator metadata says of a type, so that what is described can stand in for it and be compared with it. */
export function designToken(type: ValueType): unknown {
  switch (type.kind) {
    case 'scalar':
      return scalarToken(type.name === 'integer' ? 'number' : type.name);
    case 'enum':
      return enumToken(type.values);
    case 'date':
      return Date;
    case 'url':
      return URL;
    case 'bytes':
      return Uint8Array;
    case 'buffer':
      return Buffer;
    case 'bigint':
      return BigInt;
    case 'array':
      return type.collection === 'set' ? Set : Array;
    case 'record':
      return type.collection === 'map' ? Map : Object;
    case 'class':
      return type.class;
    default:
      return undefined;
  }
}

function enumToken(values: readonly unknown[]): unknown {
  const kinds = new Set(values.map((value) => typeof value));
  const [kind] = kinds;
  return kinds.size === 1 && kind !== undefined ? scalarToken(kind) : Object;
}

function scalarToken(name: string): unknown {
  if (name === 'string') return String;
  return name === 'number' ? Number : Boolean;
}
