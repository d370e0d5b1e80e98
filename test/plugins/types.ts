import type { RspackPluginInstance } from '@rspack/core';
import type { Plugin as RollupPlugin } from 'rollup';
import { rollup, rspack, vite, webpack } from 'toolwright/plugin';
import type { Plugin as VitePlugin } from 'vite';
import { defineConfig } from 'vitest/config';
import type { WebpackPluginInstance } from 'webpack';

/** Each tool takes the plugin that is called like it, as its own types say. */
export const plugins: [RollupPlugin, VitePlugin, WebpackPluginInstance, RspackPluginInstance] = [
  rollup(),
  vite({ project: 'tsconfig.json', strict: true }),
  webpack({ out: 'src/made.ts' }),
  rspack({ importEnding: 'none' }),
];

export default defineConfig({ plugins: [vite()] });
