import { posix } from 'node:path';
import { expect, test } from '@jest/globals';
import { relativeLinks } from './markdown-links.js';
import { listFiles, pathExists, readManifest, readText } from './repository.js';

/** Commands of npm itself, which are not scripts. */
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

/** Packed pages link to files outside the package, such as images, by their URL. */
const OWN_FILE =
  /https:\/\/(?:github\.com\/toolwright\/toolwright\/(?:blob|tree)|raw\.githubusercontent\.com\/toolwright\/toolwright)\/main\/([^)\s#]+)/g;

const PAGES = listFiles('').filter((path) => path.endsWith('.md'));

const MANUAL = PAGES.filter((path) => /^(README|CONTRIBUTING|SKILL|AGENTS)\.md$|^docs\//.test(path));

test('the repository has a README, a changelog, a license and a guide for contributors', () => {
  expect(
    ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'LICENSE'].filter((path) => !pathExists(path)),
  ).toEqual([]);
});

test('the README names the commands that start and test a new clone', () => {
  const readme = readText('README.md');
  expect(
    ['npm ci && npm start', 'npm ci && npm test'].filter((command) => !readme.includes(command)),
  ).toEqual([]);
});

test('SKILL.md has front matter, and the pages for coding agents are short', () => {
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
      .filter(([, test]) => !pathExists(test!))
      .map(([, test]) => `${path}: ${test}`),
  );
  expect(missing).toEqual([]);
});

test('each requirement in docs/internals/requirements.md has a unique number and names a test', () => {
  const rows = readText('docs/internals/requirements.md').match(/^- \*\*[A-Z]\d.*$/gm) ?? [];
  const numbers = rows.map((row) => row.split('**')[1]!);
  expect(numbers.length).toBeGreaterThan(30);
  expect(new Set(numbers).size).toBe(numbers.length);
  expect(rows.filter((row) => !/`test\/[^`]+`$/.test(row))).toEqual([]);
});

test('docs/index.md, the navigation of the site, lists every page once', () => {
  const listed = [...readText('docs/index.md').matchAll(/^- \[.+?\]\((.+?)\)/gm)].map(
    ([, link]) => `docs/${link}`,
  );
  const pages = PAGES.filter((path) => /^docs\/(?!index\.md$|internals\/decisions\/\d)/.test(path));
  expect(listed.toSorted()).toEqual(pages.toSorted());
});

test('relative links lead to existing files and headings', () => {
  const broken = PAGES.flatMap((path) =>
    relativeLinks(readText(path))
      .filter((link) => !isResolved(path, link))
      .map((link) => `${path}: ${link}`),
  );
  expect(broken).toEqual([]);
});

test('packed pages have no relative links to files that are not packed', () => {
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

test('links to files of this repository on GitHub lead to existing files', () => {
  const broken = PAGES.flatMap((path) =>
    [...readText(path).matchAll(OWN_FILE)]
      .filter(([, file = '']) => !pathExists(file))
      .map(([, file]) => `${path}: ${file}`),
  );
  expect(broken).toEqual([]);
});

test('npmScripts and relativeLinks find scripts and links in a text', () => {
  const text =
    'Run `npm run bench -- --json`, `npm ci && npm start`, npm tset; [a](x/y.md#z), [b](https://z), ![c](d.png)';
  expect(npmScripts(text)).toEqual(['bench', 'start', 'tset']);
  expect(relativeLinks(text)).toEqual(['x/y.md#z', 'd.png']);
});

test('a link to a missing heading is detected', () => {
  expect(isResolved('docs/reference/errors.md', '#errors')).toBe(true);
  expect(isResolved('docs/reference/errors.md', '#nothing')).toBe(false);
});

/** The scripts in `npm run x`, and in `npm x` if that is not a command of npm. */
function npmScripts(text: string): string[] {
  const names = [...text.matchAll(/\bnpm (?:run )?(?:--?[\w-]+ )*([a-z][\w:-]*)/g)].map(
    ([, name = '']) => name,
  );
  return names.filter((name) => name === 'start' || name === 'test' || !NPM_COMMANDS.has(name));
}

function isResolved(page: string, link: string): boolean {
  const [path = '', heading] = link.split('#');
  const target = path === '' ? page : posix.normalize(posix.join(posix.dirname(page), path));
  if (!pathExists(target)) return false;
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
