import { fileURLToPath } from 'node:url';
import sources from '../../jest.config.js';
import { testFiles } from './test-files.mjs';
import { GROUPS, groupTests } from './test-groups.mjs';

const rootDir = fileURLToPath(new URL('../..', import.meta.url));
const { moduleNameMapper, ...others } = sources;
const { roots, transform, testEnvironment, extensionsToTreatAsEsm, moduleFileExtensions } = others;
const { maxWorkers, workerIdleMemoryLimit, workerGracefulExitTimeout, testTimeout } = others;
const { globalSetup, globalTeardown, reporters, testSequencer } = others;

// Files named on the command line are not grouped.
const isWholeRun = !process.argv
  .slice(2)
  .some((argument) => /^(?:\.\/)?test\//.test(argument) && !argument.endsWith('.config.js'));

const project = {
  rootDir,
  roots: isWholeRun ? [...roots, `<rootDir>/${GROUPS}`] : roots,
  transform,
  testEnvironment,
  extensionsToTreatAsEsm,
  moduleFileExtensions,
};
const { built, sources: unbuilt } = testFiles();
const inRoot = (path) => `<rootDir>/${path}`;
const files = (paths, name) => (isWholeRun ? groupTests(paths, name) : paths).map(inRoot);

/**
 * All tests, after a build. Tests that import only entry points load the built ones: a few files instead of hundreds,
 * which is most of the time of a test file. The others load the sources.
 */
export default {
  rootDir,
  // At the top level, because Jest ignores `testTimeout` of a project.
  ...{ maxWorkers, workerIdleMemoryLimit, workerGracefulExitTimeout, testTimeout },
  ...{ globalSetup, globalTeardown, reporters, testSequencer },
  projects: [
    {
      ...project,
      displayName: 'built',
      testMatch: files(built, 'built'),
      moduleNameMapper: Object.fromEntries(
        Object.entries(moduleNameMapper).filter(([name]) => !name.startsWith('^toolwright')),
      ),
    },
    {
      ...project,
      displayName: 'sources',
      testMatch: files(unbuilt, 'sources'),
      moduleNameMapper,
    },
  ],
};
