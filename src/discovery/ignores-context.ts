/**
 * Whether a function certainly takes its arguments and no context, told by its source: then none needs to be made
 * for it. Where the source leaves a doubt, it takes one.
 */
export function ignoresContext(execute: (...args: never) => unknown): boolean {
  if (execute.length > 1) return false;
  const source = Function.prototype.toString.call(execute);
  if (/\barguments\b|\beval\b|\.\.\.|\[native code\]/.test(source)) return false;
  return /^(?:async\s+)?[\w$]+\s*=>/.test(source) || hasOneParameter(source);
}

const OPENING = '([{';
const CLOSING = ')]}';

/** A default value may be anything; one that could hide a bracket or a comma is a doubt. */
function hasOneParameter(source: string): boolean {
  let depth = 0;
  for (let index = 0; index < source.length; index += 1) {
    const character = source.charAt(index);
    if (`'"\`/`.includes(character)) return false;
    if (OPENING.includes(character)) depth += 1;
    else if (CLOSING.includes(character)) depth -= 1;
    else if (character === ',' && depth === 1) return false;
    if (depth === 0 && character === ')') return true;
  }
  return false;
}
