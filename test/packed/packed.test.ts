import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, posix, relative } from 'node:path';
import { Script } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { build } from 'esbuild';
import ts from 'typescript-5.9';
import { NodeProcess } from '../processes/node-process.js';
import { checkFiles, runCompiler } from '../processes/run-compiler.js';
import { outputOfNode, runNode } from '../processes/run-node.js';
import { type EntryPoint, entryPoints, publicNames } from '../structure/entry-points.js';
import { relativeLinks } from '../structure/markdown-links.js';
import type { ExportKind } from '../structure/module-exports.js';
import { ROOT } from '../structure/repository.js';
import {
  type Installation,
  installPacked,
  type PackedPackage,
  packPackage,
  runScript,
} from './installation.js';

const VALUES = new Set(['class', 'function', 'const', 'enum']);

let packed: PackedPackage;
let installed: Installation;

beforeAll(() => {
  packed = packPackage();
  installed = installPacked(packed);
});

afterAll(() => {
  installed?.remove();
  packed?.remove();
});

describe('the tarball', () => {
  test('has only the build, its types and the documentation', () => {
    const tops = new Set(
      filesOf(installed.unpacked).map((path) =>
        path
          .split('/')
          .slice(0, path.startsWith('docs/') ? 1 : 2)
          .join('/'),
      ),
    );
    expect([...tops].sort()).toEqual([
      'AGENTS.md',
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'SKILL.md',
      'agent.schema.json',
      'dist/chunks',
      'dist/decorators',
      'dist/inspector',
      'dist/src',
      'docs',
      'package.json',
    ]);
  });

  test('has no tests, examples or TypeScript sources', () => {
    const strays = filesOf(installed.unpacked).filter(
      (path) => /(^|\/)(test|examples)\/|\.test\./.test(path) || /(?<!\.d)\.ts$/.test(path),
    );
    expect(strays).toEqual([]);
  });

  test('has the page of the inspector, which is small and whose packages toolwright/inspector does not load', () => {
    const page = filesOf(installed.unpacked).filter((path) => path.startsWith('dist/inspector/'));
    expect(page.sort()).toEqual(
      ['index.html', 'page.css', 'page.js'].map((name) => `dist/inspector/${name}`),
    );
    const bytes = page.map((path) => gzipSync(readFileSync(join(installed.unpacked, path))).length);
    expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThan(150_000);
    const { packages } = loadedBy(installed, 'toolwright/inspector');
    expect(packages.filter((name) => /preact|diff|modelcontextprotocol|ai-sdk|nestjs/.test(name))).toEqual(
      [],
    );
  });

  test('has types for every module', () => {
    const files = new Set(filesOf(installed.unpacked));
    const untyped = [...files].filter(
      (path) => /^dist\/(src|decorators)\/.*\.js$/.test(path) && !files.has(path.replace(/\.js$/, '.d.ts')),
    );
    expect(untyped).toEqual([]);
  });

  test('is smaller than 1.2 MB, and smaller than 5 MB unpacked', () => {
    const sizes = filesOf(installed.unpacked).map((path) => statSync(join(installed.unpacked, path)).size);
    expect(statSync(packed.tarball).size).toBeLessThan(1_200_000);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(5_000_000);
  });

  test('has entry points whose bundles are within their size limits', () => {
    const run = runNode([join('test', 'measure', 'bundle-sizes.mjs')], { folder: ROOT });
    expect(run).toMatchObject({ exitCode: 0, stderr: '' });
  });

  test('has pages whose relative links and images lead to packed files', () => {
    const files = new Set(filesOf(installed.unpacked));
    const pages = [...files].filter((path) => path.endsWith('.md'));
    const lost = pages.flatMap((page) =>
      relativeLinks(readFileSync(join(installed.unpacked, page), 'utf8'))
        .map((link) => posix.join(posix.dirname(page), link.split('#')[0] || posix.basename(page)))
        .filter((target) => !files.has(target))
        .map((target) => `${page}: ${target}`),
    );
    expect(pages).toContain('docs/reference/options.md');
    expect(lost).toEqual([]);
  });

  test('has modules in ASCII, which V8 loads faster', () => {
    const modules = filesOf(installed.unpacked).filter((path) => /^dist\/(?!inspector\/).+\.js$/.test(path));
    expect(modules.length).toBeGreaterThan(30);
    const textOf = (path: string) => readFileSync(join(installed.unpacked, path), 'utf8');
    expect(modules.flatMap((path) => textOf(path).match(/.{0,20}[^\0-\x7f]/) ?? [])).toEqual([]);
  });

  test('has no reference to a missing source map or source', () => {
    const lost = filesOf(installed.unpacked).filter((path) => hasMissingSource(installed.unpacked, path));
    expect({ count: lost.length, first: lost.slice(0, 3) }).toEqual({ count: 0, first: [] });
  });
});

describe('a program that uses the package', () => {
  test.each(entryPoints())('imports $name, whose classes have the names of their exports', (entryPoint) => {
    const { valueNames } = loaded(entryPoint);
    expect(Object.keys(valueNames).sort()).toEqual(namesOf(entryPoint, (kind) => VALUES.has(kind)).sort());
    for (const name of namesOf(entryPoint, (kind) => kind === 'class'))
      expect([name, valueNames[name]]).toEqual([name, name]);
  });

  test.each(entryPoints())('requires $name and gets the same values as an import', (entryPoint) => {
    const { differing } = loaded(entryPoint);
    expect(differing).toEqual([]);
  });

  test('discovers a toolset of toolwright/builtin even if it is imported before toolwright', () => {
    const code = `
      import { BuiltinTools } from 'toolwright/builtin';
      import { discoverTools } from 'toolwright';
      console.log(discoverTools({ toolsets: [BuiltinTools] }).length > 0);`;
    expect(runScript(installed, code)).toEqual({ exitCode: 0, stdout: 'true\n', stderr: '' });
  });

  test('gets the same decorators from toolwright, imported, and from toolwright/decorators, required', () => {
    const code = `
      const { Tool, Toolset, ToolContext } = require('toolwright/decorators');
      import('toolwright').then((root) => {
        console.log(root.Tool === Tool, root.Toolset === Toolset, root.ToolContext === ToolContext);
      });`;
    expect(runScript(installed, code, 'cjs').stdout).toBe('true true true\n');
  });
});

describe('the programs in the documentation run in a new folder and print the documented output', () => {
  test('the programs of the README, the first of which has at most 15 lines', () => {
    const { folder, outputs } = savedPage('README.md', ['app.ts', 'order-service.ts', 'refund.ts']);
    outputOfNode([installedCommand(), 'init'], { folder });
    const environment = { ...process.env, NODE_OPTIONS: '', OPENAI_API_KEY: '' };
    expect(
      ['app.ts', 'refund.ts'].map((file) => outputOfNode(withTsx(file), { folder, environment })),
    ).toEqual(outputs);
    expect(runCompiler('tsconfig.json', { folder })).toEqual([]);
    expect(readFileSync(join(folder, 'app.ts'), 'utf8').trimEnd().split('\n').length).toBeLessThanOrEqual(15);
  });

  test('the programs of the quick start', () => {
    const { folder, outputs } = savedPage('docs/start/quick-start.md', [
      'app.ts',
      'refund-tools.ts',
      'tools.ts',
    ]);
    expect([outputOfNode(withTsx('app.ts'), { folder })]).toEqual(outputs);
    outputOfNode([installedCommand(), 'init'], { folder });
    const refund = ['call', 'tools.ts', 'refund_order', '{"orderId":"ord_1","reason":"late"}', '--yes'];
    expect(outputOfNode([installedCommand(), ...refund], { folder })).toContain('was refunded (late)');
    expect(runCompiler('tsconfig.json', { folder })).toEqual([]);
  });

  test.each(['docs/start/mcp.md', 'docs/start/chat.md'])('the server of %s', async (page) => {
    const { folder, outputs } = savedPage(page, ['server.ts']);
    const environment = { PATH: process.env.PATH, PORT: '0' };
    await using server = new NodeProcess(withTsx('server.ts'), { folder, environment });
    await server.waitFor(/\n/);
    expect([server.stdout.replace('127.0.0.1:0', '127.0.0.1:3000')]).toEqual(outputs);
  });

  /** Saves the programs of a page in a new project, and returns their documented outputs. */
  function savedPage(page: string, names: readonly string[]) {
    const text = readFileSync(join(ROOT, page), 'utf8');
    const folder = join(installed.folder, page.replaceAll('/', '-'));
    mkdirSync(folder);
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    symlinkSync(join(installed.folder, 'node_modules'), join(folder, 'node_modules'), 'junction');
    const blocks = [...text.matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(([, language = '', code = '']) => ({
      language,
      code,
    }));
    const programs = blocks.filter(({ language }) => ['ts', 'js'].includes(language));
    for (const [index, name] of names.entries()) writeFileSync(join(folder, name), programs[index]!.code);
    return { folder, outputs: blocks.filter(({ language }) => language === '').map(({ code }) => code) };
  }

  function withTsx(file: string): string[] {
    return ['--import', 'tsx', file];
  }

  function installedCommand(): string {
    return join(installed.unpacked, 'dist', 'src', 'dev', 'cli', 'main.js');
  }
});

describe('loading', () => {
  test('toolwright loads a few files, but not class-validator, openai or winston', () => {
    const { packages, own } = loadedBy(installed, 'toolwright');
    expect(packages).toContain('reflect-metadata');
    // Opening a file costs more than reading it, so the bundler must not split the root into many chunks.
    expect(own.length).toBeLessThanOrEqual(20);
    expect(
      ['class-validator', 'class-transformer', 'openai', 'winston'].filter((name) => packages.includes(name)),
    ).toEqual([]);
  });

  test('toolwright/decorators loads only reflect-metadata and at most 8 small files', () => {
    const { packages, own } = loadedBy(installed, 'toolwright/decorators');
    expect(packages).toEqual(['reflect-metadata']);
    const code = own.map((path) => readFileSync(join(installed.unpacked, path), 'utf8')).join('\n');
    expect(code).not.toMatch(/\b(ajv|acorn|tsyringe)\b/);
    expect(own.length).toBeLessThanOrEqual(8);
    expect(code.length).toBeLessThan(10_000);
  });

  test('toolwright/jest loads no file with import.meta, which Jest cannot transform to CommonJS', () => {
    const { own } = loadedBy(installed, 'toolwright/jest');
    const read = (path: string) => readFileSync(join(installed.unpacked, path), 'utf8');
    expect(own.length).toBeGreaterThan(1);
    expect(own.filter((path) => /\bimport\.meta\b/.test(read(path)))).toEqual([]);
  });

  test('TypeScript transforms every file to valid CommonJS, as ts-jest does', () => {
    const compilerOptions = { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2023, allowJs: true };
    const broken = filesOf(installed.unpacked)
      .filter((path) => /^dist\/.+\.js$/.test(path) && !/^dist\/(inspector|src\/dev\/cli)\//.test(path))
      .filter((path) => {
        const code = readFileSync(join(installed.unpacked, path), 'utf8');
        const { outputText } = ts.transpileModule(code, { compilerOptions, fileName: path });
        return !code.includes('import.meta') && !parses(outputText);
      });
    expect(broken).toEqual([]);
  });

  test('loadedBy detects packages, whether they are imported or required', () => {
    expect(loadedBy(installed, 'toolwright/winston').packages).toContain('winston');
    expect(loadedBy(installed, 'toolwright/openai').packages).toContain('openai');
  });
});

const manifest = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'));

/** The optional peer dependencies, and packages that belong to them. */
const OPTIONAL = [
  ...Object.keys(manifest.peerDependenciesMeta),
  'ioredis',
  'ai',
  ...['common', 'core', 'platform-express', 'testing'].map((name) => `@nestjs/${name}`),
  ...['server', 'client', 'node', 'core'].map((name) => `@modelcontextprotocol/${name}`),
  ...['provider', 'provider-utils', 'gateway', 'anthropic', 'google', 'openai'].map(
    (name) => `@ai-sdk/${name}`,
  ),
];

/** Entry points that need an optional package, with the start of its name. */
const NEEDED_PACKAGES = new Map([
  ['toolwright/builtin', 'expr-eval-fork'],
  ['toolwright/tsyringe', 'tsyringe'],
  ['toolwright/toolbox/skills', 'yaml'],
  ['toolwright/toolbox/web', '@mdream/js'],
  ['toolwright/openai', 'openai'],
  ['toolwright/winston', 'winston'],
  ['toolwright/postgres', 'pg'],
  ['toolwright/bullmq', 'bullmq'],
  ['toolwright/pg-boss', 'pg-boss'],
  ['toolwright/nestjs', '@nestjs/'],
  ['toolwright/mcp', '@modelcontextprotocol/'],
  ['toolwright/toolbox/virtual-shell', 'just-bash'],
]);

describe('without the optional packages', () => {
  let bare: Installation;

  beforeAll(() => {
    bare = installPacked(packed, { without: OPTIONAL });
  });

  afterAll(() => bare?.remove());

  test('toolwright works', () => {
    const code = `
      import { defineTool, ToolRegistry } from 'toolwright';
      const tools = new ToolRegistry().register(defineTool({ name: 'a', description: 'A', execute: () => 'fine' }));
      console.log((await tools.execute('a')).forLLM);`;
    expect(runScript(bare, code)).toEqual({ exitCode: 0, stdout: 'fine\n', stderr: '' });
  });

  test('the types of the other entry points are complete', () => {
    const excluded = new Set([...NEEDED_PACKAGES.keys(), 'toolwright/ai-sdk', 'toolwright/opentelemetry']);
    const names = entryPoints().flatMap(({ name }) => (excluded.has(name) ? [] : [name]));
    const named = names.map((name, index) => `export type * as m${index} from '${name}';`);
    writeFileSync(join(bare.folder, 'bare.ts'), named.join('\n'));
    writeFileSync(
      join(bare.folder, 'tsconfig.json'),
      JSON.stringify({
        compilerOptions: {
          ...{ target: 'es2022', module: 'nodenext', strict: true, noEmit: true, types: ['node'] },
          ...{ experimentalDecorators: true, skipLibCheck: false },
        },
        files: ['bare.ts'],
      }),
    );
    const errors = runCompiler('tsconfig.json', { folder: bare.folder });
    expect(errors.filter(({ file }) => file.includes('/toolwright/'))).toEqual([]);
  });

  test('the types of toolwright need no types of Node', () => {
    writeFileSync(join(bare.folder, 'root.ts'), "export type * as root from 'toolwright';\n");
    const compilerOptions = {
      ...{ target: 'es2022', module: 'nodenext', strict: true, noEmit: true, types: [] },
      skipLibCheck: false,
    };
    writeFileSync(
      join(bare.folder, 'tsconfig.json'),
      JSON.stringify({ compilerOptions, files: ['root.ts'] }),
    );
    expect(runCompiler('tsconfig.json', { folder: bare.folder })).toEqual([]);
  });

  test('a bundle is built, and reports a missing package when it is used', async () => {
    const entry = join(bare.folder, 'bundled.mjs');
    writeFileSync(
      entry,
      `import { defineTool, ToolRegistry } from 'toolwright';
      import { openTelemetry } from 'toolwright/opentelemetry';
      const tools = new ToolRegistry().register(defineTool({ name: 'a', description: 'A', execute: () => 'fine' }));
      console.log((await tools.execute('a')).forLLM);
      try { openTelemetry(); } catch (error) { console.log(error.message); }`,
    );
    const outfile = join(bare.folder, 'bundle.mjs');
    const { errors } = await build({
      ...{ entryPoints: [entry], outfile, absWorkingDir: bare.folder, logLevel: 'silent' },
      ...{ bundle: true, platform: 'node', format: 'esm' },
    });
    expect(errors).toEqual([]);
    const missing =
      "toolwright/opentelemetry records through the package '@opentelemetry/api', which cannot be loaded: npm install @opentelemetry/api";
    expect(runNode([outfile], { folder: bare.folder })).toEqual({
      exitCode: 0,
      stdout: `fine\n${missing}\n`,
      stderr: '',
    });
  });

  test('commands name the missing package and how to install it', () => {
    writeFileSync(join(bare.folder, 'asks.mjs'), "export * from 'toolwright/openai';");
    writeFileSync(
      join(bare.folder, 'has.mjs'),
      "import { defineTool } from 'toolwright';\nexport const a = defineTool({ name: 'a', description: 'A', execute: () => 'fine' });",
    );
    const command = join(bare.unpacked, 'dist', 'src', 'dev', 'cli', 'main.js');
    const lines: Readonly<Record<string, readonly string[]>> = {
      openai: ['list', 'asks.mjs'],
      pg: ['runs', 'list', '--store', 'postgres://localhost/shop'],
      '@modelcontextprotocol/server': ['mcp', 'has.mjs'],
    };
    for (const [name, args] of Object.entries(lines)) {
      const { exitCode, stdout, stderr } = runNode([command, ...args], { folder: bare.folder });
      expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
      expect(stderr).toMatch(/^toolwright: [^\n]+\n$/);
      expect(stderr).toContain(`the package ${name} is not installed: npm install ${name}\n`);
    }
    const { stderr } = runNode([command, 'mcp', 'nope.ts'], { folder: bare.folder });
    expect(stderr).toBe('toolwright: there is no module nope.ts\n');
  });

  test('entry points load without optional packages or name the package that is missing', () => {
    const code = `
      for (const entryPoint of ${JSON.stringify(entryPoints().map(({ name }) => name))})
        await import(entryPoint).then(() => console.log(entryPoint, 'loads'), (error) => console.log(entryPoint, 'fails:', error.message));`;
    const { exitCode, stdout, stderr } = runScript(bare, code);
    expect([exitCode, stderr]).toEqual([0, '']);
    const lines = new Map(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => [line.slice(0, line.indexOf(' ')), line]),
    );
    for (const { name } of entryPoints()) {
      const needed = NEEDED_PACKAGES.get(name);
      const expected =
        needed === undefined ? / loads$/ : new RegExp(` fails: .*(package|module) '?${needed}`, 'i');
      expect(lines.get(name)).toMatch(expected);
    }
  });
});

describe('a TypeScript program', () => {
  test('compiles against the packed types, which are checked too, and runs', () => {
    cpSync(join(import.meta.dirname, 'fixtures', 'consumer'), installed.folder, { recursive: true });
    writeFileSync(join(installed.folder, 'every-entry-point.ts'), everyEntryPoint());
    // The types of other packages are not checked.
    const checked: string[] = [];
    const isOwn = (path: string) => !/^bundled:|\/node_modules\/(?!toolwright\/)/.test(path);
    const errors = checkFiles(installed.folder, (path) => isOwn(path) && checked.push(path) > 0);
    expect(errors).toEqual([]);
    expect(checked.filter((path) => path.endsWith('.d.ts')).length).toBeGreaterThan(200);
    expect(runCompiler('tsconfig.json', { folder: installed.folder, emit: true })).toEqual([]);
    const { stdout, stderr } = runNode([join('out', 'consumer.js')], installed);
    // The only warning is that there is no generated file.
    expect(stderr).toMatch(/^\(node:\d+\) \[TOOLWRIGHT_OPTIONALITY\] .*\n(\(Use .*\n)?$/);
    const { status, results } = JSON.parse(stdout) as { status: string; results: string[] };
    expect(status).toBe('completed');
    expect(results.slice(0, 5)).toEqual(['Hello, Ada! Hello, Ada!', 'ADA', '12', 'a b', '-5']);
    expect(results[5]).toContain("Validation failed for tool 'area':");
  });

  test('that is CommonJS with moduleResolution node10 has the types of every entry point, and runs', () => {
    const folder = join(installed.folder, 'common-js');
    const fixtures = join(import.meta.dirname, 'fixtures');
    cpSync(join(fixtures, 'common-js'), folder, { recursive: true });
    writeFileSync(join(folder, 'every-entry-point.ts'), everyEntryPoint());
    writeFileSync(join(folder, 'package.json'), '{ "type": "commonjs" }');
    const compiler = join(installed.folder, 'node_modules', 'typescript-5.9', 'bin', 'tsc');
    expect(runNode([compiler, '-p', '.'], { folder })).toEqual({ exitCode: 0, stdout: '', stderr: '' });
    expect(outputOfNode([join('out', 'program.js')], { folder })).toBe('2\n');
  });
});

/** A module with the types of every entry point, except `toolwright/pg-boss`: the declarations of pg-boss refer to a missing type. */
function everyEntryPoint(): string {
  const names = entryPoints().flatMap(({ name }) => (name === 'toolwright/pg-boss' ? [] : name));
  return names.map((name, index) => `export type * as part${index} from '${name}';\n`).join('');
}

interface LoadedEntryPoint {
  /** The `name` property of each of its values. */
  readonly valueNames: Readonly<Record<string, unknown>>;
  /** The exports whose imported and required values differ. */
  readonly differing: readonly string[];
}

const loadedEntryPoints = new Map<string, LoadedEntryPoint>();

/** Requires, then imports an entry point in a new process. */
function loaded({ name }: EntryPoint): LoadedEntryPoint {
  const cached = loadedEntryPoints.get(name);
  if (cached !== undefined) return cached;
  const code = `
    const required = require('${name}');
    import('${name}').then((imported) => {
      const names = Object.entries(imported).map(([name, value]) => [name, value?.name ?? null]);
      const differing = Object.keys(imported).filter((key) => imported[key] !== required[key]);
      console.log(JSON.stringify({ valueNames: Object.fromEntries(names), differing }));
    });`;
  const { stdout, stderr } = runScript(installed, code, 'cjs');
  expect(stderr).toBe('');
  const entryPoint = JSON.parse(stdout) as LoadedEntryPoint;
  loadedEntryPoints.set(name, entryPoint);
  return entryPoint;
}

/** The exports of an entry point whose kind is wanted. */
function namesOf(entryPoint: EntryPoint, isWanted: (kind: ExportKind) => boolean): string[] {
  const wanted = publicNames(entryPoint).filter(({ declarations }) =>
    declarations.some(({ kind }) => isWanted(kind)),
  );
  return [...new Set(wanted.map(({ name }) => name))];
}

function filesOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).replaceAll('\\', '/'));
}

/** Whether a module refers to a missing source map, or a source map to a missing source without its content. */
function hasMissingSource(folder: string, path: string): boolean {
  const parent = join(folder, dirname(path));
  const text = readFileSync(join(folder, path), 'utf8');
  const map = path.endsWith('.map') ? undefined : /^\/\/# sourceMappingURL=(\S+)$/m.exec(text)?.[1];
  if (map !== undefined) return !existsSync(join(parent, map));
  if (!path.endsWith('.map')) return false;
  const { sources, sourcesContent } = JSON.parse(text) as { sources: string[]; sourcesContent?: unknown[] };
  return sources.some((source, index) => !sourcesContent?.[index] && !existsSync(join(parent, source)));
}

/** The packages, and the files of this package, that importing a module loads. */
function loadedBy(installation: Installation, name: string): { packages: string[]; own: string[] } {
  const { stdout, stderr } = runScript(
    installation,
    `import { registerHooks } from 'node:module';
     const urls = [];
     registerHooks({ load(url, context, next) { urls.push(url); return next(url, context); } });
     await import('${name}');
     console.log(JSON.stringify(urls));`,
  );
  expect(stderr).toBe('');
  const paths = (JSON.parse(stdout) as string[]).flatMap((url) => url.split('/node_modules/').slice(-1));
  const modules = paths.filter((path) => !path.includes(':'));
  const isOwn = (path: string) => path.startsWith('toolwright/');
  return {
    packages: [...new Set(modules.filter((path) => !isOwn(path)).map(packageOf))].sort(),
    own: modules.filter(isOwn).map((path) => path.replace('toolwright/', '')),
  };
}

function packageOf(path: string): string {
  return path
    .split('/')
    .slice(0, path.startsWith('@') ? 2 : 1)
    .join('/');
}

function parses(code: string): boolean {
  try {
    new Script(code.replace(/^#!.*/, ''));
    return true;
  } catch {
    return false;
  }
}
