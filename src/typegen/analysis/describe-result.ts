import type { TypeHandle } from '../compiler/compiler-view.js';
import type { SyntaxNode } from '../compiler/syntax-node.js';
import type { DescribedSchema } from '../types/described-schema.js';
import { writeSchema } from '../types/finish-schema.js';
import { isStandard } from '../types/standard-type.js';
import { admitsUndefined, definedParts, hasFlag, type TypeWalk } from '../types/type-walk.js';
import { isOwnFile } from './package-files.js';

/** What a method returns, as it is declared. */
export interface DeclaredResult {
  readonly type: TypeHandle;
  /** The annotation, where there is one. */
  readonly node?: SyntaxNode;
  /** What `@returns` says. */
  readonly words?: string;
}

/**
 * The schema of what a method's promise or generator leads to. None where there is nothing to say: nothing
 * is returned, anything may be, or the value is a worded result (`ToolResult`, content parts, an `Error`).
 */
export function describeResult(
  { type, node, words }: DeclaredResult,
  walk: TypeWalk,
): DescribedSchema | undefined {
  const settled = settledType({ type, node }, walk);
  if (settled === undefined || admitsUndefined(walk, settled.type)) return undefined;
  if (definedParts(walk, settled.type).some((part) => isWorded(part, walk))) return undefined;
  const schema = writeSchema({ ...settled, path: '' }, walk);
  if (Object.keys(schema).length === 0) return undefined;
  const definitions = walk.definitions.size === 0 ? {} : { $defs: Object.fromEntries(walk.definitions) };
  return { ...schema, ...(words ? { description: words } : {}), ...definitions };
}

interface TypeAndNode {
  readonly type: TypeHandle;
  readonly node?: SyntaxNode;
}

/** The position of the type argument that is the value in the end. */
const WRAPPERS: ReadonlyMap<string, number> = new Map([
  ['Promise', 0],
  ['PromiseLike', 0],
  ['AsyncGenerator', 1],
  ['Generator', 1],
  ['AsyncIterable', 1],
  ['AsyncIterableIterator', 1],
  ['AsyncIterator', 1],
]);

function settledType({ type, node }: TypeAndNode, walk: TypeWalk): TypeAndNode | undefined {
  const symbol = walk.view.symbolOf(type);
  const position = symbol && isStandard(symbol, walk) ? WRAPPERS.get(symbol.name) : undefined;
  if (position === undefined) return { type, node };
  const inner = walk.view.typeArguments(type)[position];
  return inner && settledType({ type: inner, node: node?.typeArguments?.[position] }, walk);
}

function isWorded(type: TypeHandle, walk: TypeWalk): boolean {
  const { view } = walk;
  if (hasFlag(walk, type, 'Any', 'Unknown', 'Never', 'Void')) return true;
  if (!hasFlag(walk, type, 'Object', 'Intersection')) return false;
  const symbol = view.symbolOf(type);
  if (symbol?.name === 'ToolResult' && view.declaringFiles(symbol).some(isOwnFile)) return true;
  const properties = view.propertiesOf(type);
  const content = properties.find(({ name }) => name === 'content');
  if (content !== undefined && view.isArray(view.typeOfSymbol(content))) return true;
  const names = new Set(properties.map(({ name }) => name));
  return names.has('stack') && names.has('message') && names.has('name');
}
