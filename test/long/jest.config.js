import base from '../../jest.config.js';

// Workers get the environment of the process that reads this.
process.env.TOOLWRIGHT_RUNS ??= '10';

/** The same tests, their properties with ten times the runs, or with TOOLWRIGHT_RUNS times. */
export default {
  ...base,
  rootDir: '../..',
  testTimeout: 3_600_000,
};
