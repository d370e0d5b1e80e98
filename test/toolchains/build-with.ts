import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { type NodeRun, outputOfNode, runNode } from '../processes/run-node.js';

/** Turns the project in a folder into a report: builds it if that is needed, and runs it. */
export type Toolchain = (folder: string) => string;

/** Every way of building that the manual promises, by name. */
export const TOOLCHAINS: Readonly<Record<string, Toolchain>> = {
  'tsc 7.0': (folder) => compiled(folder, 'typescript', ['--singleThreaded']),
  'tsc 7.0 with metadata': (folder) =>
    compiled(folder, 'typescript', ['--singleThreaded', '--emitDecoratorMetadata']),
  'tsc 7.1': (folder) => compiled(folder, 'typescript-7.1', ['--singleThreaded']),
  'tsc 6.0': (folder) => compiled(folder, 'typescript-6.0', []),
  'tsc 5.9': (folder) => compiled(folder, 'typescript-5.9', []),
  swc: (folder) => transformed(folder, false),
  'swc with metadata': (folder) => transformed(folder, true),
  'esbuild, bundled and minified': bundled,
  'esbuild, everything in one ESM file': (folder) => alone(folder, 'esm'),
  'esbuild, everything in one CommonJS file, where no code may be generated': (folder) =>
    alone(folder, 'cjs', ['--disallow-code-generation-from-strings']),
  tsx: (folder) =>
    outputOfNode([join('node_modules', 'tsx', 'dist', 'cli.mjs'), join('src', 'main.ts')], { folder }),
  Jest: jested,
};

function compiled(folder: string, typescript: string, flags: readonly string[]): string {
  const out = `out-${typescript}-${flags.length}`;
  outputOfNode([join('node_modules', typescript, 'bin', 'tsc'), '-p', '.', '--outDir', out, ...flags], {
    folder,
  });
  return outputOfNode([join(out, 'main.js')], { folder });
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
  outputOfNode(['transform.mjs', out, String(withMetadata)], { folder });
  return outputOfNode([join(out, 'main.js')], { folder });
}

/** What becomes one file, and what it leaves outside. */
export interface Bundle {
  readonly outfile: string;
  readonly format: 'esm' | 'cjs';
  readonly packages?: 'external';
  readonly external?: readonly string[];
}

/** Bundles the project with esbuild, which may have nothing to complain of. */
export function bundle(folder: string, bundled: Bundle): void {
  const options = {
    // No `await` at the top: CommonJS has none.
    stdin: {
      contents: `
        import { report } from './report.js';
        report().then((text) => console.log(text));`,
      resolveDir: 'src',
    },
    bundle: true,
    minify: true,
    platform: 'node',
    ...bundled,
  };
  const code = `
    import { build } from 'esbuild';
    const { warnings } = await build(${JSON.stringify(options)});
    if (warnings.length > 0) process.exitCode = 1;`;
  writeFileSync(join(folder, 'bundle.mjs'), code);
  outputOfNode(['bundle.mjs'], { folder });
}

function bundled(folder: string): string {
  const outfile = join('out-esbuild', 'main.js');
  bundle(folder, { outfile, format: 'esm', packages: 'external' });
  return outputOfNode([outfile], { folder });
}

/** One file with everything in it, run where no package is to be found. */
function alone(folder: string, format: Bundle['format'], flags: readonly string[] = []): string {
  const place = mkdtempSync(join(tmpdir(), 'toolwright-alone-'));
  const outfile = join(place, format === 'esm' ? 'main.mjs' : 'main.cjs');
  try {
    bundle(folder, { outfile, format });
    return outputOfNode([...flags, outfile], { folder: place });
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

function jested(folder: string): string {
  const jest = join('node_modules', 'jest', 'bin', 'jest.js');
  outputOfNode(['--experimental-vm-modules', '--no-warnings', jest, '--silent'], { folder });
  return readFileSync(join(folder, 'report.json'), 'utf8');
}

/** A program as one file, and the packages whose code it contains. */
export async function bundleOf(
  folder: string,
  contents: string,
): Promise<{ readonly code: string; readonly packages: readonly string[] }> {
  const { outputFiles, metafile } = await build({
    stdin: { contents, resolveDir: folder, loader: 'ts' },
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'node',
    metafile: true,
    write: false,
    tsconfigRaw: { compilerOptions: { experimentalDecorators: true } },
  });
  const [output] = Object.values(metafile.outputs);
  const used = Object.entries(output?.inputs ?? {}).filter(([, { bytesInOutput }]) => bytesInOutput > 0);
  const names = used.map(([path]) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? '');
  return { code: outputFiles[0]?.text ?? '', packages: [...new Set(names)].filter((name) => name !== '') };
}

/** Runs a program as one file in an empty folder. */
export async function runBundled(folder: string, contents: string): Promise<NodeRun> {
  const place = mkdtempSync(join(tmpdir(), 'toolwright-alone-'));
  try {
    const { code } = await bundleOf(folder, contents);
    writeFileSync(join(place, 'main.mjs'), code);
    return runNode(['main.mjs'], { folder: place });
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}
