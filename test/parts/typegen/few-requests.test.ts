import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { generate } from '../../../src/dev/typegen/generate.js';
import { closeCompilers, compilerOf, compilerPackage } from './compilers.js';
import { generateTool, smallProject } from './small-project.js';

afterAll(closeCompilers);

interface ClientModule {
  readonly Client: { readonly prototype: { apiRequest(method: string, params: unknown): unknown } };
}

/** A toolset whose methods share no types. */
function toolset(methods: number): string {
  const members = Array.from(
    { length: methods },
    (_, index) => `
  @Tool()
  find${index}(id: string, kind: 'a' | 'b', tags: Array<string>, limit = 10): Promise<string[]> {
    throw new Error([id, kind, tags, limit].join());
  }`,
  );
  return `import { Tool } from 'toolwright';\nexport class Tools {${members.join('\n')}\n}\n`;
}

/** The number of requests to TypeScript 7 about positions in the sources. */
async function requestsFor(version: '7.1' | '7.0', methods: number): Promise<number> {
  const client = pathToFileURL(join(compilerPackage(version), 'dist/api/sync/client.js')).href;
  const { Client } = (await import(client)) as ClientModule;
  using project = smallProject({ 'src/tools.ts': toolset(methods) });
  const view = (await compilerOf(version)).open(join(project.folder, 'tsconfig.json'));
  const asked = jest.spyOn(Client.prototype, 'apiRequest');
  try {
    expect(generate({ view, folder: project.folder }).tools).toBe(methods);
    return asked.mock.calls.filter(([method]) => /At|FromTypeNode/.test(method)).length;
  } finally {
    asked.mockRestore();
  }
}

beforeAll(() => compilerOf('7.0'), 60_000);

test.each(['7.1', '7.0'] as const)(
  'TypeScript %s gets one batch of requests for all methods of a class',
  async (version) => {
    const few = await requestsFor(version, 1);
    expect(await requestsFor(version, 20)).toBe(few);
  },
  60_000,
);

test('a default that TypeScript 7 cannot serialize is read from the source', async () => {
  const { text } = await generateTool('@Tool() wait(most = 1e999, first = -1e999): void {}');
  expect(text).toContain('default: Infinity');
  expect(text).toContain('default: -Infinity');
});
