import { readFileSync } from 'node:fs';

const { exports } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const modules = Object.values(exports).filter((path) => path.endsWith('.js'));

export default {
  entryPoints: modules.map((path) => path.replace('./dist/', '../').replace(/\.js$/, '.ts')),
  tsconfig: '../tsconfig.json',
  out: 'dist/api',
  name: 'toolwright',
  readme: 'none',
  skipErrorChecking: true,
  excludePrivate: true,
  excludeInternal: true,
  disableSources: true,
  validation: { notExported: false },
  logLevel: 'Error',
};
