import type { ClassType } from '../contract/class-type.js';
import type { ToolsetOptions } from '../contract/toolset-options.js';
import { classAt, ownRecord } from './class-record.js';

const loaded: ClassType[] = [];

/** Records what `@Toolset` said, and that the class has been loaded. */
export function recordToolset(target: ClassType, options: ToolsetOptions): void {
  const record = ownRecord(classAt(target));
  if (record.toolset === undefined) loaded.push(target);
  record.toolset = options;
}

/** Every `@Toolset` class loaded so far, in the order of loading. */
export function loadedToolsets(): readonly ClassType[] {
  return [...loaded];
}
