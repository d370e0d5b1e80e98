import base from '../../jest.config.js';

/** The specs of this folder. */
export default {
  ...base,
  rootDir: '../..',
  testMatch: ['<rootDir>/test/ai-sdk-packages/*.spec.ts'],
};
