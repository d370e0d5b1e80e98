import type { ClassDescription } from '../contract/class-description.js';
import type { ClassType } from '../contract/class-type.js';
import { classAt, lineage, ownRecord, readRecord } from './class-record.js';

/** Records what a generated file says of a class; a later word on the same class wins, part by part. */
export function recordDescription(target: ClassType, description: ClassDescription): void {
  const record = ownRecord(classAt(target));
  record.description = { ...record.description, ...description };
}

/** What was described of a class itself. */
export function readDescription(target: object): ClassDescription | undefined {
  return readRecord(target)?.description;
}

/**
 * The nearest description of a tool method in a class and its bases, and whose it is. Names are looked up
 * as own properties: a method may be called `toString`.
 */
export function describedTool(target: ClassType, key: string | symbol) {
  if (typeof key !== 'string') return undefined;
  const described = lineage(target).findLast((one) => Object.hasOwn(readDescription(one)?.tools ?? {}, key));
  return described && readDescription(described)?.tools?.[key];
}
