import type { SyntaxNode } from '../compiler/syntax-node.js';
import type { TypeProblem, TypeWalk } from '../types/type-walk.js';
import { writeType } from '../types/write-type.js';
import type { Finding } from './class-draft.js';
import { decorationOf } from './decorator-roles.js';
import { lineOf, type ProjectScan } from './project-scan.js';
import { referToClass } from './refer-to-class.js';

/** A new walk over the types of one method or class. */
export function openWalk(scan: ProjectScan, direction: TypeWalk['direction']): TypeWalk {
  const walk: TypeWalk = {
    view: scan.view,
    direction,
    open: [],
    names: new Map(),
    definitions: new Map(),
    faults: [],
    warnings: [],
    write: (place) => writeType(place, walk),
    decoration: (declaration) => decorationOf(declaration, scan.view, direction),
    classReference: (symbol) => referToClass(symbol, scan),
  };
  return walk;
}

/** Where the types of a walk are written. */
export interface WalkPlace {
  readonly node: SyntaxNode;
  readonly where: string;
  readonly fix: string;
}

/** Hands what a walk has found so far to the scan, with its place, and empties it. */
export function reportWalk(walk: TypeWalk, scan: ProjectScan, place: WalkPlace): void {
  scan.faults.push(...walk.faults.splice(0).map((one) => findingOf(one, scan, place)));
  scan.warnings.push(...walk.warnings.splice(0).map((one) => findingOf(one, scan, place)));
}

function findingOf({ path, problem, fix }: TypeProblem, scan: ProjectScan, place: WalkPlace): Finding {
  return { ...lineOf(place.node, scan.view), where: place.where, path, problem, fix: fix ?? place.fix };
}
