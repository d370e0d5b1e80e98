import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { VERSION_NEUTRAL } from '@nestjs/common';
import { ApplicationConfig } from '@nestjs/core';

test('the tests run with NestJS 11', () => {
  const manifest = readFileSync(new URL('node_modules/@nestjs/core/package.json', import.meta.url), 'utf8');
  expect(JSON.parse(manifest).version).toMatch(/^11\./);
  // The imported classes are from that copy: `registerPreRequestHook` exists only since NestJS 12.
  expect(VERSION_NEUTRAL).toBeDefined();
  expect('registerPreRequestHook' in ApplicationConfig.prototype).toBe(false);
});
