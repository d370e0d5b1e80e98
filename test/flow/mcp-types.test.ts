import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { runCompiler } from '../house/run-compiler.js';
import { installPacked } from '../packed/installation.js';

const SERVER = `
import { ToolRegistry } from 'toolwright';
import { createMcpServer, type McpCaller } from 'toolwright/mcp';
const tenantOf = ({ headers }: McpCaller): string => headers?.get('x-tenant') ?? '';
await createMcpServer(new ToolRegistry(), { scope: (caller) => ({ data: { tenant: tenantOf(caller) } }) }).close();
`;

test('who only serves tools compiles without the SDK’s client, with every check on', () => {
  const installed = installPacked({
    without: ['@modelcontextprotocol/client', '@modelcontextprotocol/node'],
  });
  try {
    const compilerOptions = {
      ...{ target: 'ES2023', lib: ['ES2024'], module: 'NodeNext', types: ['node'] },
      ...{ strict: true, skipLibCheck: false, noEmit: true },
    };
    writeFileSync(join(installed.folder, 'server.ts'), SERVER);
    writeFileSync(
      join(installed.folder, 'tsconfig.json'),
      JSON.stringify({ compilerOptions, files: ['server.ts'] }),
    );
    expect(runCompiler('tsconfig.json', { folder: installed.folder })).toEqual([]);
  } finally {
    installed.remove();
  }
}, 60_000);
