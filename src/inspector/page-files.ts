import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const TYPES: Readonly<Record<string, string>> = {
  'index.html': 'text/html; charset=utf-8',
  'page.js': 'text/javascript; charset=utf-8',
  'page.css': 'text/css; charset=utf-8',
};

/** Nothing of elsewhere, nothing inline, and no page may put this one into a frame. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** What every answer says of itself. */
export const SAFE_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'cache-control': 'no-store',
};

let folder: string | undefined;

/** A file of the page; nothing where it has no such file. */
export async function pageFile(name: string): Promise<Response | undefined> {
  const file = name === '' ? 'index.html' : name;
  if (!Object.hasOwn(TYPES, file)) return undefined;
  folder ??= pageFolder(import.meta.dirname);
  const text = await readFile(join(folder, file), 'utf8');
  return new Response(text, { headers: { ...SAFE_HEADERS, 'content-type': TYPES[file] ?? '' } });
}

/** The build moves this file; what it writes of the page lies in one place. */
function pageFolder(from: string): string {
  const found = join(from, 'dist', 'inspector');
  if (existsSync(found)) return found;
  const parent = dirname(from);
  if (parent === from) throw new Error('the page of the inspector is not built: npm run build');
  return pageFolder(parent);
}
