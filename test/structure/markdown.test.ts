import { posix } from 'node:path';
import { expect, test } from '@jest/globals';
import { relativeLinks } from './markdown-links.js';
import { isThere, listFiles, readManifest, readText } from './repository.js';

/** Commands of npm itself that a README may name. */
const NPM_COMMANDS = new Set([
  'ci',
  'create',
  'init',
  'install',
  'pkg',
  'i',
  'start',
  'test',
  'run',
  'pack',
  'publish',
  'view',
  'version',
]);

/** Packed pages name what is not packed, such as images, by their address. */
const OWN_FILE =
  /https:\/\/(?:github\.com\/toolwright\/toolwright\/(?:blob|tree)|raw\.githubusercontent\.com\/toolwright\/toolwright)\/main\/([^)\s#]+)/g;

const PAGES = listFiles('').filter((path) => path.endsWith('.md'));

const MANUAL = PAGES.filter((path) => /^(README|CONTRIBUTING|SKILL|AGENTS)\.md$|^docs\//.test(path));

test('the repository has the pages that newcomers look for', () => {
  expect(
    ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'LICENSE'].filter((path) => !isThere(path)),
  ).toEqual([]);
});

test('the README names the two commands for a fresh machine', () => {
  const readme = readText('README.md');
  expect(
    ['npm ci && npm start', 'npm ci && npm test'].filter((command) => !readme.includes(command)),
  ).toEqual([]);
});

test('SKILL.md has its front matter, and the pages for coding agents are short', () => {
  expect(readText('SKILL.md')).toMatch(/^---\nname: toolwright\ndescription: .{100,}\n---\n\n# /);
  const words = ['SKILL.md', 'AGENTS.md'].map((path) => readText(path).split(/\s+/).length);
  expect(words.filter((count) => count > 900)).toEqual([]);
});

test('every npm script that the manual names exists', () => {
  const { scripts } = readManifest();
  const wrong = MANUAL.flatMap((path) =>
    npmScripts(readText(path))
      .filter((name) => !Object.hasOwn(scripts, name))
      .map((name) => `${path}: npm run ${name}`),
  );
  expect(wrong).toEqual([]);
});

test('every test that the manual names exists', () => {
  const missing = MANUAL.flatMap((path) =>
    [...readText(path).matchAll(/`(test\/[\w/.-]+\.ts)`/g)]
      .filter(([, test]) => !isThere(test!))
      .map(([, test]) => `${path}: ${test}`),
  );
  expect(missing).toEqual([]);
});

test('each promise in docs/internals/requirements.md has a number of its own and a test', () => {
  const rows = readText('docs/internals/requirements.md').match(/^- \*\*[A-Z]\d.*$/gm) ?? [];
  const numbers = rows.map((row) => row.split('**')[1]!);
  expect(numbers.length).toBeGreaterThan(30);
  expect(new Set(numbers).size).toBe(numbers.length);
  expect(rows.filter((row) => !/`test\/[^`]+`$/.test(row))).toEqual([]);
});

test('docs/index.md, which is the navigation of the site, lists every page once', () => {
  const listed = [...readText('docs/index.md').matchAll(/^- \[.+?\]\((.+?)\)/gm)].map(
    ([, link]) => `docs/${link}`,
  );
  const pages = PAGES.filter((path) => /^docs\/(?!index\.md$|internals\/decisions\/\d)/.test(path));
  expect(listed.toSorted()).toEqual(pages.toSorted());
});

test('every relative link leads to something that is there', () => {
  const broken = PAGES.flatMap((path) =>
    relativeLinks(readText(path))
      .filter((link) => !leadsSomewhere(path, link))
      .map((link) => `${path}: ${link}`),
  );
  expect(broken).toEqual([]);
});

test('a page that is packed has no relative link to a file that is not, such as an image', () => {
  const { files } = readManifest();
  const isPacked = (path: string) =>
    path === 'README.md' || files.some((packed) => path === packed || path.startsWith(`${packed}/`));
  const lost = PAGES.filter(isPacked).flatMap((path) =>
    relativeLinks(readText(path))
      .map((link) => posix.join(posix.dirname(path), link.split('#')[0] || posix.basename(path)))
      .filter((target) => !isPacked(target))
      .map((target) => `${path}: ${target}`),
  );
  expect(lost).toEqual([]);
});

test('every link to a file of this repository on the web leads to one that is there', () => {
  const broken = PAGES.flatMap((path) =>
    [...readText(path).matchAll(OWN_FILE)]
      .filter(([, file = '']) => !isThere(file))
      .map(([, file]) => `${path}: ${file}`),
  );
  expect(broken).toEqual([]);
});

test('commands and links are found where they stand', () => {
  const text =
    'Run `npm run bench -- --json`, `npm ci && npm start`, npm tset; [a](x/y.md#z), [b](https://z), ![c](d.png)';
  expect(npmScripts(text)).toEqual(['bench', 'start', 'tset']);
  expect(relativeLinks(text)).toEqual(['x/y.md#z', 'd.png']);
});

test('a link to a heading that is not there would be found', () => {
  expect(leadsSomewhere('docs/reference/errors.md', '#errors')).toBe(true);
  expect(leadsSomewhere('docs/reference/errors.md', '#nothing')).toBe(false);
});

/** Scripts by `npm run x`, and by `npm x` where that is not a command of npm. */
function npmScripts(text: string): string[] {
  const names = [...text.matchAll(/\bnpm (?:run )?(?:--?[\w-]+ )*([a-z][\w:-]*)/g)].map(
    ([, name = '']) => name,
  );
  return names.filter((name) => name === 'start' || name === 'test' || !NPM_COMMANDS.has(name));
}

function leadsSomewhere(page: string, link: string): boolean {
  const [path = '', heading] = link.split('#');
  const target = path === '' ? page : posix.normalize(posix.join(posix.dirname(page), path));
  if (!isThere(target)) return false;
  return heading === undefined || !target.endsWith('.md') || headingsOf(target).includes(heading);
}

function headingsOf(path: string): string[] {
  return [...readText(path).matchAll(/^#+ (.*)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}
