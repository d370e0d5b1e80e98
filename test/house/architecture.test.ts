import { writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from '@jest/globals';
import { generatedParts, PAGE, updatedPage } from './architecture.js';
import { isThere, listFiles, ROOT, readText } from './repository.js';
import { mappedRooms, PURPOSES } from './room-map.js';

test('every room says in a line what it is for, and every line is of a room', () => {
  expect(Object.keys(PURPOSES).sort()).toEqual(
    mappedRooms()
      .map(({ name }) => name)
      .sort(),
  );
});

test('the page of the architecture shows the rooms as they are: npm run map', () => {
  if (process.env.UPDATE_MAP) writeFileSync(join(ROOT, PAGE), updatedPage(readText(PAGE)));
  const page = readText(PAGE);
  for (const [name, part] of Object.entries(generatedParts()))
    expect({ name, part: page.includes(part) ? part : '' }).toEqual({ name, part });
});

test('the files and folders that the page tells to open are there', () => {
  const named = [...readText(PAGE).matchAll(/`((?:src|test|docs)\/[\w./-]+)`/g)].map(([, path = '']) => path);
  expect(named.length).toBeGreaterThan(30);
  expect(named.filter((path) => !isThere(path))).toEqual([]);
});

test('the page says once what to open for a change, also of files that it names without their folder', () => {
  const page = readText(PAGE);
  const section = page.slice(page.indexOf('## To change this'), page.indexOf('## Drawing'));
  const tasks = [...section.matchAll(/^\| [a-z][^|]+/gm)].map(([task]) => task);
  expect(tasks.length).toBeGreaterThan(20);
  expect(tasks.filter((task, index) => tasks.indexOf(task) < index)).toEqual([]);
  const there = new Set(['src', 'test'].flatMap(listFiles).map((path) => basename(path)));
  const named = [...page.matchAll(/`([\w.-]+\.ts)`/g)].map(([, name = '']) => name);
  expect(named.filter((name) => !there.has(name))).toEqual([]);
});
