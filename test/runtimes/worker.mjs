import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { folderFor } from './processes.mjs';

/** What makes a bundle one for Workers. */
export const WORKER_BUILD = {
  target: 'es2022',
  conditions: ['workerd', 'worker', 'browser'],
  mainFields: ['browser', 'module', 'main'],
};

/** As their own command bundles them: the modules of Node stay outside. */
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

/** What the worker answers to a request. */
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
