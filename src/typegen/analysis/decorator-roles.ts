import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { CompilerView, SyntaxNode } from '../compiler/compiler-view.js';
import type { Decoration, TypeWalk } from '../types/type-walk.js';

/** A decorator of this package, whatever it is called where it stands. */
export interface KnownDecorator {
  readonly role: DecoratorRole;
  /** The argument of the call, where there is one. */
  readonly argument?: SyntaxNode;
}

/** The decorators that say something of a tool. */
type DecoratorRole = 'tool' | 'toolset' | 'param' | 'args' | 'context';

/** The file of the package that declares each of them. */
const DECLARING_FILE = /\/decorators\/(tool|toolset|param|args|context)(?:\.d)?\.ts$/;

/**
 * The decorators of this package at a class, method, parameter or property. They are known by what they
 * resolve to, not by their names: they may be aliased, re-exported, or stand in a namespace or a constant.
 */
export function knownDecorators(node: SyntaxNode, view: CompilerView): readonly KnownDecorator[] {
  return allDecorators(node, view).flatMap((decorator) => {
    const called = decorator.expression;
    const isCall = called?.kind === view.syntaxKinds.CallExpression;
    const callee = isCall ? called?.expression : called;
    const role = callee && roleOf(callee, view);
    return role === undefined ? [] : [{ role, argument: isCall ? called?.arguments?.[0] : undefined }];
  });
}

/** All decorators, whosever they are. */
export function allDecorators(node: SyntaxNode, view: CompilerView): readonly SyntaxNode[] {
  return (node.modifiers ?? []).filter(({ kind }) => kind === view.syntaxKinds.Decorator);
}

function roleOf(callee: SyntaxNode, view: CompilerView): DecoratorRole | undefined {
  const symbol = view.symbolAt(nameNode(callee, view));
  if (symbol === undefined) return undefined;
  const named = roleByFiles(view.declaringFiles(view.unalias(symbol)));
  if (named !== undefined) return named;
  // `const Action = Tool`: its type is still the decorator's.
  const type = view.symbolOf(view.typeAt(callee));
  return type && roleByFiles(view.declaringFiles(type));
}

function nameNode(callee: SyntaxNode, view: CompilerView): SyntaxNode {
  const isAccess = callee.kind === view.syntaxKinds.PropertyAccessExpression;
  return isAccess && callee.name ? callee.name : callee;
}

function roleByFiles(files: readonly string[]): DecoratorRole | undefined {
  for (const file of files) {
    const role = DECLARING_FILE.exec(file)?.[1] as DecoratorRole | undefined;
    if (role !== undefined && isOwnFile(file)) return role;
  }
  return undefined;
}

/** The value of one option of a decorator's object argument; nothing where it is not written there. */
export function optionOf(
  argument: SyntaxNode | undefined,
  name: string,
  view: CompilerView,
): SyntaxNode | undefined {
  if (argument?.kind !== view.syntaxKinds.ObjectLiteralExpression) return undefined;
  const property = argument?.properties?.find((item) => item.name?.text === name);
  return property && (property.initializer ?? property.name);
}

/** The options of `@Param` that say the type: then nobody asks what TypeScript says. */
const TYPE_OPTIONS = ['schema', 'type', 'items', 'enum', 'additionalProperties'];

/** What the decorators of a parameter or property say of its type, on the way in or out. */
export function decorationOf(
  node: SyntaxNode,
  view: CompilerView,
  direction: TypeWalk['direction'],
): Decoration | undefined {
  if (direction === 'out') return isWithheld(node, view) ? 'excluded' : undefined;
  const isTyped = knownDecorators(node, view).some(
    ({ role, argument }) =>
      role === 'param' && TYPE_OPTIONS.some((option) => optionOf(argument, option, view) !== undefined),
  );
  if (isTyped) return 'typed';
  return isExcluded(node, view, 'toClassOnly') ? 'excluded' : undefined;
}

/**
 * Whether a serialiser (NestJS's `ClassSerializerInterceptor`) leaves a property out. Without one it is written,
 * and a schema that does not name it allows it.
 */
function isWithheld(node: SyntaxNode, view: CompilerView): boolean {
  if (isExcluded(node, view, 'toPlainOnly')) return true;
  const isExposed = transforming(node, view, 'Expose').length > 0;
  return !isExposed && node.parent !== undefined && isExcluded(node.parent, view, 'toPlainOnly');
}

/** class-transformer's `@Exclude()`, unless it is about the other way only. */
function isExcluded(node: SyntaxNode, view: CompilerView, way: 'toClassOnly' | 'toPlainOnly'): boolean {
  const other = way === 'toClassOnly' ? 'toPlainOnly' : 'toClassOnly';
  return transforming(node, view, 'Exclude').some(({ expression }) => {
    const [options] = expression?.arguments ?? [];
    return optionOf(options, other, view) === undefined || optionOf(options, way, view) !== undefined;
  });
}

/** The decorators of class-transformer's of one name. */
function transforming(
  node: SyntaxNode,
  view: CompilerView,
  name: 'Exclude' | 'Expose',
): readonly SyntaxNode[] {
  return allDecorators(node, view).filter(({ expression }) => {
    const callee = expression?.expression;
    const symbol = callee && view.symbolAt(callee);
    return symbol !== undefined && view.unalias(symbol).name === name;
  });
}

const names = new Map<string, string | undefined>();

/** Whether a file belongs to this package: installed, linked, or the repository itself. */
export function isOwnFile(path: string): boolean {
  return nearestPackage(dirname(path)) === 'toolwright';
}

function nearestPackage(folder: string): string | undefined {
  if (names.has(folder)) return names.get(folder);
  const parent = dirname(folder);
  const name = manifestIn(folder)?.name;
  const found = name ?? (parent === folder ? undefined : nearestPackage(parent));
  names.set(folder, found);
  return found;
}

interface Manifest {
  readonly name?: string;
  readonly type?: string;
}

function manifestIn(folder: string): Manifest | undefined {
  try {
    return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
  } catch {
    return undefined;
  }
}

/** A class declaration and those of its bases, the base-most first. */
export function lineage(node: SyntaxNode, view: CompilerView): readonly SyntaxNode[] {
  const chain: SyntaxNode[] = [];
  let current: SyntaxNode | undefined = node;
  while (current !== undefined && !chain.includes(current)) {
    chain.unshift(current);
    current = baseOf(current, view);
  }
  return chain;
}

function baseOf(node: SyntaxNode, view: CompilerView): SyntaxNode | undefined {
  const clause = (node.heritageClauses ?? []).find(({ token }) => token === view.syntaxKinds.ExtendsKeyword);
  const expression = clause?.types?.[0]?.expression;
  const symbol = expression && view.symbolAt(expression);
  const declarations = symbol ? view.declarations(view.unalias(symbol)) : [];
  return declarations.find(({ kind }) => kind === view.syntaxKinds.ClassDeclaration);
}

/** Whether Node takes a TypeScript file for an ES module, once it is compiled. */
export function isModuleFile(path: string): boolean {
  const [, kind = ''] = /\.([cm]?)ts$/.exec(path) ?? [];
  return kind === '' ? nearestManifest(dirname(path)).type === 'module' : kind === 'm';
}

function nearestManifest(folder: string): Manifest {
  const found = manifestIn(folder);
  const parent = dirname(folder);
  return found ?? (parent === folder ? {} : nearestManifest(parent));
}
