/*
 * Modules of Node, loaded on first use. An import takes longer: it reads all exports, of which some load more modules.
 */

/** It takes a sixth of the package's import time. */
export const nodeCrypto = () => process.getBuiltinModule('node:crypto');

/** Workers lack it. */
export const nodeFiles = () => process.getBuiltinModule('node:fs');

/** An import loads Node's `fetch` too, and takes as long as importing the package. */
export const nodeHttp = () => process.getBuiltinModule('node:http');

export const nodeHttps = () => process.getBuiltinModule('node:https');

export const nodeUtil = () => process.getBuiltinModule('node:util');
