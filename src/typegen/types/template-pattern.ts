import type { TypeHandle } from '../compiler/compiler-view.js';
import { hasFlag, type TypeWalk } from './type-walk.js';

/** What `String(value)` writes for numbers; TypeScript compares with that. */
const NUMBER = '(?:-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:e[+-][0-9]+)?|-?Infinity|NaN)';
const BIGINT = '-?(?:0|[1-9][0-9]*)';
const ANY = '[\\s\\S]*';

/** The pattern of a template literal type, `` `cus_${number}` ``. */
export function templatePattern(type: TypeHandle, walk: TypeWalk): string {
  return `^${bodyOf(type, walk)}$`;
}

/** The pattern of the keys of an object: names, and whatever fits one of the template literal types. */
export function keyPattern(
  templates: readonly TypeHandle[],
  names: readonly string[],
  walk: TypeWalk,
): string {
  const keys = [...templates.map((type) => bodyOf(type, walk)), ...names.map(escapeText)];
  return keys.length === 1 ? `^${keys[0]}$` : `^(?:${keys.join('|')})$`;
}

function bodyOf(type: TypeHandle, walk: TypeWalk): string {
  const { texts, types } = walk.view.templateOf(type);
  return texts
    .map((text, index) => escapeText(text) + (types[index] === undefined ? '' : partOf(types[index], walk)))
    .join('');
}

function partOf(type: TypeHandle, walk: TypeWalk): string {
  if (hasFlag(walk, type, 'TemplateLiteral')) return bodyOf(type, walk);
  if (hasFlag(walk, type, 'Number')) return NUMBER;
  if (hasFlag(walk, type, 'BigInt')) return BIGINT;
  const literal = walk.view.literalOf(type);
  if (literal !== undefined) return escapeText(String(literal));
  if (!hasFlag(walk, type, 'Union')) return ANY;
  return `(?:${walk.view
    .constituents(type)
    .map((part) => partOf(part, walk))
    .sort()
    .join('|')})`;
}

function escapeText(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}
