import type { SyntaxNode } from '../compiler/syntax-node.js';
import type { CodeReference } from '../types/described-schema.js';
import { definedParts } from '../types/type-walk.js';
import { allDecorators } from './decorator-roles.js';
import { classReference } from './exported-class.js';
import { lineage } from './find-toolsets.js';
import type { ProjectScan } from './project-scan.js';
import { constructorOf } from './refer-to-class.js';

/** What a constructor asks for, and the classes of the project among it. */
export interface ConstructorDraft {
  readonly dependencies: readonly (CodeReference | undefined)[];
  readonly classes: readonly SyntaxNode[];
}

/**
 * The classes that a class's constructor asks for, so that they can be injected where no metadata is
 * emitted. What is no class (an interface, a token) stays with `@inject`.
 */
export function describeConstructor(node: SyntaxNode, scan: ProjectScan): ConstructorDraft {
  const creation = constructorOf(lineage(node, scan.view), scan.view);
  const found = (creation?.parameters ?? []).map((parameter) => dependencyOf(parameter, scan));
  return {
    dependencies: found.map((one) => one?.reference),
    classes: found.flatMap((one) => one?.node ?? []),
  };
}

interface Dependency {
  readonly reference: CodeReference;
  readonly node?: SyntaxNode;
}

function dependencyOf(parameter: SyntaxNode, { view }: ProjectScan): Dependency | undefined {
  // `@inject` and its kind say themselves what is wanted.
  if (allDecorators(parameter, view).length > 0) return undefined;
  const [type, second] = definedParts({ view }, view.typeAt(parameter));
  const symbol = type && second === undefined ? view.symbolOf(type) : undefined;
  if (symbol === undefined || !(symbol.flags & (view.symbolFlags.Class ?? 0))) return undefined;
  const node = view.declarations(symbol).find(({ kind }) => kind === view.syntaxKinds.ClassDeclaration);
  if (node === undefined) return undefined;
  const reference = classReference(node, view);
  if (reference === undefined) return undefined;
  // What a package's own classes are injected with, its declarations do not show: `@inject` is lost there.
  return view.fileOf(node).isDeclaration ? { reference } : { reference, node };
}
