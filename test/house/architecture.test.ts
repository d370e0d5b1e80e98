import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { generatedParts, PAGE, updatedPage } from './architecture.js';
import { isThere, ROOT, readText } from './repository.js';
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
