import type { ClassType } from '../contract/class-type.js';
import { lineage, readRecord } from './class-record.js';
import type { ToolMethodRecord } from './tool-method-record.js';

/** A method's record with the class that it was written in: names and metadata are read from there. */
export interface InheritedMethod {
  readonly record: ToolMethodRecord;
  readonly declaredIn: ClassType;
}

/**
 * The records of a class and of its bases. A subclass that redeclares a tool replaces the base's record
 * in the base's place; one that only overrides the method keeps the base's declaration.
 */
export function toolMethods(target: ClassType): readonly InheritedMethod[] {
  const methods = new Map<string | symbol, InheritedMethod>();
  for (const declaredIn of lineage(target)) {
    for (const [key, record] of readRecord(declaredIn)?.methods ?? []) {
      if (record.tool !== undefined || !methods.has(key)) methods.set(key, { record, declaredIn });
    }
  }
  const statics = lineage(target).flatMap((declaredIn) =>
    [...(readRecord(declaredIn)?.staticMethods.values() ?? [])].map((record) => ({ record, declaredIn })),
  );
  return [...methods.values(), ...statics];
}
