import base from '../../jest.config.js';

/** Builds and starts an application of Next with the packed package. */
export default { ...base, rootDir: '../..', testMatch: ['<rootDir>/test/next/*.spec.ts'] };
