import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import { transformSync } from '@swc/core';
import { builtFile } from '../../processes/built-file.js';
import { NodeProcess } from '../../processes/node-process.js';
import { runNode } from '../../processes/run-node.js';
import { ROOT } from '../../structure/repository.js';

const MAIN = builtFile('dist/src/dev/cli/main.js');

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

const APPLICATION = `
import { Injectable, Module, UseGuards } from '@nestjs/common';
import { Param, Tool, ToolContext } from 'toolwright';
import { ToolwrightModule, toolCallOf } from 'toolwright/nestjs';

@Injectable()
class AdminGuard {
  canActivate(context) {
    return toolCallOf(context)?.request?.user?.isAdmin === true;
  }
}

@Injectable()
class Ledger {
  readonly entries = ['rent', 'tea', 'milk'];
}

@Injectable()
class LedgerTools {
  constructor(private readonly ledger: Ledger) {}

  @Tool('Entries of the ledger')
  @UseGuards(AdminGuard)
  entries(@Param('How many') limit: number, context: ToolContext) {
    return { entries: this.ledger.entries.slice(0, limit), user: context.data.user };
  }

  @Tool({ description: 'Write an entry', approval: true })
  write(@Param('What') entry: string) {
    return \`wrote \${entry}\`;
  }
}

@Module({
  imports: [ToolwrightModule.forRoot({ data: (request) => ({ user: request.user?.id }) })],
  providers: [Ledger, LedgerTools],
})
export class AppModule {}
`;

const SWC = {
  jsc: {
    target: 'es2022',
    parser: { syntax: 'typescript', decorators: true },
    transform: { legacyDecorator: true, decoratorMetadata: true, useDefineForClassFields: false },
  },
  module: { type: 'es6' },
} as const;

/** A separate project with the built package and the packages of the repository. */
function newProject(): string {
  const folder = mkdtempSync(join(tmpdir(), 'inspect-nest-'));
  folders.push(folder);
  const modules = join(folder, 'node_modules');
  mkdirSync(modules);
  for (const name of ['@nestjs', '@jest', '@swc', 'reflect-metadata', 'rxjs', 'jest'])
    symlinkSync(join(ROOT, 'node_modules', name), join(modules, name), 'junction');
  symlinkSync(ROOT, join(modules, 'toolwright'), 'junction');
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  writeFileSync(join(folder, 'app-module.js'), transformSync(APPLICATION, SWC).code);
  const jest = { extensionsToTreatAsEsm: ['.ts'], transform: { '^.+\\.ts$': ['@swc/jest', SWC] } };
  writeFileSync(
    join(folder, 'jest.config.json'),
    JSON.stringify({ ...jest, cacheDirectory: join(folder, 'cache') }),
  );
  return folder;
}

async function ask(url: string, path: string, body: object): Promise<Record<string, unknown>> {
  const [address = '', token = ''] = url.split('#token=');
  const response = await fetch(`${address}api/${path}`, {
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    method: 'POST',
    body: JSON.stringify(body),
  });
  return (await response.json()) as Record<string, unknown>;
}

test('tests that toolwright inspect writes for a NestJS module pass, with guards, data and approvals', async () => {
  const folder = newProject();
  await using process = new NodeProcess([MAIN, 'inspect', 'app-module.js'], { folder });
  const [url] = await process.waitFor(/http:\/\/127\.0\.0\.1:\d+\/#token=\S+/);
  const call = async (tool: string, args: object, request: object) =>
    ask(url, 'calls', { tool, arguments: args, scope: { request } });
  const seen = await call('entries', { limit: 2 }, { user: { id: 'ann', isAdmin: true } });
  expect(seen).toMatchObject({ status: 'success', forLLM: '{"entries":["rent","tea"],"user":"ann"}' });
  const refused = await call('entries', { limit: 2 }, { user: { id: 'bob' } });
  expect(refused).toMatchObject({ status: 'refused' });
  const waiting = await call('write', { entry: 'salt' }, {});
  const written = await ask(url, `call-answers/${waiting.key}`, { approved: true });
  expect(written).toMatchObject({ status: 'success', forLLM: 'wrote salt' });
  for (const { key } of [seen, refused, written]) {
    const { path } = await ask(url, 'tests', { key, save: true });
    expect(readFileSync(String(path), 'utf8')).toContain('createApplicationContext(AppModule');
  }
  const jest = ['--experimental-vm-modules', 'node_modules/jest/bin/jest.js', '--config', 'jest.config.json'];
  const run = runNode(jest, { folder });
  expect(run).toMatchObject({
    exitCode: 0,
    stderr: expect.stringContaining('Tests:       3 passed, 3 total'),
  });
});
