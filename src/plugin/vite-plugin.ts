import {
  checkGenerateOptions,
  type GenerateProjectOptions,
  generateProject,
} from '../cli/generate-project.js';
import { PLUGIN_NAME } from './plugin-name.js';

/** The part of Vite’s resolved configuration that is read. */
export interface ViteConfig {
  readonly root: string;
  readonly command: string;
  readonly logger: { warn(message: string): void; error(message: string): void };
}

/** The part of a Vite plugin that is used. */
export interface VitePlugin {
  readonly name: string;
  readonly enforce: 'pre';
  configResolved(config: ViteConfig): void;
  buildStart(): Promise<void>;
  watchChange(file: string): Promise<void>;
}

/**
 * The plugin for Vite and Vitest: brings the generated file up to date before each build and before the tests,
 * and after each change of a source while a server runs. What `toolwright generate` would refuse fails the
 * build; a running server goes on and shows it. Paths are relative to Vite’s `root`.
 *
 * @example
 * ```js
 * // vite.config.ts
 * import { vite as toolwright } from 'toolwright/plugin';
 *
 * export default { plugins: [toolwright()] };
 * ```
 */
export function vite(options: GenerateProjectOptions = {}): VitePlugin {
  checkGenerateOptions(options);
  let config: ViteConfig | undefined;
  let running: Promise<void> = Promise.resolve();
  let waiting: Promise<void> | undefined;
  const run = async () => {
    const warnings = await generateProject(options, config?.root ?? process.cwd());
    if (warnings !== '') config?.logger.warn(warnings);
  };
  // Every environment of a server tells of the same change.
  const runOnce = () => {
    waiting ??= running.then(() => {
      waiting = undefined;
      return run();
    });
    running = waiting.catch(() => {});
    return waiting;
  };
  return {
    name: PLUGIN_NAME,
    enforce: 'pre',
    configResolved(resolved) {
      config = resolved;
    },
    buildStart: runOnce,
    async watchChange(file) {
      // A build that watches starts anew with each change.
      if (config?.command !== 'serve' || !/(?<!\.gen)\.[cm]?tsx?$/.test(file)) return;
      // Nobody waits for it: thrown, it would end the server.
      await runOnce().catch((error) => config?.logger.error(`${PLUGIN_NAME}: ${error.message}`));
    },
  };
}
