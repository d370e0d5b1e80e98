import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The pages of the example. */
export const PAGES = ['use-chat', 'ag-ui'] as const;

export function isPage(name: string): boolean {
  return (PAGES as readonly string[]).includes(name);
}

const bundles = new Map<string, Promise<string>>();

/** A page with everything that it imports, as one program for browsers. */
export function bundlePage(name: string): Promise<string> {
  const bundled = bundles.get(name) ?? bundle(join(packageFolder(), 'examples/chat/pages', `${name}.jsx`));
  bundles.set(name, bundled);
  return bundled;
}

async function bundle(entry: string): Promise<string> {
  const { build } = await import('esbuild');
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    jsx: 'automatic',
    minify: true,
    define: { 'process.env.NODE_ENV': '"production"' },
  });
  return outputFiles[0]?.text ?? '';
}

/** The page that loads the program. */
export function htmlOf(name: string): string {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width">
    <title>${name}</title>
    <link rel="icon" href="data:,">
  </head>
  <body>
    <div id="page"></div>
    <script type="module" src="/pages/${name}.js"></script>
  </body>
</html>
`;
}

/** Built, this file is deeper than its source. */
function packageFolder(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder);
  return folder;
}
