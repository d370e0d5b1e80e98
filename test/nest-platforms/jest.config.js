import base from '../../jest.config.js';

/**
 * Its own specs, and those of the bridge which need no platform of their own, on Fastify. The copies of what the
 * platforms depend on must be theirs, because a class of another copy is another class.
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
