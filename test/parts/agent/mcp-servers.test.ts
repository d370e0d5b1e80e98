import { tmpdir } from 'node:os';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createAgent } from 'toolwright/agent';
import { type ServedLibrary, serveLibrary } from '../../../examples/mcp/serve-library.js';
import { signIn } from '../../../examples/mcp/sign-in.js';
import { builtFile } from '../../processes/built-file.js';

const OPTIONS = { provider: 'offline', model: 'offline', folder: tmpdir() } as const;

describe('createAgent with MCP servers', () => {
  let library: ServedLibrary;
  beforeEach(async () => {
    library = await serveLibrary(0);
  });
  afterEach(() => library.close());

  test('createAgent takes the tools of a server at an address, and of a program that it starts', async () => {
    const command = builtFile('dist/src/dev/cli/main.js');
    const args = [command, 'mcp', builtFile('dist/examples/mcp/tools.js'), '--deny', 'borrow_book'];
    await using agent = await createAgent({
      ...OPTIONS,
      mcp: {
        near: { command: process.execPath, args, env: { SHOP: 'corner' } },
        far: { url: library.url.href, headers: { authorization: `Bearer ${await signIn(library.url)}` } },
      },
      permissions: { mode: 'auto' },
    });
    const names = agent.registry.list();
    expect(names).toEqual(expect.arrayContaining(['near_search_books', 'far_search_books']));
    for (const name of names.filter((one) => one.endsWith('search_books'))) {
      const result = await agent.registry.execute(name, { words: 'Eliot' });
      expect(result.forLLM).toContain('Middlemarch');
    }
  });

  test('createAgent tells of servers that are wrong, and of one that is not there', async () => {
    const mcp = { one: { comand: 'npx' }, two: { url: 'shop' }, three: 7 };
    await expect(createAgent({ ...OPTIONS, mcp } as never)).rejects.toMatchObject({
      code: 521,
      faults: [
        { option: 'mcp.one.command' },
        { option: 'mcp.one.comand', problem: expect.stringContaining('`command`') },
        { option: 'mcp.two.url' },
        { option: 'mcp.three' },
      ],
    });
    const url = library.url.href;
    await library.close();
    await expect(createAgent({ ...OPTIONS, mcp: { gone: { url } } })).rejects.toMatchObject({
      code: 521,
      faults: [{ option: 'mcp.gone', problem: expect.stringContaining('could not be made') }],
    });
    library = await serveLibrary(0);
  });
});
