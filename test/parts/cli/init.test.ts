import { existsSync, readFileSync, rmSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { runCompiler } from '../../processes/run-compiler.js';
import { ROOT } from '../../structure/repository.js';
import { compilerPackage, VERSIONS } from '../typegen/compilers.js';
import { type SmallProject, smallProject, withTypeScript } from '../typegen/small-project.js';
import { runCommand } from './run-command.js';

const TOOLS =
  "import { Tool } from 'toolwright';\nexport class Tools {\n  @Tool('A') a(x: string) { return x; }\n}\n";

const ENTRY_POINT = join(import.meta.dirname, '../typegen/fixtures/toolwright.ts');

const read = ({ folder }: SmallProject, path: string) => readFileSync(join(folder, path), 'utf8');

const manifest = (rest: string) => `{
  "name":   "small",
  "type": "module",${rest}
}
`;

interface Kind {
  readonly files: Readonly<Record<string, string>>;
  /** The added lines of each file, in order. */
  readonly added: Readonly<Record<string, readonly string[]>>;
  readonly options?: object;
}

const NEST = `{
  // Where the sources are.
  "sourceRoot": "src",
  "compilerOptions": {
    "deleteOutDir": true /* always */
  }
}
`;

const KINDS: Readonly<Record<string, Kind>> = {
  'Nest CLI with tsc': {
    files: {
      'nest-cli.json': NEST,
      'package.json': manifest('\n  "scripts": {\n    "start:dev": "nest start --watch"\n  }'),
    },
    added: {
      'nest-cli.json': ['    "deleteOutDir": true, /* always */', '    "plugins": ["toolwright"]'],
      'package.json': ['    "start:dev": "nest start --watch",', '    "prestart:dev": "toolwright generate"'],
    },
  },
  'Nest CLI with swc and another plugin': {
    files: {
      'nest-cli.json': `{
\t"compilerOptions": {
\t\t"builder": "swc",
\t\t"plugins": ["@nestjs/swagger"]
\t}
}
`,
    },
    added: {
      'nest-cli.json': ['\t\t"plugins": ["@nestjs/swagger", "toolwright"],', '\t\t"typeCheck": true'],
    },
  },
  Vite: {
    files: {
      'vite.config.ts': `import { defineConfig } from 'vite';

export default defineConfig({
  // Nothing yet.
  server: { port: 1 },
});
`,
    },
    added: {
      'vite.config.ts': [
        "import { vite as toolwright } from 'toolwright/plugin';",
        '  plugins: [toolwright()],',
      ],
    },
  },
  'Vitest, with plugins': {
    files: {
      'vitest.config.mts': `import { defineConfig } from 'vitest/config';
export default defineConfig({ plugins: [paths()], test: {} });
`,
    },
    added: {
      'vitest.config.mts': [
        "import { vite as toolwright } from 'toolwright/plugin';",
        'export default defineConfig({ plugins: [toolwright(), paths()], test: {} });',
      ],
    },
  },
  'webpack in CommonJS': {
    files: { 'webpack.config.cjs': 'module.exports = {\n  plugins: [\n    new Other(),\n  ],\n};\n' },
    added: {
      'webpack.config.cjs': [
        "const { webpack: toolwright } = require('toolwright/plugin');",
        '    toolwright(),',
      ],
    },
  },
  'plain tsc': {
    files: {
      'package.json': manifest('\n  "scripts": {\n    "build": "tsc -p ."\n  }'),
      'tsconfig.json': `{
  "compilerOptions": {
    "module": "nodenext", // for Node
    "paths": { "toolwright": ["${ENTRY_POINT}"] }, // here
  },
  "include": ["src"],
}
`,
    },
    added: {
      'package.json': ['    "build": "tsc -p .",', '    "prebuild": "toolwright generate"'],
      'tsconfig.json': ['    "experimentalDecorators": true,'],
    },
  },
  'Jest with swc, in package.json': {
    files: {
      'package.json': manifest(
        '\n  "scripts": { "build": "tsc", "prebuild": "toolwright generate" },\n  "jest": { "transform": {} }',
      ),
    },
    added: { 'package.json': [`  "jest": { "transform": {}, "globalSetup": "toolwright/jest" }`] },
  },
  'NestJS 11 with ts-jest and tests in two folders': {
    files: {
      'package.json': manifest(
        '\n  "scripts": { "build": "nest build" },\n  "jest": {\n    "rootDir": "src",\n    "transform": { "^.+\\\\.(t|j)s$": "ts-jest" }\n  }',
      ),
      'nest-cli.json': '{ "compilerOptions": { "plugins": ["toolwright"] } }\n',
      'test/jest-e2e.json':
        '{\n  "rootDir": ".",\n  "transform": {\n    "^.+\\\\.(t|j)s$": "ts-jest"\n  }\n}\n',
    },
    added: {
      'package.json': [
        '    "transform": { "^.+\\\\.(t|j)s$": "ts-jest" },',
        '    "globalSetup": "toolwright/jest",',
        '    "transformIgnorePatterns": ["node_modules/(?!toolwright/)"]',
      ],
      'test/jest-e2e.json': [
        '  },',
        '  "globalSetup": "toolwright/jest",',
        '  "transformIgnorePatterns": ["node_modules/(?!toolwright/)"]',
      ],
    },
  },
  'ts-jest in code': {
    files: {
      'jest.config.ts': "export default {\n  preset: 'ts-jest',\n};\n",
      'package.json': manifest('\n  "scripts": { "build": "tsc", "prebuild": "toolwright generate" }'),
    },
    added: {
      'jest.config.ts': [
        "  transform: { 'node_modules/toolwright/.+[.]js$': 'ts-jest' },",
        "  transformIgnorePatterns: ['node_modules/(?!toolwright/)'],",
        "  globalSetup: 'toolwright/jest',",
      ],
    },
  },
  'ts-jest in code, as `ts-jest config:init` writes it': {
    files: {
      'jest.config.js':
        'const { createDefaultPreset } = require("ts-jest");\n\nconst tsJestTransformCfg = createDefaultPreset().transform;\n\n/** @type {import("jest").Config} **/\nmodule.exports = {\n  testEnvironment: "node",\n  transform: {\n    ...tsJestTransformCfg,\n  },\n};\n',
      'package.json': manifest('\n  "scripts": { "build": "tsc", "prebuild": "toolwright generate" }'),
    },
    added: {
      'jest.config.js': [
        "  transformIgnorePatterns: ['node_modules/(?!toolwright/)'],",
        "  globalSetup: 'toolwright/jest',",
        "    'node_modules/toolwright/.+[.]js$': 'ts-jest',",
      ],
    },
  },
  'ts-jest with its default preset in package.json': {
    files: {
      'package.json': manifest(
        '\n  "scripts": { "build": "tsc", "prebuild": "toolwright generate" },\n  "jest": {\n    "preset": "ts-jest"\n  }',
      ),
    },
    added: {
      'package.json': [
        '    "preset": "ts-jest",',
        '    "globalSetup": "toolwright/jest",',
        '    "transformIgnorePatterns": ["node_modules/(?!toolwright/)"],',
        '    "transform": { "node_modules/toolwright/.+[.]js$": "ts-jest" }',
      ],
    },
  },
  'ts-jest with its preset for JavaScript': {
    files: {
      'jest.config.js': "export default {\n  preset: 'ts-jest/presets/js-with-ts',\n};\n",
      'package.json': manifest('\n  "scripts": { "build": "tsc", "prebuild": "toolwright generate" }'),
    },
    added: {
      'jest.config.js': [
        "  transformIgnorePatterns: ['node_modules/(?!toolwright/)'],",
        "  globalSetup: 'toolwright/jest',",
      ],
    },
  },
  'ts-jest with ES modules': {
    files: {
      'jest.config.js':
        "export default {\n  extensionsToTreatAsEsm: ['.ts'],\n  preset: 'ts-jest/presets/default-esm',\n};\n",
      'package.json': manifest('\n  "scripts": { "build": "tsc", "prebuild": "toolwright generate" }'),
    },
    added: { 'jest.config.js': ["  globalSetup: 'toolwright/jest',"] },
  },
  'Vitest with several configuration files': {
    files: {
      'vitest.config.ts': 'export default {\n  test: {},\n};\n',
      'vitest.config.e2e.ts': 'export default {\n  test: {},\n};\n',
    },
    added: {
      'vitest.config.ts': [
        "import { vite as toolwright } from 'toolwright/plugin';",
        '  plugins: [toolwright()],',
      ],
      'vitest.config.e2e.ts': [
        "import { vite as toolwright } from 'toolwright/plugin';",
        '  plugins: [toolwright()],',
      ],
    },
  },
  'Next from create-next-app': {
    files: {
      'next.config.mjs':
        "/** @type {import('next').NextConfig} */\nconst nextConfig = {\n  // Nothing yet.\n};\n\nexport default nextConfig;\n",
      'package.json': manifest(
        '\n  "scripts": {\n    "dev": "next dev",\n    "build": "next build"\n  },\n  "dependencies": { "next": "15.5.29" }',
      ),
    },
    added: {
      'next.config.mjs': ["  serverExternalPackages: ['toolwright'],"],
      'package.json': [
        '    "build": "next build",',
        '    "predev": "toolwright generate",',
        '    "prebuild": "toolwright generate"',
      ],
    },
  },
  'Next with a configuration in TypeScript': {
    files: {
      'next.config.ts':
        "import type { NextConfig } from 'next';\n\nconst nextConfig: NextConfig = {\n  /* config options here */\n};\n\nexport default nextConfig;\n",
      'package.json': manifest(
        '\n  "scripts": { "dev": "toolwright generate && next dev", "build": "toolwright generate && next build" },\n  "devDependencies": { "next": "16.0.0" }',
      ),
    },
    added: { 'next.config.ts': ["  serverExternalPackages: ['toolwright'],"] },
  },
  'Jest with swc, in code': {
    files: {
      'jest.config.js': "/** @type {import('jest').Config} */\nexport default {\n  transform: {},\n};\n",
      'package.json': manifest('\n  "scripts": { "build": "toolwright generate && tsc" }'),
    },
    added: { 'jest.config.js': ["  globalSetup: 'toolwright/jest',"] },
  },
};

describe('toolwright init', () => {
  test.each(Object.entries(KINDS))('%s: adds the required lines and keeps all others', async (_, kind) => {
    using project = smallProject({ 'src/tools.ts': TOOLS, ...kind.files }, kind.options);
    const { code, out, error } = await runCommand(['init'], project.folder);
    expect({ code, error }).toEqual({ code: 0, error: '' });
    for (const [path, lines] of Object.entries(kind.added)) {
      const before = kind.files[path] ?? '';
      const after = read(project, path);
      expect(after.split('\n').filter((line) => !before.split('\n').includes(line))).toEqual(lines);
      for (const comment of before.match(/\/\/.*|\/\*.*?\*\//g) ?? []) expect(after).toContain(comment);
      for (const line of lines) expect(out).toContain(`+${line}`);
    }
    expect(existsSync(join(project.folder, 'src/toolwright.gen.ts'))).toBe(true);
  });

  test.each(Object.entries(KINDS))('%s: changes nothing the second time', async (_, { files, options }) => {
    using project = smallProject({ 'src/tools.ts': TOOLS, ...files }, options);
    await runCommand(['init'], project.folder);
    const texts = Object.keys(files).map((path) => read(project, path));
    const { code, out } = await runCommand(['init'], project.folder);
    expect({ code, out }).toEqual({
      code: 0,
      out: expect.stringMatching(
        /^The configuration is complete; nothing was changed\.\nsrc\/toolwright\.gen\.ts is up to date: 1 toolset, 1 tool\nNo file imports it\./,
      ),
    });
    expect(Object.keys(files).map((path) => read(project, path))).toEqual(texts);
  });

  test.each(VERSIONS)('uses the project’s TypeScript: %s', async (version) => {
    using project = smallProject(
      {
        'src/tools.ts': TOOLS,
        'package.json': manifest('\n  "scripts": { "build": "tsc" }'),
      },
      { experimentalDecorators: undefined },
    );
    withTypeScript(project, compilerPackage(version));
    const { code, out, error } = await runCommand(['init'], project.folder);
    expect({ code, error }).toEqual({ code: 0, error: '' });
    expect(out).toContain('"experimentalDecorators": true');
    expect(read(project, 'src/toolwright.gen.ts')).toContain("type: 'string'");
  });

  test('uses the tsconfig.json with the sources if the main one has only references', async () => {
    using project = smallProject({
      'src/tools.ts': TOOLS,
      'vite.config.ts': 'export default { plugins: [] };\n',
      'tsconfig.app.json': '{ "compilerOptions": { "experimentalDecorators": true }, "include": ["src"] }',
      'tsconfig.json': '{ "files": [], "references": [{ "path": "./tsconfig.app.json" }] }',
    });
    const { code } = await runCommand(['init'], project.folder);
    expect(code).toBe(0);
    expect(read(project, 'vite.config.ts')).toContain(
      "plugins: [toolwright({ project: 'tsconfig.app.json' })]",
    );
  });

  test('changes nothing and prints the lines if it cannot find where to insert them', async () => {
    const config =
      'const one = { plugins: [a()] };\nconst two = { plugins: [b()] };\nexport default one ?? two;\n';
    using project = smallProject({ 'src/tools.ts': TOOLS, 'vite.config.ts': config });
    const { code, out } = await runCommand(['init'], project.folder);
    expect(code).toBe(0);
    expect(read(project, 'vite.config.ts')).toBe(config);
    expect(out).toContain("import { vite as toolwright } from 'toolwright/plugin';");
  });

  test('prints the transform of ts-jest if another preset would replace it', async () => {
    const config =
      "const { createDefaultPreset } = require('ts-jest');\nmodule.exports = { ...createDefaultPreset() };\n";
    using project = smallProject({ 'src/tools.ts': TOOLS, 'jest.config.js': config });
    const { out } = await runCommand(['init'], project.folder);
    expect(read(project, 'jest.config.js')).not.toContain('transform:');
    expect(out).toContain("Add it yourself: 'node_modules/toolwright/.+[.]js$': 'ts-jest'");
  });

  test('preserves Windows line endings', async () => {
    using project = smallProject({ 'src/tools.ts': TOOLS, 'nest-cli.json': NEST.replaceAll('\n', '\r\n') });
    await runCommand(['init'], project.folder);
    expect(read(project, 'nest-cli.json').replaceAll('\r\n', '')).not.toContain('\n');
  });

  test('reports a missing package.json in one line', async () => {
    using project = smallProject({});
    expect(await runCommand(['init'], join(project.folder, 'node_modules'))).toMatchObject({
      code: 1,
      error: expect.stringMatching(/^toolwright: there is no package\.json in [^\n]+\n$/),
    });
  });

  test('sets up a project without tools', async () => {
    using project = smallProject({ 'src/main.ts': 'export {};\n', 'nest-cli.json': NEST });
    const { code, out, error } = await runCommand(['init'], project.folder);
    expect(code).toBe(0);
    expect(error).toBe('');
    const why = 'nothing was generated, because tsconfig.json has no exported class with a @Tool method';
    expect(out).toMatch(new RegExp(`${why}\\nExport such a class\\. Then run: npx toolwright generate\\n$`));
  });

  test('creates a tsconfig.json that compiles src into dist if there is none', async () => {
    using project = smallProject({ 'src/tools.ts': TOOLS, 'package.json': '{ "type": "module" }' });
    rmSync(join(project.folder, 'tsconfig.json'));
    const { code, out } = await runCommand(['init'], project.folder);
    expect(code).toBe(0);
    expect(out).toContain('+    "experimentalDecorators": true');
    expect(out).not.toContain('nothing was changed');
    expect(out).not.toContain('"type"');
    expect(JSON.parse(read(project, 'tsconfig.json'))).toMatchObject({
      compilerOptions: { experimentalDecorators: true, rootDir: 'src', outDir: 'dist' },
      include: ['src'],
    });
    expect(runCompiler('tsconfig.json', { folder: project.folder, emit: true })).toEqual([]);
    expect(existsSync(join(project.folder, 'dist/tools.js'))).toBe(true);
  });

  test('advises ES modules with a new tsconfig.json in a CommonJS project', async () => {
    using project = smallProject({ 'src/tools.ts': TOOLS, 'package.json': '{ "type": "commonjs" }' });
    rmSync(join(project.folder, 'tsconfig.json'));
    const { out } = await runCommand(['init'], project.folder);
    expect(out).toContain('npm pkg set type=module');
    expect((await runCommand(['init'], project.folder)).out).not.toContain('type=module');
  });

  test('asks for a build script, and does not report a project without one as complete', async () => {
    using project = smallProject({ 'src/tools.ts': TOOLS, 'package.json': '{ "type": "module" }' });
    for (const _ of [1, 2]) {
      const { out } = await runCommand(['init'], project.folder);
      expect(out).toContain('package.json has no build script. After each change of a tool, run');
      expect(out).not.toContain('complete');
    }
  });

  test('advises to import the generated file until a file does so', async () => {
    using project = smallProject({ 'src/tools.ts': TOOLS, 'nest-cli.json': NEST });
    for (const _ of [1, 2])
      expect((await runCommand(['init'], project.folder)).out).toMatch(
        /Add to the file that starts the application: import '\.\/toolwright\.gen(?:\.js)?'\n$/,
      );
  });

  test('writes nothing if there is no TypeScript', async () => {
    using project = smallProject({ 'src/tools.ts': TOOLS, 'package.json': '{ "type": "module" }' });
    rmSync(join(project.folder, 'tsconfig.json'));
    unlinkSync(join(project.folder, 'node_modules'));
    expect(await runCommand(['init'], project.folder)).toEqual({
      code: 1,
      out: '',
      error: expect.stringMatching(
        /^toolwright: TypeScript is not installed in .*npm install --save-dev typescript\n$/,
      ),
    });
    expect(existsSync(join(project.folder, 'tsconfig.json'))).toBe(false);
  });

  test('adds the types of Node to a new tsconfig.json if they are installed', async () => {
    const typesFor = async (isInstalled: boolean) => {
      using project = smallProject({ 'src/tools.ts': TOOLS });
      rmSync(join(project.folder, 'tsconfig.json'));
      withTypeScript(project, join(ROOT, 'node_modules', 'typescript'));
      if (!isInstalled) unlinkSync(join(project.folder, 'node_modules', '@types'));
      await runCommand(['init'], project.folder);
      return JSON.parse(read(project, 'tsconfig.json')).compilerOptions.types;
    };
    expect(await typesFor(true)).toEqual(['node']);
    expect(await typesFor(false)).toBeUndefined();
  });
});
