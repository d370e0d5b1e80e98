import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

const { exports } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'));

/** Package names resolve to the sources, so that tests need no build and coverage refers to the sources. */
const entryPoints = Object.fromEntries(
  Object.entries(exports)
    .filter(([, path]) => path.endsWith('.js'))
    .map(([name, path]) => [
      `^toolwright${name.slice(1)}$`,
      path.replace('./dist', '<rootDir>').replace(/\.js$/, '.ts'),
    ]),
);

export default {
  // Many tests wait for processes and sockets: with four more workers than cores, the cores stay busy.
  maxWorkers: availableParallelism() + 4,
  testSequencer: '<rootDir>/test/setup/longest-first.mjs',
  // Restarts the worker, so that leftovers of a test file end with it.
  workerIdleMemoryLimit: '1000MB',
  // A large process takes a while to end on a busy machine.
  workerGracefulExitTimeout: 30_000,
  testEnvironment: '<rootDir>/test/setup/environment.mjs',
  // A busy machine may be many times slower, and no test is about speed.
  testTimeout: 180_000,
  globalSetup: '<rootDir>/test/setup/before-all.mjs',
  globalTeardown: '<rootDir>/test/setup/after-all.mjs',
  reporters: [
    'default',
    '<rootDir>/test/services/skipped-services.mjs',
    '<rootDir>/test/setup/summary-line.mjs',
  ],
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/'],
  extensionsToTreatAsEsm: ['.ts'],
  // Jest tries them in this order, and most imports without an extension are TypeScript.
  moduleFileExtensions: ['ts', 'js', 'mjs', 'cjs', 'json', 'node'],
  modulePathIgnorePatterns: ['<rootDir>/dist/'],
  moduleNameMapper: {
    ...entryPoints,
    '^fast-check$': '<rootDir>/test/setup/fast-check.mjs',
    '^(\\.{1,2}/.*)\\.js$': '$1',
    '^(\\.{1,2}/.*)\\.cjs$': ['$1.cts', '$1.cjs'],
  },
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        jsc: {
          target: 'es2022',
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, decoratorMetadata: true, useDefineForClassFields: false },
          keepClassNames: true,
        },
        module: { type: 'es6' },
      },
    ],
    '^.+\\.cts$': [
      '@swc/jest',
      { jsc: { target: 'es2022', parser: { syntax: 'typescript' } }, module: { type: 'commonjs' } },
    ],
  },
  collectCoverageFrom: ['src/**/*.ts', 'decorators/**/*.ts'],
};
