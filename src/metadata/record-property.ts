import type { ClassType } from '../contract/class-type.js';
import type { ParamOptions } from '../contract/param-options.js';
import { classAt, ownRecord } from './class-record.js';

const described = new Set<ClassType>();

/** Every class with `@Param` on its own properties that has been loaded so far. */
export function loadedDtoClasses(): readonly ClassType[] {
  return [...described];
}

/** Records what `@Param` said about a property of a DTO class. */
export function recordProperty(prototype: object, key: string, options: ParamOptions): void {
  const owner = classAt(prototype);
  described.add(owner);
  ownRecord(owner).properties.set(key, options);
}
