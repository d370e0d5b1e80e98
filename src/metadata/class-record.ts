import type { ClassDescription } from '../contract/class-description.js';
import type { ClassType } from '../contract/class-type.js';
import type { ParamOptions } from '../contract/param-options.js';
import type { ToolsetOptions } from '../contract/toolset-options.js';
import type { ToolMethodRecord } from './tool-method-record.js';

const SLOT = Symbol.for('toolwright.class-record');

/** All that decorators said about one class, and about that class only: nothing inherited. */
export interface ClassRecord {
  toolset?: ToolsetOptions;
  /** What the generated file says of the class. */
  description?: ClassDescription;
  readonly methods: Map<string | symbol, ToolMethodRecord>;
  /** Apart from `methods`, because an instance and a static method may share a name. */
  readonly staticMethods: Map<string | symbol, ToolMethodRecord>;
  /** `@Param` on properties of a DTO class. */
  readonly properties: Map<string, ParamOptions>;
  /** Decorators that stand where they mean nothing; discovery reports them. */
  readonly misplaced: string[];
}

/** The class of a place that is decorated: that of the prototype, or the class itself where it is static. */
export function classAt(target: unknown): ClassType {
  const found: unknown = typeof target === 'object' && target !== null ? target.constructor : target;
  if (typeof found === 'function' && found !== Object) return found as ClassType;
  throw new TypeError(
    `Decorators and describeClass need a class, and were given ${target === null ? 'null' : `a value of the type ${typeof target}`}. A class that is undefined is often part of a cycle: its file imports the generated file, or another that imports it.`,
  );
}

/**
 * The class's own record, made on first use. It lives in an own slot of the class, so that a subclass
 * never writes into its base and two copies of this package see the same record.
 */
export function ownRecord(target: object): ClassRecord {
  const existing = readRecord(target);
  if (existing !== undefined) return existing;
  const record: ClassRecord = {
    methods: new Map(),
    staticMethods: new Map(),
    properties: new Map(),
    misplaced: [],
  };
  Object.defineProperty(target, SLOT, { value: record });
  return record;
}

/** The class's own record if it has one; a base class's record is not looked at. */
export function readRecord(target: object): ClassRecord | undefined {
  return Object.getOwnPropertyDescriptor(target, SLOT)?.value;
}

/** The class and its bases that are classes themselves, the base-most first. */
export function lineage(target: ClassType): readonly ClassType[] {
  const chain: ClassType[] = [];
  let current: unknown = target;
  while (typeof current === 'function' && current !== Function.prototype) {
    chain.unshift(current as ClassType);
    current = Object.getPrototypeOf(current);
  }
  return chain;
}
