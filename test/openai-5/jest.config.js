import base from '../../jest.config.js';

/** Runs the tests of the provider with the oldest supported client instead of the installed version. */
export default {
  ...base,
  rootDir: '../..',
  testMatch: [
    '<rootDir>/test/openai-5/version.spec.ts',
    '<rootDir>/test/parts/providers/openai-*.test.ts',
    '<rootDir>/test/flow/streaming-openai.test.ts',
  ],
  moduleNameMapper: {
    ...base.moduleNameMapper,
    '^openai(/.*)?$': '<rootDir>/test/openai-5/node_modules/openai$1',
  },
};
