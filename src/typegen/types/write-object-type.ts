import type { SyntaxNode, TypeHandle } from '../compiler/compiler-view.js';
import { commentOf, describeSchema } from './finish-schema.js';
import { guarded, standardType } from './standard-type.js';
import {
  type DescribedSchema,
  fault,
  hasFlag,
  type TypePlace,
  type TypeWalk,
  type Written,
} from './type-walk.js';
import { listBase, writeArray, writeExtendedList, writeTuple } from './write-array.js';
import { mayHaveMember, writeProperties } from './write-properties.js';

/** An object type: an array, a tuple, a class, something of the language itself, or plain data. */
export function writeObjectType(place: TypePlace, walk: TypeWalk): Written {
  const { type, path } = place;
  const { view } = walk;
  const key = String(type.id);
  if (view.isArray(type) || view.isTuple(type)) {
    const write = () => (view.isArray(type) ? writeArray(place, walk) : writeTuple(place, walk));
    // Only by its own alias can a list contain itself; otherwise the name is that of what it lists.
    return view.aliasOf(type) === undefined ? write() : guarded({ key, type, path }, walk, write);
  }
  const standard = standardType(place, walk);
  if (standard !== undefined) return standard;
  const list = listBase(type, walk);
  if (list !== undefined)
    return guarded({ key, type, path }, walk, () => writeExtendedList(list, place, walk));
  if (mayHaveMember(type, 'CallSignature', walk) && view.callSignatures(type).length > 0) {
    return writeFunction(place, walk);
  }
  if (walk.direction === 'out' && isIterable(type, walk)) return { schema: {} };
  const symbol = view.symbolOf(type);
  const isClass = symbol !== undefined && (symbol.flags & (view.symbolFlags.Class ?? 0)) !== 0;
  return guarded({ key, type, path }, walk, () =>
    isClass && !hasFlag(walk, type, 'Intersection')
      ? writeClassType(place, walk)
      : writeProperties(place, walk),
  );
}

/** It is written as a list, as an object or by its fields: that depends on the value. */
function isIterable(type: TypeHandle, { view }: TypeWalk): boolean {
  const names = view.propertiesOf(type).map(({ name }) => name);
  return names.some((name) => ITERATOR.test(name)) && !names.includes('toJSON');
}

/** As the compilers name members whose keys are symbols. */
const ITERATOR = /^__@(?:iterator|asyncIterator)(?:@|$)/;

/** A function is nothing in JSON: refused on the way in, left out on the way out. */
function writeFunction({ path }: TypePlace, walk: TypeWalk): Written {
  if (walk.direction === 'out') return { schema: {} satisfies DescribedSchema };
  return fault(walk, path, { problem: 'is a function, which JSON cannot carry' });
}

/**
 * A class. On the way out it is what `JSON.stringify` shows of it. On the way in instances are made, so that
 * it has to be plain data that a new instance can take.
 */
function writeClassType(place: TypePlace, walk: TypeWalk): Written {
  const symbol = walk.view.symbolOf(place.type);
  if (walk.direction === 'out') return writeResult(place, walk);
  if (symbol === undefined) return writeProperties(place, walk);
  const of = walk.classReference(symbol);
  if (of.kind === 'fault') return fault(walk, place.path, of);
  if (of.kind === 'structural') return writeProperties(place, walk);
  const [declaration] = walk.view.declarations(symbol);
  const comment = declaration && commentOf(walk.view, declaration);
  return describeSchema({ schema: { instanceOf: of.reference } }, comment && { ...comment, tags: [] });
}

/** Of an instance without fields that JSON shows, its text or an error is written: that depends on the class. */
function writeResult(place: TypePlace, walk: TypeWalk): Written {
  const written = writeProperties(place, walk);
  const isEmpty = written.schema.type === 'object' && Object.keys(written.schema).length === 1;
  return isEmpty ? { schema: {} } : written;
}

/** Whether a class has methods: then it is more than data. */
export function methodNames(declaration: SyntaxNode, { view }: Pick<TypeWalk, 'view'>): readonly string[] {
  const { MethodDeclaration, StaticKeyword } = view.syntaxKinds;
  return (declaration.members ?? [])
    .filter((member) => member.kind === MethodDeclaration)
    .filter(({ modifiers = [] }) => !modifiers.some(({ kind }) => kind === StaticKeyword))
    .map(({ name }) => name?.text ?? 'a method');
}
