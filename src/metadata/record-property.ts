import type { ParamOptions } from '../contract/param-options.js';
import { ownRecord } from './class-record.js';

/** Records what `@Param` said about a property of a DTO class. */
export function recordProperty(prototype: object, key: string, options: ParamOptions): void {
  ownRecord(prototype.constructor).properties.set(key, options);
}
