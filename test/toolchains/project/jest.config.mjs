const sourceOfJs = { '^(\\.{1,2}/.*)\\.js$': '$1' };

/** As in the documentation: swc without decorator metadata. */
export default {
  testEnvironment: 'node',
  // tsyringe needs it, and Jest loads CommonJS modules such as tsyringe before any ES module runs.
  setupFiles: ['reflect-metadata'],
  testMatch: ['**/*.jest.ts'],
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: sourceOfJs,
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        jsc: {
          target: 'es2022',
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, useDefineForClassFields: false },
        },
        module: { type: 'es6' },
      },
    ],
  },
};
