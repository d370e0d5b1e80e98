import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import ts from 'typescript-5.9';
import { runCommandLine } from '../../../src/dev/cli/run-command-line.js';
import { PROCESS_LIMIT_MS } from '../../processes/run-node.js';
import { compilerPackage, VERSIONS } from '../typegen/compilers.js';
import { type SmallProject, smallProject, withTypeScript } from '../typegen/small-project.js';
import { runCommand } from './run-command.js';

const TOOLS =
  "import { Tool } from 'toolwright';\nexport class Tools {\n  @Tool('A') a(x: string) { return x; }\n}\n";
const FAULTY = TOOLS.replace('x: string', 'x: symbol, y: () => void').replace('return x', 'return 1');

const SOLUTION = JSON.stringify({ files: [], references: [{ path: './app' }] });

const NO_IMPORT = 'No file imports it. Add to the file that starts the application:';

const read = ({ folder }: SmallProject, path: string) => readFileSync(join(folder, path), 'utf8');

describe('toolwright generate', () => {
  test('writes src/toolwright.gen.ts, and does not rewrite it if it is up to date', async () => {
    using project = smallProject({ 'src/tools.ts': TOOLS });
    const first = await runCommand(['generate'], project.folder);
    expect(first).toEqual({
      code: 0,
      out: `src/toolwright.gen.ts written: 1 toolset, 1 tool\n${NO_IMPORT} import './toolwright.gen.js'\n`,
      error: '',
    });
    project.write('src/main.ts', "import './toolwright.gen.js';\n");
    const { mtimeMs } = statSync(join(project.folder, 'src/toolwright.gen.ts'));
    const second = await runCommand(['generate', '--project', '.'], project.folder);
    expect(second.out).toBe('src/toolwright.gen.ts is up to date: 1 toolset, 1 tool\n');
    expect(statSync(join(project.folder, 'src/toolwright.gen.ts')).mtimeMs).toBe(mtimeMs);
  });

  test('writes to --out, relative to the current folder, with imports relative to that file', async () => {
    using project = smallProject({ 'src/deep/tools.ts': TOOLS });
    const { out } = await runCommand(
      ['generate', '-p', '../tsconfig.json', '-o', 'made/tools.gen.ts'],
      join(project.folder, 'src'),
    );
    expect(out).toBe(`made/tools.gen.ts written: 1 toolset, 1 tool\n${NO_IMPORT} import './tools.gen.js'\n`);
    expect(read(project, 'src/made/tools.gen.ts')).toContain("from '../deep/tools.js'");
  });

  test.each([
    ['js', "from './tools.js';"],
    ['ts', "from './tools.ts';"],
    ['none', "from './tools';"],
  ])(
    '--import-ending %s sets the ending of relative imports, regardless of tsconfig.json',
    async (ending, line) => {
      using project = smallProject({ 'src/tools.ts': TOOLS });
      await runCommand(['generate', '--import-ending', ending], project.folder);
      expect(read(project, 'src/toolwright.gen.ts')).toContain(line);
    },
  );

  test('escapes the names of files, exports and properties', async () => {
    const file = "src/x'; throw 1; import '.ts";
    using project = smallProject(
      {
        [file]:
          "import { Tool } from 'toolwright';\nclass Tools { @Tool('A') a(x: { 'it\\'s': string }) {} }\nexport { Tools as \"a'b\" };\n",
      },
      { module: 'ESNext', moduleResolution: 'Bundler', target: 'ES2022' },
    );
    const { code, error } = await runCommand(['generate', '-o', 'src/made.ts'], project.folder);
    expect({ code, error }).toEqual({ code: 0, error: '' });
    const text = read(project, 'src/made.ts');
    expect(text).toContain(`import { "a'b" as Tools } from "./x'; throw 1; import '";`);
    const { diagnostics } = ts.transpileModule(text, { reportDiagnostics: true });
    expect(diagnostics).toEqual([]);
    const imported = [...text.matchAll(/^import .*$/gm)];
    expect(imported).toHaveLength(2);
  });

  test('replaces the file in one step, without leaving temporary files', async () => {
    using project = smallProject({ 'src/tools.ts': TOOLS });
    await runCommand(['generate'], project.folder);
    const open = openSync(join(project.folder, 'src/toolwright.gen.ts'), 'r');
    const before = read(project, 'src/toolwright.gen.ts');
    project.write('src/tools.ts', TOOLS.replace("'A'", "'B'").replace('x: string', 'y: string'));
    await runCommand(['generate'], project.folder);
    // A reader that has the old file open still reads all of it.
    expect(readFileSync(open, 'utf8')).toBe(before);
    closeSync(open);
    expect(read(project, 'src/toolwright.gen.ts')).toContain("name: 'y'");
    expect(readdirSync(join(project.folder, 'src'))).toHaveLength(2);
  });

  test('does not write through a broken link', async () => {
    using project = smallProject({ 'src/tools.ts': TOOLS });
    const outside = join(project.folder, '..', `outside-${process.pid}.ts`);
    symlinkSync(outside, join(project.folder, 'src/toolwright.gen.ts'));
    const { code, error } = await runCommand(['generate'], project.folder);
    expect(code).not.toBe(0);
    expect(error).toContain('src/toolwright.gen.ts is a broken link and was not written');
    expect(existsSync(outside)).toBe(false);
  });

  test.each([
    "export * from '../src/toolwright.gen';",
    "import {\n  toolsets,\n} from './toolwright.gen.ts';",
    'await import("./toolwright.gen.js");',
    "const { toolsets } = require('@/toolwright.gen');",
  ])('recognizes %j as an import of the generated file', async (line) => {
    using project = smallProject({ 'src/tools.ts': TOOLS, 'src/main.ts': `${line}\n` });
    const { out } = await runCommand(['generate'], project.folder);
    expect(out).not.toContain('imports it');
  });

  test('does not recognize a comment as an import of the generated file', async () => {
    using project = smallProject({
      'src/tools.ts': TOOLS,
      'src/main.ts': "// import './toolwright.gen.js';\n",
    });
    const { out } = await runCommand(['generate'], project.folder);
    expect(out).toContain(NO_IMPORT);
  });

  test('shows on a terminal that it is working, and then clears the line', async () => {
    using project = smallProject({ 'src/tools.ts': TOOLS });
    const { error } = await runCommand(['generate'], project.folder, { isTerminal: true });
    expect(error).toBe('reading the types …\r\u001b[2K');
  });

  test('reports every error with its position and writes nothing', async () => {
    using project = smallProject({ 'src/tools.ts': FAULTY });
    const { code, out, error } = await runCommand(['generate'], project.folder);
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(error).toContain('2 problems prevent the generation:');
    expect(error).toContain(
      '1. src/tools.ts:3 Tools.a, parameter x: x is a symbol, which JSON cannot represent.',
    );
    expect(error).toContain(
      '2. src/tools.ts:3 Tools.a, parameter y: y is a function, which JSON cannot represent.',
    );
    expect(error).toContain('   Write instead: ');
    expect(existsSync(join(project.folder, 'src/toolwright.gen.ts'))).toBe(false);
  });

  test('prints a warning, which is an error with --strict', async () => {
    using project = smallProject({ 'src/tools.ts': TOOLS.replace('x: string', 'x: unknown') });
    const lenient = await runCommand(['generate'], project.folder);
    expect(lenient.code).toBe(0);
    expect(lenient.error).toContain('warning: src/tools.ts:3 Tools.a, parameter x: x is unknown');
    expect((await runCommand(['generate', '--strict'], project.folder)).code).toBe(1);
  });

  test('reports missing tools, syntax errors and a broken tsconfig.json', async () => {
    using project = smallProject({ 'src/tools.ts': 'export class Tools {}\n' });
    const none = await runCommand(['generate'], project.folder);
    // A project without tools must still build.
    expect(none).toMatchObject({
      code: 0,
      error: expect.stringContaining('has no exported class with a @Tool method'),
    });
    project.write('src/toolwright.gen.ts', '// Generated by toolwright\n');
    expect((await runCommand(['generate'], project.folder)).code).toBe(1);
    project.write('src/tools.ts', 'export class {{{\n');
    expect(await runCommand(['generate'], project.folder)).toMatchObject({
      code: 1,
      error: expect.stringMatching(/tools\.ts:1: /),
    });
    project.write('tsconfig.json', '{ "include": 7 }');
    expect((await runCommand(['generate'], project.folder)).code).toBe(1);
    project.write('tsconfig.json', '{');
    expect(await runCommand(['generate'], project.folder)).toMatchObject({
      code: 1,
      error: expect.stringContaining('tsconfig.json'),
    });
  });

  test('reports a tsconfig.json that contains only references', async () => {
    using project = smallProject({ 'app/tsconfig.json': '{}', 'tsconfig.json': SOLUTION });
    expect(await runCommand(['generate'], project.folder)).toEqual({
      code: 1,
      out: '',
      error:
        'toolwright: tsconfig.json has no source files of its own; set --project to the tsconfig.json that has them\n',
    });
  });

  test.each([
    ['a file that was not generated', 'src/tools.ts', 'src/tools.ts is not a generated file'],
    ['a declaration file', 'src/tools.d.ts', 'src/tools.d.ts is not a TypeScript file'],
    ['a path that cannot be written', 'package.json/tools.ts', 'package.json/tools.ts cannot be written'],
  ])('refuses %s as --out in one line', async (_, path, message) => {
    using project = smallProject({ 'src/tools.ts': TOOLS });
    const { code, out, error } = await runCommand(['generate', '--out', path], project.folder);
    expect({ failed: code > 0, out }).toEqual({ failed: true, out: '' });
    expect(error).toContain(message);
    expect(error).toMatch(/^[^\n]+\n$/);
    expect(read(project, 'src/tools.ts')).toBe(TOOLS);
  });

  test('reports what to install if the project has no TypeScript', async () => {
    using project = smallProject({});
    const { folder } = project;
    writeFileSync(join(folder, '..', 'toolwright-tsconfig.json'), '{}');
    const { code, error } = await runCommand(['generate', '-p', '../toolwright-tsconfig.json'], folder);
    expect(code).toBe(1);
    expect(error).toContain('npm install --save-dev typescript');
  });
});

const NOT_SUPPORTED = 'is not supported; install 5.9, 6.0, 7.0 or 7.1';

describe('the compiler', () => {
  test.each(VERSIONS)('is the project’s TypeScript: %s generates, checks and watches', async (version) => {
    using project = smallProject({ 'src/tools.ts': TOOLS });
    withTypeScript(project, compilerPackage(version));
    const { code, out, error } = await runCommand(['generate'], project.folder);
    expect({ code, error }).toEqual({ code: 0, error: '' });
    expect(out).toContain('src/toolwright.gen.ts written: 1 toolset, 1 tool\n');
    expect((await runCommand(['generate', '--check'], project.folder)).code).toBe(0);
    await using command = watching(project);
    await command.waitFor('is up to date');
    project.write('src/tools.ts', TOOLS.replace('x: string', 'x: boolean'));
    await command.waitFor('written');
    expect(read(project, 'src/toolwright.gen.ts')).toContain("type: 'boolean'");
  });

  test.each([
    ['5.8.3', {}, {}],
    ['7.2.0-dev.20270101.1', { './sync': './sync.js', './ast': './sync.js' }, { 'sync.js': 'export {};' }],
    ['9.0.0', {}, {}],
    ['7.1.0-dev.20260802.1', { './sync': './sync.js', './ast': './sync.js' }, { 'sync.js': 'export {};' }],
    // A nightly build of a supported version, from before its API had its final form.
    [
      '7.1.0-dev.20260801.1',
      { './sync': './sync.js', './ast': './sync.js' },
      { 'sync.js': 'export class API {}' },
    ],
    ['7.1.0-dev.20260701.1', { './unstable/sync': './sync.js', './unstable/ast': './sync.js' }, {}],
  ])('%s is refused in one line that lists the supported versions', async (version, exports, files) => {
    const manifest = {
      name: 'typescript',
      version,
      type: 'module',
      exports: { './package.json': './package.json', ...exports },
    };
    const named = Object.entries(files).map(([path, text]) => [`compiler/${path}`, text] as const);
    using project = smallProject({
      'src/tools.ts': TOOLS,
      'compiler/package.json': JSON.stringify(manifest),
      ...Object.fromEntries(named),
    });
    withTypeScript(project, join(project.folder, 'compiler'));
    const { code, error } = await runCommand(['generate'], project.folder);
    expect(code).toBe(1);
    expect(error).toBe(`toolwright: TypeScript ${version} in ${project.folder} ${NOT_SUPPORTED}\n`);
    expect(await runCommand(['init'], project.folder)).toMatchObject({ code: 1, error });
  });
});

describe('toolwright generate --check', () => {
  test('prints nothing if the file is up to date, with any line endings', async () => {
    using project = smallProject({ 'src/tools.ts': TOOLS });
    await runCommand(['generate'], project.folder);
    const silent = { code: 0, out: '', error: '' };
    expect(await runCommand(['generate', '--check'], project.folder)).toEqual(silent);
    project.write('src/toolwright.gen.ts', read(project, 'src/toolwright.gen.ts').replaceAll('\n', '\r\n'));
    expect(await runCommand(['generate', '--check'], project.folder)).toEqual(silent);
  });

  test('prints the difference, exits with 1 and writes nothing', async () => {
    using project = smallProject({ 'src/tools.ts': TOOLS });
    await runCommand(['generate'], project.folder);
    const before = read(project, 'src/toolwright.gen.ts');
    project.write('src/tools.ts', TOOLS.replace('x: string', 'x: number'));
    const { code, out, error } = await runCommand(['generate', '--check'], project.folder);
    expect(code).toBe(1);
    expect(out).toContain('--- src/toolwright.gen.ts\n+++ src/toolwright.gen.ts (generated now)\n@@ ');
    expect(out).toMatch(/^-.*type: 'string'.*\n(?:-.*\n)*\+.*type: 'number'/m);
    expect(error).toBe('toolwright: src/toolwright.gen.ts is out of date: npx toolwright generate\n');
    expect(read(project, 'src/toolwright.gen.ts')).toBe(before);
  });

  test('reports a missing file', async () => {
    using project = smallProject({ 'src/tools.ts': TOOLS });
    const { code, error } = await runCommand(['generate', '--check'], project.folder);
    expect({ code, error }).toEqual({
      code: 1,
      error: 'toolwright: src/toolwright.gen.ts does not exist: npx toolwright generate\n',
    });
  });
});

/** Runs the command until the end of the block that uses it. */
function watching({ folder }: SmallProject, ...flags: readonly string[]) {
  const controller = new AbortController();
  const lines: string[] = [];
  let wake = () => {};
  const say = (text: string) => {
    lines.push(text);
    wake();
  };
  const ended = runCommandLine(['generate', '--watch', ...flags], {
    folder,
    out: say,
    error: say,
    isTerminal: false,
    signal: controller.signal,
  });
  return {
    async waitFor(text: string) {
      while (!lines.some((line) => line.includes(text))) {
        await Promise.race([
          new Promise<void>((resolve) => {
            wake = resolve;
          }),
          delay(PROCESS_LIMIT_MS, undefined, { ref: false }).then(() => {
            throw new Error(lines.join(''));
          }),
        ]);
      }
      lines.length = 0;
    },
    async [Symbol.asyncDispose]() {
      controller.abort();
      expect(await ended).toBe(0);
    },
  };
}

describe('toolwright generate --watch', () => {
  test('generates again after a change, survives errors, and ends with its signal', async () => {
    using project = smallProject({ 'src/tools.ts': TOOLS });
    await using command = watching(project);
    await command.waitFor('written');
    project.write('src/tools.ts', FAULTY);
    await command.waitFor('2 problems prevent the generation');
    project.write('src/tools.ts', TOOLS.replace('x: string', 'x: boolean'));
    await command.waitFor('written');
    expect(read(project, 'src/toolwright.gen.ts')).toContain("type: 'boolean'");
    project.write('src/deep/more.ts', TOOLS.replace('Tools', 'MoreTools'));
    await command.waitFor('2 toolsets, 2 tools');
    rmSync(join(project.folder, 'src/deep'), { recursive: true });
    await command.waitFor('1 toolset, 1 tool');
  });

  test('detects changes in libraries that tsconfig.json maps to another folder', async () => {
    using project = smallProject({
      'libs/shop/index.ts': TOOLS,
      'app/src/main.ts': "export { Tools } from '@shop';\n",
      'app/tsconfig.json': '{ "extends": "../paths.json", "include": ["src"] }',
    });
    const config = JSON.parse(read(project, 'tsconfig.json')) as { compilerOptions: { paths: object } };
    Object.assign(config.compilerOptions.paths, { '@shop': ['./libs/shop/index.ts'] });
    project.write('paths.json', JSON.stringify(config));
    await using command = watching(project, '--project', 'app');
    await command.waitFor('1 toolset, 1 tool');
    project.write('libs/shop/index.ts', TOOLS.replace('x: string', 'x: boolean'));
    await command.waitFor('written');
    expect(read(project, 'app/src/toolwright.gen.ts')).toContain("type: 'boolean'");
  });
});
