import { fileURLToPath } from 'node:url';
import sources from '../../jest.config.js';
import { testFiles } from './test-files.mjs';
import { GROUPS, groupTests } from './test-groups.mjs';

const rootDir = fileURLToPath(new URL('../..', import.meta.url));
const { moduleNameMapper, ...others } = sources;
const { roots, transform, testEnvironment, extensionsToTreatAsEsm, moduleFileExtensions } = others;
const { maxWorkers, workerIdleMemoryLimit, workerGracefulExitTimeout, testTimeout } = others;
const { globalSetup, globalTeardown, reporters, testSequencer } = others;

// Files that the command names run by themselves: no group has their name.
const isWhole = !process.argv
  .slice(2)
  .some((word) => /^(?:\.\/)?test\//.test(word) && !word.endsWith('.config.js'));

const project = {
  rootDir,
  roots: isWhole ? [...roots, `<rootDir>/${GROUPS}`] : roots,
  transform,
  testEnvironment,
  extensionsToTreatAsEsm,
  moduleFileExtensions,
};
const { doors, parts } = testFiles();
const inRoot = (path) => `<rootDir>/${path}`;
const files = (paths, name) => (isWhole ? groupTests(paths, name) : paths).map(inRoot);

/**
 * All tests after a build: those that know the package by its doors alone open the built ones, a handful of files
 * instead of hundreds, which is most of what a test file takes. The others test the sources.
 */
export default {
  rootDir,
  // Of the whole run, also where Jest would take them from a project: there, it would not heed the limit of a test.
  ...{ maxWorkers, workerIdleMemoryLimit, workerGracefulExitTimeout, testTimeout },
  ...{ globalSetup, globalTeardown, reporters, testSequencer },
  projects: [
    {
      ...project,
      displayName: 'doors',
      testMatch: files(doors, 'doors'),
      moduleNameMapper: Object.fromEntries(
        Object.entries(moduleNameMapper).filter(([name]) => !name.startsWith('^toolwright')),
      ),
    },
    {
      ...project,
      displayName: 'sources',
      testMatch: files(parts, 'sources'),
      moduleNameMapper,
    },
  ],
};
