/** diff, loaded with the first patch: it is twenty files. */
export function loadDiff(): typeof import('diff') {
  return require('diff');
}
