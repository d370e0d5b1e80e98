import { basename } from 'node:path';
import { expect, test } from '@jest/globals';
import { isThere, listFiles, readText } from './repository.js';
import { roomOf } from './rooms.js';
import { packageSources } from './source-tree.js';

const page = readText('docs/architecture.md');

test('the page lists every folder of the source with its rank, and no other folder', () => {
  const listed = [...page.matchAll(/^\| `([\w/-]+)` \| ([\d.]+) \|/gm)].map(
    ([, name, rank]) => `${name} ${rank}`,
  );
  const rooms = packageSources().flatMap(({ path }) => roomOf(path) ?? []);
  const names = rooms.filter(({ rank }) => rank < 100).map(({ name, rank }) => `${name} ${rank}`);
  expect(listed.sort()).toEqual([...new Set(names)].sort());
});

test('the files and folders that the page names exist', () => {
  const named = [...page.matchAll(/`((?:src|test|docs)\/[\w./-]+)`/g)].map(([, path = '']) => path);
  expect(named.length).toBeGreaterThan(30);
  expect(named.filter((path) => !isThere(path))).toEqual([]);
});

test('the page describes every change once, and names only files that exist', () => {
  const section = page.slice(page.indexOf('## To change this'), page.indexOf('## Folders'));
  const tasks = [...section.matchAll(/^\| [a-z][^|]+/gm)].map(([task]) => task);
  expect(tasks.length).toBeGreaterThan(20);
  expect(tasks.filter((task, index) => tasks.indexOf(task) < index)).toEqual([]);
  const existing = new Set(['src', 'test'].flatMap(listFiles).map((path) => basename(path)));
  const named = [...page.matchAll(/`([\w.-]+\.ts)`/g)].map(([, name = '']) => name);
  expect(named.filter((name) => !existing.has(name))).toEqual([]);
});
