import type { ClassType } from '../contract/class-type.js';
import type { ParamOptions } from '../contract/param-options.js';
import { readRecord } from './class-record.js';

const NONE: ReadonlyMap<string, ParamOptions> = new Map();

/** What `@Param` said about properties of a DTO class, in declaration order; that very class only. */
export function propertyOptions(target: ClassType): ReadonlyMap<string, ParamOptions> {
  return readRecord(target)?.properties ?? NONE;
}
