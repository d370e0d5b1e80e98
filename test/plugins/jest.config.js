import base from '../../jest.config.js';

/** The real build tools, against the built package. */
export default { ...base, rootDir: '../..', testMatch: ['<rootDir>/test/plugins/*.spec.ts'] };
