import base from '../../jest.config.js';

/**
 * Runs the tests of this folder, and those tests of the bridge that do not need Express, on Fastify. Dependencies are
 * mapped to the copies in this folder, because the classes of two copies are different.
 */
export default {
  ...base,
  rootDir: '../..',
  testMatch: [
    '<rootDir>/test/nest-platforms/*.spec.ts',
    '<rootDir>/test/parts/nestjs/**/*.test.ts',
    '<rootDir>/test/flow/nestjs-bridge.test.ts',
  ],
  moduleNameMapper: {
    ...base.moduleNameMapper,
    '^@nestjs/platform-express$': '<rootDir>/test/nest-platforms/fastify-by-default.ts',
    '^nestjs-cls$': '<rootDir>/test/nest-platforms/node_modules/nestjs-cls/dist/esm/index.js',
    '^(@nestjs/(?:common|core|testing)(?:/.+)?|rxjs|rxjs/.+)$':
      '<rootDir>/test/nest-platforms/node_modules/$1',
  },
};
