import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { node } from './processes.mjs';

/** The ts-jest configuration of NestJS 11, with the additional line from docs/guides/runtimes.md. */
const CONFIG = {
  moduleFileExtensions: ['js', 'json', 'ts'],
  rootDir: 'src',
  testRegex: '.*\\.spec\\.ts$',
  transform: { '^.+\\.(t|j)s$': join(import.meta.dirname, 'node_modules', 'ts-jest') },
  transformIgnorePatterns: ['node_modules/(?!toolwright/)'],
  testEnvironment: 'node',
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
};
const COMPILER = {
  module: 'CommonJS',
  moduleResolution: 'node10',
  target: 'ES2023',
  types: ['node'],
  strict: true,
  skipLibCheck: true,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
};

/** Runs Jest with CommonJS and no Node flags. */
export function tsJest({ project }) {
  const { tsconfig, jest } = { tsconfig: 'tsconfig.jest.json', jest: 'jest.config.json' };
  writeFileSync(join(project, tsconfig), JSON.stringify({ compilerOptions: COMPILER, include: ['src'] }));
  const [[pattern, transformer]] = Object.entries(CONFIG.transform);
  const transform = {
    [pattern]: [transformer, { compiler: 'typescript-5.9', tsconfig: `<rootDir>/../${tsconfig}` }],
  };
  writeFileSync(join(project, jest), JSON.stringify({ ...CONFIG, transform }));
  const program = join('node_modules', 'jest', 'bin', 'jest.js');
  node(project, [program, '--config', jest, '--silent', '--no-cache']);
  return readFileSync(join(project, 'jest-report.json'), 'utf8');
}
