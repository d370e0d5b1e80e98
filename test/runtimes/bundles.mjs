import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { BIN, folderFor, node, run } from './processes.mjs';

/** Bundles everything into one file and runs it in an empty folder. */
export async function esbuildFile(folders, { format, file }) {
  const out = folderFor(folders, `esbuild-${format}`);
  const { warnings } = await build({
    entryPoints: [join(folders.project, 'esm', 'main.js')],
    outfile: join(out, file),
    bundle: true,
    platform: 'node',
    format,
    logLevel: 'silent',
  });
  if (warnings.length > 0) throw new Error(warnings.map(({ text }) => text).join('\n'));
  return node(out, [file]);
}

export async function viteBuild(folders) {
  const out = folderFor(folders, 'vite');
  const { build: viteBuild } = await import('vite');
  await viteBuild({
    root: folders.project,
    configFile: false,
    logLevel: 'error',
    ssr: { noExternal: true },
    build: { ssr: join(folders.project, 'esm', 'main.js'), outDir: out, emptyOutDir: true, minify: false },
  });
  writeFileSync(join(out, 'package.json'), '{ "type": "module" }');
  return node(out, ['main.js']);
}

export async function viteServer({ project }) {
  const { createServer } = await import('vite');
  const server = await createServer({
    root: project,
    configFile: false,
    logLevel: 'error',
    server: { middlewareMode: true, ws: false },
  });
  try {
    const { report } = await server.ssrLoadModule('/esm/report.js');
    return await report();
  } finally {
    await server.close();
  }
}

export async function webpackBuild(folders) {
  const out = folderFor(folders, 'webpack');
  const { default: webpack } = await import('webpack');
  const compiler = webpack({
    context: folders.project,
    entry: join(folders.project, 'esm', 'main.js'),
    mode: 'production',
    optimization: { minimize: false },
    target: 'node',
    output: { path: out, filename: 'main.cjs' },
  });
  const stats = await new Promise((resolve, reject) => {
    compiler.run((error, result) => compiler.close(() => (error ? reject(error) : resolve(result))));
  });
  if (stats.hasErrors()) throw new Error(stats.toString({ all: false, errors: true, warnings: true }));
  if (stats.hasWarnings()) throw new Error(stats.toString({ all: false, warnings: true }));
  return node(out, ['main.cjs']);
}

export function bunExecutable(folders) {
  const out = folderFor(folders, 'bun');
  const program = join(out, 'main');
  run(folders.project, `${BIN}bun`, ['build', '--compile', join('esm', 'main.js'), '--outfile', program]);
  return run(out, program, []);
}
