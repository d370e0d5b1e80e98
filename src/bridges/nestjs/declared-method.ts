import type { ClassType } from '../../contract/class-type.js';
import { lineage } from '../../metadata/class-record.js';
import type { InheritedMethod } from '../../metadata/tool-methods.js';
import type { HandlerFunction } from './call-target.js';

/**
 * The method whose decorators count. A subclass that only overrides a tool keeps its guards as it keeps the rest
 * of its declaration; Nest itself reads decorators from the overriding function alone.
 */
export function declaredMethod(
  toolClass: ClassType,
  { declaredIn, record: { key } }: InheritedMethod,
): HandlerFunction {
  for (const current of lineage(toolClass).toReversed()) {
    const method: unknown = Object.getOwnPropertyDescriptor(current.prototype, key)?.value;
    if (typeof method !== 'function') continue;
    if (current === declaredIn || Reflect.getOwnMetadataKeys(method).length > 0)
      return method as HandlerFunction;
  }
  throw new TypeError(`${toolClass.name} has no method '${String(key)}'.`);
}
