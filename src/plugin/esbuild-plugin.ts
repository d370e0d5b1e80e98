import {
  checkGenerateOptions,
  type GenerateProjectOptions,
  generateProject,
} from '../cli/generate-project.js';
import { PLUGIN_NAME } from './plugin-name.js';

/** The part of esbuild’s build that is used. */
export interface EsbuildBuild {
  readonly initialOptions: { readonly absWorkingDir?: string };
  onStart(callback: () => Promise<EsbuildMessages>): void;
}

interface EsbuildMessages {
  readonly errors?: { readonly text: string }[];
  readonly warnings?: { readonly text: string }[];
}

/** A plugin of esbuild. */
export interface EsbuildPlugin {
  readonly name: string;
  setup(build: EsbuildBuild): void;
}

/**
 * The plugin for esbuild and tsup: brings the generated file up to date before each build, in watch mode too.
 * What `toolwright generate` would refuse fails the build. Paths are relative to `absWorkingDir`.
 *
 * @example
 * ```ts
 * import { build } from 'esbuild';
 * import { esbuild as toolwright } from 'toolwright/plugin';
 *
 * await build({ entryPoints: ['src/main.ts'], bundle: true, outdir: 'dist', plugins: [toolwright()] });
 * ```
 */
export function esbuild(options: GenerateProjectOptions = {}): EsbuildPlugin {
  checkGenerateOptions(options);
  return {
    name: PLUGIN_NAME,
    setup({ initialOptions, onStart }) {
      onStart(async () => {
        try {
          const warnings = await generateProject(options, initialOptions.absWorkingDir ?? process.cwd());
          return warnings === '' ? {} : { warnings: [{ text: warnings }] };
        } catch (error) {
          // Thrown, it would be shown with a stack of this package.
          return { errors: [{ text: (error as Error).message }] };
        }
      });
    },
  };
}
