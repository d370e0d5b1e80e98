import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Turns the project in a folder into a report: builds it if that is needed, and runs it. */
export type Toolchain = (folder: string) => string;

/** Every way of building that the manual promises, by name. */
export const TOOLCHAINS: Readonly<Record<string, Toolchain>> = {
  'tsc 7': (folder) => compiled(folder, 'typescript', []),
  'tsc 7 with metadata': (folder) => compiled(folder, 'typescript', ['--emitDecoratorMetadata']),
  'tsc 5.9': (folder) => compiled(folder, 'typescript-5.9', []),
  swc: (folder) => transformed(folder, false),
  'swc with metadata': (folder) => transformed(folder, true),
  'esbuild, bundled and minified': bundled,
  tsx: (folder) => run(folder, [join('node_modules', 'tsx', 'dist', 'cli.mjs'), join('src', 'main.ts')]),
  Jest: jested,
};

/** Runs this very Node in a folder; throws what it complains of. */
export function run(folder: string, args: readonly string[]): string {
  const env = { ...process.env, NODE_OPTIONS: '' };
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: folder,
    env,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}: ${stdout}${stderr}`);
  return stdout;
}

function compiled(folder: string, typescript: string, flags: readonly string[]): string {
  const out = `out-${typescript}-${flags.length}`;
  run(folder, [join('node_modules', typescript, 'bin', 'tsc'), '-p', '.', '--outDir', out, ...flags]);
  return run(folder, [join(out, 'main.js')]);
}

const TRANSFORM = `
  import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
  import { transformSync } from '@swc/core';
  const [out, metadata] = process.argv.slice(2);
  for (const file of readdirSync('src')) {
    const { code } = transformSync(readFileSync('src/' + file, 'utf8'), {
      filename: file,
      jsc: {
        target: 'es2022',
        parser: { syntax: 'typescript', decorators: true },
        transform: { legacyDecorator: true, decoratorMetadata: metadata === 'true', useDefineForClassFields: false },
      },
      module: { type: 'es6' },
      swcrc: false,
    });
    writeFileSync(out + '/' + file.replace(/ts$/, 'js'), code);
  }`;

function transformed(folder: string, withMetadata: boolean): string {
  const out = `out-swc-${withMetadata}`;
  mkdirSync(join(folder, out), { recursive: true });
  writeFileSync(join(folder, 'transform.mjs'), TRANSFORM);
  run(folder, ['transform.mjs', out, String(withMetadata)]);
  return run(folder, [join(out, 'main.js')]);
}

const BUNDLE = `
  import { build } from 'esbuild';
  await build({
    entryPoints: ['src/main.ts'],
    outfile: 'out-esbuild/main.js',
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'node',
    packages: 'external',
    logLevel: 'error',
  });`;

function bundled(folder: string): string {
  writeFileSync(join(folder, 'bundle.mjs'), BUNDLE);
  run(folder, ['bundle.mjs']);
  return run(folder, [join('out-esbuild', 'main.js')]);
}

function jested(folder: string): string {
  const jest = join('node_modules', 'jest', 'bin', 'jest.js');
  run(folder, ['--experimental-vm-modules', '--no-warnings', jest, '--silent']);
  return readFileSync(join(folder, 'report.json'), 'utf8');
}
