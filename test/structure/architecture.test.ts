import { basename } from 'node:path';
import { expect, test } from '@jest/globals';
import { folderNames, partOf } from './folders.js';
import { listFiles, pathExists, readText } from './repository.js';
import { packageSources } from './source-files.js';

const page = readText('docs/internals/architecture.md');

test('the page lists the nine folders and their parts, except toolsets', () => {
  const drawing = page.slice(page.indexOf('```'), page.lastIndexOf('```'));
  const folders = [...drawing.matchAll(/^ {2}(\w+)\//gm)].map(([, name]) => name);
  expect(folders).toEqual(folderNames());
  const parts = packageSources().flatMap(({ path }) => partOf(path)?.name.split('/') ?? []);
  const named = new Set(drawing.match(/[\w-]+/g));
  const missing = new Set(parts.filter((part) => part !== 'src' && part !== 'index.ts' && !named.has(part)));
  const toolsets = new Set(
    packageSources().flatMap(({ path }) => /^src\/toolbox\/([\w-]+)/.exec(path)?.[1] ?? []),
  );
  expect([...missing].filter((part) => !toolsets.has(part))).toEqual([]);
});

test.each(folderNames())('the README of src/%s names each of its parts', (folder) => {
  const readme = readText(`src/${folder}/README.md`);
  const parts = packageSources()
    .flatMap(({ path }) => partOf(path)?.name ?? [])
    .filter((name) => name.startsWith(`${folder}/`));
  expect([...new Set(parts)].filter((name) => !readme.includes(`\`${name.split('/')[1]}\``))).toEqual([]);
});

test('the paths on the page exist', () => {
  const named = [...page.matchAll(/`((?:src|test|docs)\/[\w./-]+)`/g)].map(([, path = '']) => path);
  expect(named.length).toBeGreaterThan(30);
  expect(named.filter((path) => !pathExists(path))).toEqual([]);
});

test('the page describes each task once and names only existing files', () => {
  const section = page.slice(page.indexOf('## To change this'), page.indexOf('## Where things are'));
  const tasks = [...section.matchAll(/^\| [a-z][^|]+/gm)].map(([task]) => task);
  expect(tasks.length).toBeGreaterThan(20);
  expect(tasks.filter((task, index) => tasks.indexOf(task) < index)).toEqual([]);
  const existing = new Set(['src', 'test'].flatMap(listFiles).map((path) => basename(path)));
  const named = [...page.matchAll(/`([\w.-]+\.ts)`/g)].map(([, name = '']) => name);
  expect(named.filter((name) => !existing.has(name))).toEqual([]);
});
