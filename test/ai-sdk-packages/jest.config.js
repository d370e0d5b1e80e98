import base from '../../jest.config.js';

/** Runs the tests of this folder, and those with Anthropic and Google, whose requests and replies are validated. */
export default {
  ...base,
  rootDir: '../..',
  setupFilesAfterEnv: ['<rootDir>/test/ai-sdk-packages/validate-exchanges.ts'],
  testMatch: [
    '<rootDir>/test/ai-sdk-packages/*.spec.ts',
    '<rootDir>/test/parts/ai-sdk/{anthropic,google,response-format,strict}.test.ts',
    '<rootDir>/test/parts/providers/found-tools.test.ts',
    '<rootDir>/test/parts/testing/provider-conformance.test.ts',
    '<rootDir>/test/flow/{signed-dialogues,attached-results,error-answers}.test.ts',
  ],
};
