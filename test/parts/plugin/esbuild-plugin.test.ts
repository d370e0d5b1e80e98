import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { type BuildOptions, build, context } from 'esbuild';
import { esbuild, type GenerateProjectOptions } from 'toolwright/plugin';
import { runCommand } from '../cli/run-command.js';
import { compilerPackage, VERSIONS } from '../typegen/compilers.js';
import { type SmallProject, smallProject, withTypeScript } from '../typegen/small-project.js';

const TOOLS =
  "import { Tool } from 'toolwright';\nexport class Tools {\n  @Tool('A') a(x: string) { return x; }\n}\n";
const MAIN = "import { toolsets } from './toolwright.gen.js';\nexport const all = toolsets;\n";
const FILES = { 'src/tools.ts': TOOLS, 'src/main.ts': MAIN };
const GENERATED = 'src/toolwright.gen.ts';

const read = ({ folder }: SmallProject, path: string) => readFileSync(join(folder, path), 'utf8');

function optionsFor({ folder }: SmallProject, options?: GenerateProjectOptions): BuildOptions {
  return {
    absWorkingDir: folder,
    entryPoints: ['src/main.ts'],
    bundle: true,
    format: 'esm',
    packages: 'external',
    external: ['*/typegen/fixtures/toolwright.ts'],
    outfile: 'out.js',
    logLevel: 'silent',
    plugins: [esbuild(options)],
  };
}

describe('the plugin for esbuild', () => {
  test('writes the same file as the command before the build reads it', async () => {
    using project = smallProject(FILES);
    await build(optionsFor(project));
    const written = read(project, GENERATED);
    expect(read(project, 'out.js')).toContain('describeClass(Tools');
    expect((await runCommand(['generate', '--check'], project.folder)).code).toBe(0);
    expect(written).toContain("{ name: 'x', schema: { type: 'string' } }");
  });

  test.each(VERSIONS)('uses the TypeScript of the project: %s', async (version) => {
    using project = smallProject(FILES);
    withTypeScript(project, compilerPackage(version));
    await build(optionsFor(project));
    expect(read(project, 'out.js')).toContain('type: "string"');
  });

  test('updates the file when esbuild rebuilds', async () => {
    using project = smallProject(FILES);
    const again = await context(optionsFor(project));
    try {
      await again.rebuild();
      project.write('src/tools.ts', TOOLS.replace('x: string', 'x: boolean'));
      await again.rebuild();
      expect(read(project, 'out.js')).toContain('type: "boolean"');
    } finally {
      await again.dispose();
    }
  });

  test('fails the build with the errors of the command', async () => {
    using project = smallProject({ ...FILES, 'src/tools.ts': TOOLS.replace('x: string', 'x: symbol') });
    const { error } = await runCommand(['generate'], project.folder);
    const errors = await build(optionsFor(project)).then(
      () => [],
      (failure: { readonly errors: readonly { readonly text: string }[] }) =>
        failure.errors.map(({ text }) => text),
    );
    expect(errors).toContain(error.trimEnd());
  });

  test('accepts the options of the command, and reports its warnings', async () => {
    using project = smallProject({
      'src/tools.ts': TOOLS.replace('x: string', 'x: unknown'),
      'src/main.ts': MAIN.replace('./toolwright.gen.js', './made/here.ts'),
    });
    const options = { project: 'tsconfig.json', out: 'src/made/here.ts', importEnding: 'ts' } as const;
    const { warnings } = await build(optionsFor(project, options));
    expect(warnings.map(({ text }) => text)).toEqual([expect.stringContaining('x is unknown')]);
    expect(read(project, 'src/made/here.ts')).toContain("from '../tools.ts'");
    await expect(build(optionsFor(project, { ...options, strict: true }))).rejects.toThrow('x is unknown');
  });
});
