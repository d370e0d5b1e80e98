export type { GenerateProjectOptions } from '../cli/generate-project.js';
export { before } from './before.js';
export { type EsbuildBuild, type EsbuildPlugin, esbuild } from './esbuild-plugin.js';
export type { NestPluginOptions, NestProgram } from './generate-now.js';
export { ReadonlyVisitor } from './readonly-visitor.js';
export { type RollupPlugin, rolldown, rollup } from './rollup-plugin.js';
export { type ViteConfig, type VitePlugin, vite } from './vite-plugin.js';
export { rspack, type WebpackCompiler, type WebpackPlugin, webpack } from './webpack-plugin.js';
