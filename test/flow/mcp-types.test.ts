import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { builtFile } from '../processes/built-file.js';
import { runCompiler } from '../processes/run-compiler.js';
import { ROOT } from '../structure/repository.js';

const SERVER = `
import { ToolRegistry } from 'toolwright';
import { createMcpServer, type McpCaller } from 'toolwright/mcp';
const tenantOf = ({ headers }: McpCaller): string => headers?.get('x-tenant') ?? '';
await createMcpServer(new ToolRegistry(), { scope: (caller) => ({ data: { tenant: tenantOf(caller) } }) }).close();
`;
const PACKAGES = ['@modelcontextprotocol/server', '@types/node', 'acorn', 'reflect-metadata', 'tsyringe'];
const ENTRY_POINTS = { toolwright: 'src/index.ts', 'toolwright/mcp': 'src/surfaces/mcp/index.ts' };
const BUILT = dirname(dirname(builtFile('dist/src/index.js')));

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'toolwright-mcp-types-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** A project in which our declarations are checked as source, and those of packages are not. */
function install(): void {
  for (const file of readdirSync(BUILT, { recursive: true, encoding: 'utf8' })) {
    if (!/^(src|decorators)\b.*\.d\.ts$/.test(file)) continue;
    const copy = join(folder, 'declared', file.replace(/\.d\.ts$/, '.ts'));
    mkdirSync(dirname(copy), { recursive: true });
    writeFileSync(copy, readFileSync(join(BUILT, file)));
  }
  for (const name of PACKAGES) {
    const place = join(folder, 'node_modules', name);
    mkdirSync(dirname(place), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules', name), place, 'junction');
  }
  const paths = Object.fromEntries(
    Object.entries(ENTRY_POINTS).map(([name, file]) => [name, [`./declared/${file}`]]),
  );
  const compilerOptions = {
    ...{ target: 'ES2023', lib: ['ES2024'], module: 'NodeNext', types: ['node'], paths },
    ...{ strict: true, skipLibCheck: true, noEmit: true },
  };
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
  writeFileSync(join(folder, 'server.ts'), SERVER);
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['server.ts'] }));
}

test('a project that only serves tools compiles without the client SDK', () => {
  install();
  expect(runCompiler('tsconfig.json', { folder })).toEqual([]);
  const file = join(folder, 'declared/src/surfaces/mcp/server/options.ts');
  writeFileSync(file, `import type { Client } from '@modelcontextprotocol/client';\n${readFileSync(file)}`);
  expect(runCompiler('tsconfig.json', { folder })).toMatchObject([{ code: 'TS2307' }]);
});
