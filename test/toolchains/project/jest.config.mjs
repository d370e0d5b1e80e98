const sourceOfJs = { '^(\\.{1,2}/.*)\\.js$': '$1' };

/** As the manual says it: swc, and no metadata. */
export default {
  testEnvironment: 'node',
  // Jest loads CommonJS modules such as tsyringe before any ES module runs.
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
