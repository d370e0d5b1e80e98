export type { GenerateProjectOptions } from '../cli/generate-project.js';
export type { NestPluginOptions, NestProgram } from './before.js';
export { before, ReadonlyVisitor } from './before.js';
export {
  type EsbuildBuild,
  type EsbuildPlugin,
  esbuild,
  type RollupPlugin,
  rolldown,
  rollup,
  rspack,
  type ViteConfig,
  type VitePlugin,
  vite,
  type WebpackCompiler,
  type WebpackPlugin,
  webpack,
} from './bundler-plugins.js';
