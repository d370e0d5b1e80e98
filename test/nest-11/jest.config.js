import base from '../../jest.config.js';

/** Runs the tests of the bridge with NestJS 11 instead of the installed version. */
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
