import type { TypeHandle } from '../compiler/compiler-view.js';
import { settleSchema } from './finish-schema.js';
import { fault, type OpenType, type TypeWalk, type Written } from './type-walk.js';

/** Deeper than any type that somebody wrote; instantiations can go on for ever. */
const MAX_DEPTH = 60;

/** A type that may contain itself. */
export interface GuardedType {
  readonly key: string;
  readonly type: TypeHandle;
  readonly path: string;
}

/**
 * Writes a type that may contain itself: in place if it does not, otherwise into `$defs` under the name of
 * its alias or declaration. Two types of one name are kept apart by a number, in the order of appearance.
 */
export function guarded(of: GuardedType, walk: TypeWalk, write: () => Written): Written {
  const { key, path } = of;
  const known = walk.names.get(key);
  if (known !== undefined) return { schema: { $ref: referenceTo(known) } };
  const around = walk.open.find((one) => one.key === key);
  if (around !== undefined) {
    around.name ??= freeName(walk, of);
    return { schema: { $ref: referenceTo(around.name) } };
  }
  if (walk.open.length >= MAX_DEPTH) {
    return fault(walk, path.slice(0, 80), {
      problem: `has a type that does not end: ${walk.view.textOf(of.type)}`,
    });
  }
  const opened: OpenType = { key };
  walk.open.push(opened);
  const written = write();
  walk.open.pop();
  if (opened.name === undefined) return written;
  walk.names.set(key, opened.name);
  walk.definitions.set(opened.name, settleSchema(written));
  return { schema: { $ref: referenceTo(opened.name) } };
}

function freeName(walk: TypeWalk, { type }: GuardedType): string {
  const { view } = walk;
  const wanted = (view.aliasOf(type) ?? view.symbolOf(type))?.name ?? '';
  const name = /^[A-Za-z_$][\w$]*$/.test(wanted) && !wanted.startsWith('__') ? wanted : 'Type';
  const taken = new Set([...walk.definitions.keys(), ...walk.open.map((one) => one.name)]);
  let free = name;
  for (let count = 2; taken.has(free); count++) free = `${name}${count}`;
  return free;
}

function referenceTo(name: string): string {
  return `#/$defs/${name}`;
}
