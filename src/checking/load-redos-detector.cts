/** redos-detector, loaded with the first pattern that has to be looked at. */
export function loadRedosDetector(): typeof import('redos-detector') {
  return require('redos-detector');
}
