import base from '../../jest.config.js';

/** The same specs and the same sources, with NestJS 11 in place of the installed one. */
export default {
  ...base,
  rootDir: '../..',
  testMatch: [
    '<rootDir>/test/nest-11/version.spec.ts',
    '<rootDir>/test/parts/nestjs/**/*.test.ts',
    '<rootDir>/test/flow/nestjs-{bridge,example}.test.ts',
  ],
  moduleNameMapper: {
    ...base.moduleNameMapper,
    '^(@nestjs/.+|nestjs-cls|rxjs|rxjs/.+)$': '<rootDir>/test/nest-11/node_modules/$1',
  },
};
