import {
  checkGenerateOptions,
  type GenerateProjectOptions,
  generateProject,
} from '../cli/generate-project.js';
import { PLUGIN_NAME } from './plugin-name.js';

/** The part of a Rollup or Rolldown plugin that is used. */
export interface RollupPlugin {
  readonly name: string;
  buildStart(this: { warn(message: string): void }): Promise<void>;
}

/**
 * The plugin for Rollup: brings the generated file up to date before each build, in watch mode too. What
 * `toolwright generate` would refuse fails the build.
 *
 * @example
 * ```js
 * // rollup.config.js
 * import { rollup as toolwright } from 'toolwright/plugin';
 *
 * export default { input: 'src/main.ts', plugins: [toolwright()] };
 * ```
 */
export function rollup(options: GenerateProjectOptions = {}): RollupPlugin {
  checkGenerateOptions(options);
  return {
    name: PLUGIN_NAME,
    async buildStart() {
      const warnings = await generateProject(options, process.cwd());
      if (warnings !== '') this.warn(warnings);
    },
  };
}

/**
 * The plugin for Rolldown, tsdown and others that take Rolldown’s plugins; the same as for Rollup.
 *
 * @example
 * ```js
 * // tsdown.config.ts
 * import { rolldown as toolwright } from 'toolwright/plugin';
 *
 * export default { entry: 'src/main.ts', plugins: [toolwright()] };
 * ```
 */
export const rolldown: typeof rollup = rollup;
