/** tsyringe, loaded with the first discovery: a process that only declares tools need not wait for it. */
export function loadTsyringe(): typeof import('tsyringe') {
  return require('tsyringe');
}
