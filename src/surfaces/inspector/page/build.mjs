// Builds the page of the inspector: one script, one style and one document, which nothing else of the package loads.
import { cpSync, mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

/** Writes the page into a folder. */
export async function buildPage(folder) {
  mkdirSync(folder, { recursive: true });
  const file = (name) => fileURLToPath(new URL(name, import.meta.url));
  await build({
    entryPoints: [file('page.tsx'), file('page.css')],
    outdir: folder,
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: ['chrome123', 'firefox121', 'safari17.5'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'inline',
    logLevel: 'warning',
  });
  cpSync(file('index.html'), `${folder}/index.html`);
}
