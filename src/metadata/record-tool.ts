import type { ClassType } from '../contract/class-type.js';
import type { ToolOptions } from '../contract/tool-options.js';
import { type ClassRecord, classAt, ownRecord } from './class-record.js';
import type { ParameterRecord, ToolMethodRecord } from './tool-method-record.js';

/** Where a decorator on a method or its parameter stands: the prototype, or the class for static ones. */
export interface MethodPlace {
  readonly target: object;
  readonly key: string | symbol;
}

/** Where a parameter decorator stands; without a key it is a constructor's parameter. */
export interface ParameterPlace {
  readonly target: object;
  readonly key: string | symbol | undefined;
  readonly index: number;
}

const declaring = new Set<ClassType>();

/** Every class whose own methods are tools that has been loaded so far. */
export function loadedToolClasses(): readonly ClassType[] {
  return [...declaring];
}

/** Records what `@Tool` said, and the method on which it stands. */
export function recordTool(place: MethodPlace, options: ToolOptions, method?: unknown): void {
  if (typeof place.target === 'object') declaring.add(classAt(place.target));
  update(place, (record) => ({ ...record, tool: options, method }));
}

/** Records what one decorator said about one parameter. */
export function recordParameter({ target, key, index }: ParameterPlace, parameter: ParameterRecord): void {
  if (key === undefined) {
    ownRecord(classAt(target)).misplaced.push(`constructor parameter #${index}`);
    return;
  }
  update({ target, key }, (record) => {
    const parameters = new Map(record.parameters);
    parameters.set(index, [...(parameters.get(index) ?? []), parameter]);
    return { ...record, parameters };
  });
}

function update(place: MethodPlace, change: (record: ToolMethodRecord) => ToolMethodRecord): void {
  const { methods, isStatic } = methodsAt(place.target);
  const before = methods.get(place.key) ?? { key: place.key, isStatic, parameters: new Map() };
  methods.set(place.key, change(before));
}

function methodsAt(target: object): { methods: ClassRecord['methods']; isStatic: boolean } {
  const record = ownRecord(classAt(target));
  const isStatic = typeof target === 'function';
  return { methods: isStatic ? record.staticMethods : record.methods, isStatic };
}
