import { fileURLToPath } from 'node:url';
import sources from '../../jest.config.js';
import { doorTests } from './door-tests.mjs';

const rootDir = fileURLToPath(new URL('../..', import.meta.url));
const { moduleNameMapper, modulePathIgnorePatterns, testPathIgnorePatterns, testMatch, ...base } = sources;
const { roots, transform, testEnvironment, testTimeout, extensionsToTreatAsEsm, moduleFileExtensions } = base;
const {
  maxWorkers,
  workerIdleMemoryLimit,
  workerGracefulExitTimeout,
  globalSetup,
  globalTeardown,
  reporters,
} = base;
const both = {
  ...{
    rootDir,
    roots,
    transform,
    testEnvironment,
    testTimeout,
    extensionsToTreatAsEsm,
    moduleFileExtensions,
  },
};
const doors = doorTests();

/**
 * All tests after a build: those that know the package by its doors alone open the built ones, a handful of files
 * instead of hundreds, which is most of what a test file takes. The others test the sources.
 */
export default {
  ...{ rootDir, maxWorkers, workerIdleMemoryLimit, workerGracefulExitTimeout },
  ...{ globalSetup, globalTeardown, reporters },
  projects: [
    {
      ...both,
      displayName: 'doors',
      testMatch: doors.map((path) => `<rootDir>/${path}`),
      testPathIgnorePatterns,
      moduleNameMapper: Object.fromEntries(
        Object.entries(moduleNameMapper).filter(([name]) => !name.startsWith('^toolwright')),
      ),
    },
    {
      ...both,
      displayName: 'rooms',
      testMatch,
      testPathIgnorePatterns: [
        ...testPathIgnorePatterns,
        ...doors.map((path) => `<rootDir>/${path.replaceAll('.', '\\.')}$`),
      ],
      moduleNameMapper,
      modulePathIgnorePatterns,
    },
  ],
};
