import type { EnumSource } from '../contract/param-options.js';

/**
 * The values of an enum in the order of declaration: a list as it is, or a TypeScript enum object without
 * the reverse mapping that numeric members have (`{ A: 0, 0: 'A' }`). Doubles are dropped.
 */
export function enumValues(source: EnumSource): readonly unknown[] {
  if (Array.isArray(source)) return [...new Set(source)];
  const members = source as Readonly<Record<string, string | number>>;
  const isReverse = (key: string) => {
    const value = members[key];
    return typeof value === 'string' && members[value] === Number(key) && String(Number(key)) === key;
  };
  const keys = Object.keys(members).filter((key) => !isReverse(key));
  return [...new Set(keys.map((key) => members[key]))];
}

/** Whether a value is a TypeScript enum object, which swc puts where tsc puts `String` or `Number`. */
export function isEnumObject(value: unknown): value is Readonly<Record<string, string | number>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const values = Object.values(value);
  return values.length > 0 && values.every((one) => typeof one === 'string' || typeof one === 'number');
}
