import base from '../../jest.config.js';

/** The specs of this folder, and those that speak to Anthropic and Google, each of whose exchanges is judged. */
export default {
  ...base,
  rootDir: '../..',
  setupFilesAfterEnv: ['<rootDir>/test/ai-sdk-packages/judge-wire.ts'],
  testMatch: [
    '<rootDir>/test/ai-sdk-packages/*.spec.ts',
    '<rootDir>/test/parts/ai-sdk/{anthropic,google,response-format,strict}.test.ts',
    '<rootDir>/test/parts/providers/found-tools.test.ts',
    '<rootDir>/test/parts/testing/provider-conformance.test.ts',
    '<rootDir>/test/flow/{signed-dialogues,attached-results,error-answers}.test.ts',
  ],
};
