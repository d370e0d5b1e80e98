import type { SyntaxNode } from '../compiler/syntax-node.js';
import { commentOf } from './comment-of.js';
import { describeSchema } from './finish-schema.js';
import { fault, type TypePlace, type TypeWalk, type Written } from './type-walk.js';
import { writeProperties } from './write-properties.js';

/**
 * A class. On the way out it is what `JSON.stringify` shows of it. On the way in instances are made, so that
 * it has to be plain data that a new instance can take.
 */
export function writeClassType(place: TypePlace, walk: TypeWalk): Written {
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
