import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { folderFor } from './processes.mjs';

/** Options of esbuild for Workers. */
export const WORKER_BUILD = {
  target: 'es2022',
  conditions: ['workerd', 'worker', 'browser'],
  mainFields: ['browser', 'module', 'main'],
};

/** Bundles like wrangler, with the modules of Node as external modules. */
export async function worker(folders) {
  const out = folderFor(folders, 'worker');
  await build({
    entryPoints: [join(folders.project, 'esm', 'worker.js')],
    outfile: join(out, 'worker.js'),
    bundle: true,
    format: 'esm',
    platform: 'node',
    logLevel: 'silent',
    ...WORKER_BUILD,
  });
  return inWorkerd(readFileSync(join(out, 'worker.js'), 'utf8'));
}

/** The response of the worker to a request. */
export async function inWorkerd(contents) {
  const { Miniflare } = await import('miniflare');
  const runtime = new Miniflare({
    modules: [{ type: 'ESModule', path: 'worker.js', contents }],
    compatibilityDate: '2026-07-01',
    compatibilityFlags: ['nodejs_compat'],
  });
  try {
    const response = await runtime.dispatchFetch('http://localhost/');
    return await response.text();
  } finally {
    await runtime.dispose();
  }
}
