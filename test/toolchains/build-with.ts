import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { type NodeRun, outputOfNode, runNode } from '../processes/run-node.js';

/** Builds the project in a folder if needed, runs it and returns its report. */
export type Toolchain = (folder: string) => string;

/** The toolchains that the documentation supports. */
export const TOOLCHAINS: Readonly<Record<string, Toolchain>> = {
  'tsc 7.0': (folder) => withTsc(folder, 'typescript', ['--singleThreaded']),
  'tsc 7.0 with metadata': (folder) =>
    withTsc(folder, 'typescript', ['--singleThreaded', '--emitDecoratorMetadata']),
  'tsc 7.1': (folder) => withTsc(folder, 'typescript-7.1', ['--singleThreaded']),
  'tsc 6.0': (folder) => withTsc(folder, 'typescript-6.0', []),
  'tsc 5.9': (folder) => withTsc(folder, 'typescript-5.9', []),
  swc: (folder) => withSwc(folder, false),
  'swc with metadata': (folder) => withSwc(folder, true),
  'esbuild, bundled and minified': withEsbuild,
  'esbuild, everything in one ESM file': (folder) => standalone(folder, 'esm'),
  'esbuild, everything in one CommonJS file, without code generation': (folder) =>
    standalone(folder, 'cjs', ['--disallow-code-generation-from-strings']),
  tsx: (folder) =>
    outputOfNode([join('node_modules', 'tsx', 'dist', 'cli.mjs'), join('src', 'main.ts')], { folder }),
  Jest: withJest,
};

function withTsc(folder: string, typescript: string, flags: readonly string[]): string {
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

function withSwc(folder: string, withMetadata: boolean): string {
  const out = `out-swc-${withMetadata}`;
  mkdirSync(join(folder, out), { recursive: true });
  writeFileSync(join(folder, 'transform.mjs'), TRANSFORM);
  outputOfNode(['transform.mjs', out, String(withMetadata)], { folder });
  return outputOfNode([join(out, 'main.js')], { folder });
}

/** The output of a bundler and its external packages. */
export interface Bundle {
  readonly outfile: string;
  readonly format: 'esm' | 'cjs';
  readonly packages?: 'external';
  readonly external?: readonly string[];
}

/** Bundles the project with esbuild; a warning is an error. */
export function bundle(folder: string, bundled: Bundle): void {
  const options = {
    // CommonJS has no top-level `await`.
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

function withEsbuild(folder: string): string {
  const outfile = join('out-esbuild', 'main.js');
  bundle(folder, { outfile, format: 'esm', packages: 'external' });
  return outputOfNode([outfile], { folder });
}

/** Bundles all packages into one file and runs it in an empty folder. */
function standalone(folder: string, format: Bundle['format'], flags: readonly string[] = []): string {
  const emptyFolder = mkdtempSync(join(tmpdir(), 'toolwright-standalone-'));
  const outfile = join(emptyFolder, format === 'esm' ? 'main.mjs' : 'main.cjs');
  try {
    bundle(folder, { outfile, format });
    return outputOfNode([...flags, outfile], { folder: emptyFolder });
  } finally {
    rmSync(emptyFolder, { recursive: true, force: true });
  }
}

function withJest(folder: string): string {
  const jest = join('node_modules', 'jest', 'bin', 'jest.js');
  outputOfNode(['--experimental-vm-modules', '--no-warnings', jest, '--silent'], { folder });
  return readFileSync(join(folder, 'report.json'), 'utf8');
}

/** Bundles a program into one file; also returns the packages whose code it contains. */
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

/** Bundles a program into one file and runs it in an empty folder. */
export async function runBundled(folder: string, contents: string): Promise<NodeRun> {
  const emptyFolder = mkdtempSync(join(tmpdir(), 'toolwright-standalone-'));
  try {
    const { code } = await bundleOf(folder, contents);
    writeFileSync(join(emptyFolder, 'main.mjs'), code);
    return runNode(['main.mjs'], { folder: emptyFolder });
  } finally {
    rmSync(emptyFolder, { recursive: true, force: true });
  }
}
