import base from '../../jest.config.js';

// Jest workers inherit this environment variable.
process.env.TOOLWRIGHT_RUNS ??= '10';

/** Runs the properties of all tests ten times as often, or TOOLWRIGHT_RUNS times. */
export default {
  ...base,
  rootDir: '../..',
  testTimeout: 3_600_000,
};
