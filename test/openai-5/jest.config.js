import base from '../../jest.config.js';

/** The same specs and the same sources, with the oldest client in place of the installed one. */
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
