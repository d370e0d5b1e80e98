import base from '../../jest.config.js';

/** Runs the build tools with the built package. */
export default { ...base, rootDir: '../..', testMatch: ['<rootDir>/test/plugins/*.spec.ts'] };
