/** acorn, loaded with the first parameter list that has to be parsed. */
export function loadAcorn(): typeof import('acorn') {
  return require('acorn');
}
