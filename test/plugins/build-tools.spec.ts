import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { builtFile } from '../processes/built-file.js';
import { NodeProcess } from '../processes/node-process.js';
import { type BuiltProject, builtProject, toolFile } from './built-project.js';

const COMMAND = builtFile('dist/src/dev/cli/main.js');
const GENERATED = 'src/toolwright.gen.ts';
const ERROR = 'src/tools.ts:3 Tools.a, parameter x: x is a symbol, which JSON cannot represent.';

const toolset = (type: string) =>
  `import { Tool } from 'toolwright/decorators';\nexport class Tools {\n  @Tool('A') a(x: ${type}) { return typeof x; }\n}\n`;

const options = (rest: object) => ({
  target: 'ES2022',
  strict: true,
  skipLibCheck: true,
  experimentalDecorators: true,
  types: [],
  ...rest,
});
const BUNDLED = options({ module: 'ESNext', moduleResolution: 'Bundler', noEmit: true });

const base = (compilerOptions: object = BUNDLED) => ({
  'package.json': '{ "name": "small", "type": "module" }',
  'tsconfig.json': JSON.stringify({ compilerOptions, include: ['src'] }),
  'src/tools.ts': toolset('string'),
  'src/main.ts': "import { toolsets } from './toolwright.gen';\nconsole.log(toolsets.length);\n",
});

const TRANSPILE = `{ name: 'types', resolveId(id, from) { return from && id.startsWith('./') ? this.resolve(id + '.ts', from, { skipSelf: true }) : null; },
  transform: (code, id) => id.endsWith('.ts') ? ts.transpileModule(code, { compilerOptions: { module: 99, target: 9, experimentalDecorators: true } }).outputText : null }`;

interface Tool {
  readonly files: Readonly<Record<string, string>>;
  run(project: BuiltProject): {
    readonly exitCode: number | null;
    readonly stdout: string;
    readonly stderr: string;
  };
  /** The path of the output file. */
  readonly built: string;
}

/** The command line of webpack and Rspack is in another package, so the tests use their common API. */
const apiScript = (name: string, load: string, loader: object) => `
import tool from '${load}';
import { ${name} as toolwright } from 'toolwright/plugin';
const compiler = tool({
  mode: 'development', devtool: false, target: 'node', entry: './src/main.ts', context: import.meta.dirname,
  output: { path: import.meta.dirname + '/out', filename: 'main.js' },
  resolve: { extensions: ['.ts', '.js'] },
  externals: [/^toolwright/],
  externalsType: 'commonjs',
  module: { rules: [{ test: /\\.ts$/, ...${JSON.stringify(loader)} }] },
  plugins: [toolwright()],
});
compiler.run((error, stats) => {
  if (error ?? stats.hasErrors()) { console.error(error ?? stats.toString('errors-only')); process.exitCode = 1; }
  compiler.close(() => {});
});
`;

const TOOLS: Readonly<Record<string, Tool>> = {
  Rollup: {
    files: {
      ...base(),
      'rollup.config.mjs': `import ts from 'typescript';
        import { rollup as toolwright } from 'toolwright/plugin';
        export default { input: 'src/main.ts', external: /^toolwright/, output: { file: 'out/main.js' }, plugins: [toolwright(), ${TRANSPILE}] };`,
    },
    run: (project) => project.run(toolFile('rollup/dist/bin/rollup'), '-c'),
    built: 'out/main.js',
  },
  Rolldown: {
    files: {
      ...base(),
      'rolldown.config.mjs': `import { rolldown as toolwright } from 'toolwright/plugin';
        export default { input: 'src/main.ts', external: /^toolwright/, output: { file: 'out/main.js' }, plugins: [toolwright()] };`,
    },
    run: (project) => project.run(toolFile('rolldown/bin/cli.mjs'), '-c', 'rolldown.config.mjs'),
    built: 'out/main.js',
  },
  tsup: {
    files: {
      ...base(),
      'tsup.config.mjs': `import { esbuild as toolwright } from 'toolwright/plugin';
        export default { entry: ['src/main.ts'], format: 'esm', outDir: 'out', external: [/^toolwright/], esbuildPlugins: [toolwright()] };`,
    },
    run: (project) => project.run(toolFile('tsup/dist/cli-default.js')),
    built: 'out/main.js',
  },
  Vite: {
    files: {
      ...base(),
      'vite.config.ts': `import { defineConfig } from 'vite';
        import { vite as toolwright } from 'toolwright/plugin';
        export default defineConfig({ plugins: [toolwright()], build: { ssr: 'src/main.ts', outDir: 'out', minify: false }, ssr: { external: ['toolwright'] } });`,
    },
    run: (project) => project.run(toolFile('vite/bin/vite.js'), 'build'),
    built: 'out/main.js',
  },
  webpack: {
    files: {
      ...base(options({ module: 'ESNext', moduleResolution: 'Bundler' })),
      'package.json': '{ "name": "small" }',
      'build.mjs': apiScript('webpack', 'webpack', { loader: 'ts-loader', options: { transpileOnly: true } }),
    },
    run: (project) => project.run('build.mjs'),
    built: 'out/main.js',
  },
  Rspack: {
    files: {
      ...base(),
      'build.mjs': apiScript('rspack', '@rspack/core', {
        loader: 'builtin:swc-loader',
        options: {
          jsc: { parser: { syntax: 'typescript', decorators: true }, transform: { legacyDecorator: true } },
        },
      }).replace('import tool from', 'import { rspack as tool } from'),
    },
    run: (project) => project.run('build.mjs'),
    built: 'out/main.js',
  },
  'Nest CLI with tsc': {
    files: {
      ...base(options({ module: 'NodeNext', outDir: './dist', rootDir: './src' })),
      'src/main.ts': "import { toolsets } from './toolwright.gen.js';\nexport const all = toolsets;\n",
      'nest-cli.json': '{ "sourceRoot": "src", "compilerOptions": { "plugins": ["toolwright"] } }',
    },
    run: (project) => project.run(toolFile('@nestjs/cli/bin/nest.js'), 'build'),
    built: 'dist/toolwright.gen.js',
  },
  'Nest CLI with swc': {
    files: {
      ...base(options({ module: 'NodeNext', outDir: './dist', rootDir: './src' })),
      'src/main.ts': "import { toolsets } from './toolwright.gen.js';\nexport const all = toolsets;\n",
      'nest-cli.json':
        '{ "sourceRoot": "src", "compilerOptions": { "builder": "swc", "typeCheck": true, "plugins": ["toolwright"] } }',
    },
    run: (project) => project.run(toolFile('@nestjs/cli/bin/nest.js'), 'build'),
    built: 'dist/toolwright.gen.js',
  },
};

/** Runs the command, because a configured build starts with an existing file. */
const generate = (project: BuiltProject, ...flags: readonly string[]) =>
  project.run(COMMAND, 'generate', ...flags);

describe.each(Object.entries(TOOLS))('%s', (_, tool) => {
  test('builds with a file that is generated again before the build', () => {
    using project = builtProject(tool.files);
    expect(generate(project).exitCode).toBe(0);
    project.write('src/tools.ts', toolset('boolean'));
    const { exitCode, stdout, stderr } = tool.run(project);
    expect({ exitCode, output: exitCode === 0 ? '' : stdout + stderr }).toEqual({ exitCode: 0, output: '' });
    expect(generate(project, '--check').exitCode).toBe(0);
    expect(project.read(tool.built)).toMatch(/name:\s*['"]x['"],\s*schema:\s*\{\s*type:\s*['"]boolean['"]/);
  });

  test('fails with the errors of the command', () => {
    using project = builtProject(tool.files);
    generate(project);
    project.write('src/tools.ts', toolset('symbol'));
    const { exitCode, stdout, stderr } = tool.run(project);
    expect(stdout + stderr).toContain(ERROR);
    expect(exitCode).not.toBe(0);
  });
});

test('the Vite server generates the file after each change and continues after an error', async () => {
  using project = builtProject(TOOLS.Vite?.files ?? {});
  await using server = new NodeProcess([toolFile('vite/bin/vite.js'), '--port', '0'], {
    folder: project.folder,
  });
  await server.waitFor(/Local:/);
  expect(project.read(GENERATED)).toContain("type: 'string'");
  // The watcher can start after the message and misses earlier changes, so the file is written repeatedly.
  await until(() => {
    project.write('src/tools.ts', toolset('symbol'));
    return /x is a symbol/.test(server.stdout + server.stderr);
  });
  project.write('src/tools.ts', toolset('boolean'));
  await until(() => project.read(GENERATED).includes("type: 'boolean'"));
  expect(server.exitCode).toBe(null);
});

test.each(['webpack', 'Rspack'])(
  '%s in watch mode generates the file after each change and continues after an error',
  async (name) => {
    const files = TOOLS[name]?.files ?? {};
    const script = (files['build.mjs'] ?? '')
      .replace('compiler.run(', 'compiler.watch({}, ')
      .replace('compiler.close(() => {});', "console.log('built');");
    using project = builtProject({ ...files, 'build.mjs': script });
    await using watcher = new NodeProcess(['build.mjs'], { folder: project.folder });
    await watcher.waitFor(/built/);
    project.write('src/tools.ts', toolset('symbol'));
    await watcher.waitFor(/x is a symbol/);
    project.write('src/tools.ts', toolset('boolean'));
    await until(() => /type: ['"]boolean['"]/.test(project.read('out/main.js')));
    expect(watcher.exitCode).toBe(null);
  },
);

test('the Nest CLI in watch mode generates the file after each change and continues after an error', async () => {
  using project = builtProject(TOOLS['Nest CLI with tsc']?.files ?? {});
  generate(project);
  const args = [toolFile('@nestjs/cli/bin/nest.js'), 'build', '--watch'];
  await using watcher = new NodeProcess(args, { folder: project.folder });
  await watcher.waitFor(/Found 0 errors/);
  project.write('src/tools.ts', toolset('symbol'));
  await watcher.waitFor(/x is a symbol/);
  project.write('src/tools.ts', toolset('boolean'));
  await until(() => project.read('dist/toolwright.gen.js').includes("type: 'boolean'"));
  expect(watcher.exitCode).toBe(null);
});

test('Vitest generates the file again before its tests', () => {
  const test = `import { expect, test } from 'vitest';\nimport { readFileSync } from 'node:fs';\nimport { toolsets } from './toolwright.gen';
test('tools', () => { expect(toolsets).toHaveLength(1); expect(readFileSync('${GENERATED}', 'utf8')).toContain("type: 'string'"); });\n`;
  const config = `import { vite as toolwright } from 'toolwright/plugin';\nexport default { plugins: [toolwright()], oxc: { decorator: { legacy: true } } };\n`;
  using project = builtProject({ ...base(), 'src/tools.test.ts': test, 'vitest.config.mjs': config });
  const { exitCode, stdout, stderr } = project.run(toolFile('vitest/vitest.mjs'), 'run');
  expect(stdout + stderr).toContain('1 passed');
  expect(exitCode).toBe(0);
  project.write('src/tools.ts', toolset('symbol'));
  const failed = project.run(toolFile('vitest/vitest.mjs'), 'run');
  expect(failed.stdout + failed.stderr).toContain(ERROR);
  expect(failed.exitCode).not.toBe(0);
});

test('Jest with swc generates the file again before its tests', () => {
  const swc = {
    jsc: { parser: { syntax: 'typescript', decorators: true }, transform: { legacyDecorator: true } },
  };
  const config = { globalSetup: 'toolwright/jest', transform: { '\\.ts$': ['@swc/jest', swc] } };
  const spec = `import { readFileSync } from 'node:fs';\nit('tools', () => { expect(readFileSync('${GENERATED}', 'utf8')).toContain("type: 'string'"); });\n`;
  using project = builtProject({
    ...base(options({ module: 'CommonJS', moduleResolution: 'Bundler', ignoreDeprecations: '6.0' })),
    'package.json': '{ "name": "small" }',
    'src/tools.test.ts': spec,
    'jest.config.json': JSON.stringify(config),
  });
  const { exitCode, stdout, stderr } = project.run(toolFile('jest/bin/jest.js'));
  expect(stdout + stderr).toContain('1 passed');
  expect(exitCode).toBe(0);
  project.write('src/tools.ts', toolset('symbol'));
  const failed = project.run(toolFile('jest/bin/jest.js'));
  expect(failed.stdout + failed.stderr).toContain(ERROR);
  expect(failed.exitCode).not.toBe(0);
});

/** Waits until a running process has written its output. */
async function until(condition: () => boolean): Promise<void> {
  for (let tries = 0; tries < 600; tries++) {
    if (condition()) return;
    await delay(100);
  }
  throw new Error('the condition was not met in 60 seconds');
}
