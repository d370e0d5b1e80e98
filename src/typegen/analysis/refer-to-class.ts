import type { SymbolHandle } from '../compiler/compiler-view.js';
import type { SyntaxNode } from '../compiler/syntax-node.js';
import type { ClassReference } from '../types/type-walk.js';
import { methodNames } from '../types/write-class-type.js';
import { allDecorators } from './decorator-roles.js';
import { classReference } from './exported-class.js';
import { lineage } from './find-toolsets.js';
import type { ProjectScan } from './project-scan.js';

const AS_DATA =
  'an interface of its data, @Param({ schema: … }), or a DTO class with decorators on its properties';

/**
 * How a class among the arguments is referred to. Instances are made of DTO classes: classes whose
 * properties have decorators, and classes that are nothing but data. A class with methods and without
 * decorated properties is no data: what would make it whole is not known.
 */
export function referToClass(symbol: SymbolHandle, scan: ProjectScan): ClassReference {
  const { view } = scan;
  const node = view.declarations(symbol).find(({ kind }) => kind === view.syntaxKinds.ClassDeclaration);
  if (node === undefined) return { kind: 'structural' };
  const classes = lineage(node, view);
  const isDto = classes.some((one) =>
    (one.members ?? []).some((member) => isDecoratedProperty(member, scan)),
  );
  const methods = classes.flatMap((one) => methodNames(one, { view }));
  const name = symbol.name;
  if (!isDto && methods.length > 0) {
    return {
      kind: 'fault',
      problem: `is the class ${name}, which has methods (${methods[0]}) and so is more than data`,
      fix: AS_DATA,
    };
  }
  if ((node.typeParameters ?? []).length > 0) return { kind: 'structural' };
  const needed = needsArguments(classes, scan);
  if (needed)
    return { kind: 'fault', problem: `is the class ${name}, whose constructor ${needed}`, fix: AS_DATA };
  const reference = classReference(node, view);
  if (reference === undefined && view.fileOf(node).isDeclaration) return { kind: 'structural' };
  if (reference === undefined) {
    return {
      kind: 'fault',
      problem: `is the class ${name}, which is not exported`,
      fix: `export class ${name}`,
    };
  }
  scan.dataClasses.set(node, symbol);
  return { kind: 'reference', reference };
}

function isDecoratedProperty(member: SyntaxNode, { view }: ProjectScan): boolean {
  return member.kind === view.syntaxKinds.PropertyDeclaration && allDecorators(member, view).length > 0;
}

/** A new instance is made without arguments; a body that would work with them would fail or go wrong. */
function needsArguments(classes: readonly SyntaxNode[], { view }: ProjectScan): string | undefined {
  const abstract = classes.at(-1)?.modifiers?.some(({ kind }) => kind === view.syntaxKinds.AbstractKeyword);
  if (abstract) return 'cannot be called, because it is abstract';
  const creation = constructorOf(classes, view);
  const wants = (creation?.parameters ?? []).some(
    ({ questionToken, initializer, dotDotDotToken }) => !questionToken && !initializer && !dotDotDotToken,
  );
  return wants && (creation?.body?.statements ?? []).length > 0 ? 'works with arguments' : undefined;
}

/** The constructor that runs: the class's own, or the nearest of its bases. */
export function constructorOf(
  classes: readonly SyntaxNode[],
  view: ProjectScan['view'],
): SyntaxNode | undefined {
  return classes
    .flatMap((one) => one.members ?? [])
    .findLast(({ kind, body }) => kind === view.syntaxKinds.Constructor && body !== undefined);
}
