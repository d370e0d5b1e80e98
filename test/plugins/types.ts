import type { RspackPluginInstance } from '@rspack/core';
import type { Plugin as RollupPlugin } from 'rollup';
import { rollup, rspack, vite, webpack } from 'toolwright/plugin';
import type { Plugin as VitePlugin } from 'vite';
import { defineConfig } from 'vitest/config';
import type { WebpackPluginInstance } from 'webpack';

/** The types of each build tool accept the plugin with its name. */
export const plugins: [RollupPlugin, VitePlugin, WebpackPluginInstance, RspackPluginInstance] = [
  rollup(),
  vite({ project: 'tsconfig.json', strict: true }),
  webpack({ out: 'src/generated.ts' }),
  rspack({ importEnding: 'none' }),
];

export default defineConfig({ plugins: [vite()] });
