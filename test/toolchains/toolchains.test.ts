import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Installation, installBuilt } from '../packed/installation.js';
import { outputOfNode, runNode } from '../processes/run-node.js';
import { bundle, bundleOf, runBundled, TOOLCHAINS } from './build-with.js';

let installed: Installation;

beforeAll(() => {
  installed = installBuilt();
  cpSync(join(import.meta.dirname, 'project'), installed.folder, { recursive: true });
  const { folder, unpacked } = installed;
  outputOfNode([join(unpacked, 'dist', 'src', 'dev', 'cli', 'main.js'), 'generate'], { folder });
});

afterAll(() => installed?.remove());

describe('a project with toolsets gives the same report when built by', () => {
  let first: string | undefined;

  test.each(Object.keys(TOOLCHAINS))('%s', (name) => {
    const report = TOOLCHAINS[name]?.(installed.folder).trim() ?? '';
    first ??= report;
    expect(JSON.parse(report)).toEqual(JSON.parse(first));
    // Prompt caches depend on the order of keys too.
    expect(report).toBe(first);
  });

  test('and the report contains the arguments that the types require, as the declared classes', () => {
    const { definitions, results } = JSON.parse(first ?? '{}') as {
      definitions: unknown[];
      results: string[];
    };
    expect(definitions).toHaveLength(3);
    expect(results).toEqual([
      '{"found":"cus_1 open 20 3 shop_find_orders","at":"1970-01-01T00:00:00.000Z"}',
      expect.stringContaining('- state: must be one of'),
      'true true 1,2',
      expect.stringContaining('lines.0.quantity'),
      '1000 null bigint,radius a true false 1,two',
    ]);
  });

  test('and its generated file equals the committed file', () => {
    const generated = readFileSync(join(installed.folder, 'src', 'toolwright.gen.ts'), 'utf8');
    expect(generated).toBe(
      readFileSync(join(import.meta.dirname, 'project', 'src', 'toolwright.gen.ts'), 'utf8'),
    );
  });
});

test('an ESM bundle with external tsyringe loads it from node_modules beside the program', () => {
  const { folder } = installed;
  const outfile = join('out-injected', 'main.js');
  bundle(folder, { outfile, format: 'esm', external: ['tsyringe', 'reflect-metadata'] });
  const { results } = JSON.parse(outputOfNode([outfile], { folder })) as { results: string[] };
  expect(results[0]).toContain('cus_1 open');
});

test('a bundle that contains class-validator but not toolwright fails with an error', () => {
  const { folder } = installed;
  const outfile = join('out-apart', 'main.js');
  bundle(folder, { outfile, format: 'esm', external: ['toolwright', 'toolwright/*', 'tsyringe'] });
  const { exitCode, stderr } = runNode([outfile], { folder });
  expect(exitCode).toBe(1);
  expect(stderr).toMatch(/the class-validator of class \w+ is inside a bundle/);
});

describe('a bundle that runs in an empty folder', () => {
  const DTO = `
    import { IsEmail } from 'class-validator';
    import { discoverTools, Param, Tool, ToolRegistry, Toolset } from 'toolwright';
    class Person { @IsEmail() email; }
    @Toolset()
    class Mail {
      @Tool('Greets')
      greet(@Param({ name: 'person', type: () => Person }) person) { return 'Hello, ' + person.email; }
    }
    const tools = new ToolRegistry().register(...discoverTools({ toolsets: [Mail] }));
    for (const email of ['a@b.org', 'nobody'])
      console.log((await tools.execute('greet', { person: { email } })).forLLM.split('\\n')[0]);`;

  test('validates DTO classes if it imports toolwright/dto, and otherwise fails at start-up', async () => {
    const run = (code: string) => runBundled(installed.folder, code);
    expect(await run(`import 'toolwright/dto';\n${DTO}`)).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^Hello, a@b\.org\n.*not valid|invalid|failed/),
    });
    const { exitCode, stderr } = await run(DTO);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/the class-validator of class \w+ is inside a bundle/);
    expect(stderr).toMatch(/import 'toolwright\/dto' before the class/);
  });

  test('creates toolsets without tsyringe, and fails at start-up if a toolset needs it', async () => {
    const code = (body: string) => `
      import { discoverTools, Tool, ToolRegistry, Toolset } from 'toolwright';
      @Toolset() class Clock { ${body} @Tool('Now') now() { return 'noon'; } }
      const tools = new ToolRegistry().register(...discoverTools({ toolsets: [Clock] }));
      console.log((await tools.execute('now', {})).forLLM);`;
    expect(await runBundled(installed.folder, code(''))).toEqual({
      exitCode: 0,
      stdout: 'noon\n',
      stderr: '',
    });
    const { exitCode, stderr } = await runBundled(installed.folder, code('constructor(store) {}'));
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(
      /\w+: its constructor takes an argument: tsyringe, which injects the arguments of constructors, cannot be loaded/,
    );
    expect(stderr).toMatch(/npm install tsyringe; in a bundle, import 'toolwright\/tsyringe'/);
  });

  test('contains only the packages that it uses, and is smaller than 400 kB', async () => {
    const { code, packages } = await bundleOf(
      installed.folder,
      `import { defineTool, runToolLoop } from 'toolwright'; console.log(defineTool, runToolLoop);`,
    );
    expect(packages.sort()).toEqual(['reflect-metadata', 'toolwright']);
    expect(code.length).toBeLessThan(400_000);
  });
});
