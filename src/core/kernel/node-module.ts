/** Node's crypto module, loaded on first use: it takes a sixth of the package's import time. */
export function nodeCrypto(): typeof import('node:crypto') {
  return process.getBuiltinModule('node:crypto');
}

/** Node's util module, loaded on first use: only faults need it. */
export function nodeUtil(): typeof import('node:util') {
  return process.getBuiltinModule('node:util');
}

/** Node's `fs`, which Workers lack; loaded only when a file is opened. */
export function nodeFiles(): typeof import('node:fs') {
  return process.getBuiltinModule('node:fs');
}

/** Node's http module, which only tests of providers need. */
export function nodeHttp(): typeof import('node:http') {
  return process.getBuiltinModule('node:http');
}
