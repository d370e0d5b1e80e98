import type { ArgumentFault } from '../contract/argument-fault.js';
import type { JsonObject } from '../contract/json-schema.js';
import type { Checker } from './create-checker.js';
import { readArguments } from './read-arguments.js';

/**
 * Checks arguments that were offered within a property: what stands in it, or all of them where somebody sends
 * them as the tool takes them. Paths are those of what was sent.
 */
export function wrappedChecker(check: Checker, wrapper: string): Checker {
  return (args) => {
    if (!isWrapped(args, wrapper)) return check(args);
    const read = readArguments(args[wrapper]);
    if (!read.ok) return { ok: false, faults: [{ path: wrapper, message: 'must be object' }], removed: [] };
    const checked = check(read.value);
    const beside = Object.keys(args).filter((key) => key !== wrapper);
    const removed = [...checked.removed.map((path) => within(wrapper, path)), ...beside];
    if (!checked.ok) return { ok: false, faults: placeWithin(checked.faults, wrapper), removed };
    const { coerced, dropped } = checked;
    return {
      ...checked,
      removed,
      coerced: coerced.map((path) => within(wrapper, path)),
      ...(dropped === undefined ? {} : { dropped: dropped.map((path) => within(wrapper, path)) }),
    };
  };
}

/** Whether arguments came within the property that they were offered in. */
export function isWrapped(args: JsonObject, wrapper: string): boolean {
  return Object.hasOwn(args, wrapper);
}

/** Faults of what stands in a property, by their paths from outside. */
export function placeWithin(faults: readonly ArgumentFault[], wrapper: string): readonly ArgumentFault[] {
  return faults.map((fault) => ({ ...fault, path: within(wrapper, fault.path) }));
}

function within(wrapper: string, path: string): string {
  return path === '' ? wrapper : `${wrapper}.${path}`;
}
