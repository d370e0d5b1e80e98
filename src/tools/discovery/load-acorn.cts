/** Loads acorn for the first parameter list that must be parsed. */
export function loadAcorn(): typeof import('acorn') {
  return require('acorn');
}
