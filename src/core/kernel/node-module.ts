/** Node's cryptography, loaded when it is first needed: it takes a sixth of what importing this package does. */
export function nodeCrypto(): typeof import('node:crypto') {
  return process.getBuiltinModule('node:crypto');
}

/** Node's utilities, which take half as long, and which only faults need. */
export function nodeUtil(): typeof import('node:util') {
  return process.getBuiltinModule('node:util');
}

/** Node's `fs`, which Workers lack; loaded only when a file is opened. */
export function nodeFiles(): typeof import('node:fs') {
  return process.getBuiltinModule('node:fs');
}

/** Node's servers, which only a test of a provider needs. */
export function nodeHttp(): typeof import('node:http') {
  return process.getBuiltinModule('node:http');
}
