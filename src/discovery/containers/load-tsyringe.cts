let given: typeof import('tsyringe') | undefined;

/** Says which copy is used, where `require` would find another one or none. */
export function giveTsyringe(copy: typeof import('tsyringe')): void {
  given = copy;
}

/** tsyringe, loaded with the first discovery: a process that only declares tools need not wait for it. */
export function loadTsyringe(): typeof import('tsyringe') {
  return given ?? require('tsyringe');
}
