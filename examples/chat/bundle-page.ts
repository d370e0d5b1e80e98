import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The pages of the example. */
const PAGES = ['use-chat', 'ag-ui'] as const;

export function isPage(name: string): boolean {
  return (PAGES as readonly string[]).includes(name);
}

const bundles = new Map<string, Promise<string>>();

/** Bundles a page and its imports as one script for browsers. */
export function bundlePage(name: string): Promise<string> {
  const bundled = bundles.get(name) ?? bundle(pageFile(`${name}.jsx`));
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

/** The HTML of a page, which loads the script. */
export function htmlOf(name: string): string {
  return html(name, `<div id="page"></div><script type="module" src="/pages/${name}.js"></script>`);
}

/** The page with links to the others. */
export function indexHtml(): string {
  const links = PAGES.map((name) => `<li><a href="/${name}">${name}</a></li>`);
  const head = '<header><strong>Lamp shop</strong><h1>Chats</h1></header>';
  return html('Chats', `${head}<main><ol>${links.join('')}</ol></main>`);
}

function html(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>${title}</title>
    <link rel="icon" href="data:,">
    <style>${readFileSync(pageFile('page.css'), 'utf8')}</style>
  </head>
  <body>${body}</body>
</html>
`;
}

function pageFile(name: string): string {
  return join(packageFolder(), 'examples/chat/pages', name);
}

/** The compiled file is in a deeper folder than its source. */
function packageFolder(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder);
  return folder;
}
