import {
  checkGenerateOptions,
  type GenerateProjectOptions,
  generateProject,
} from '../cli/generate-project.js';
import { PLUGIN_NAME } from './plugin-name.js';

/** The part of a compiler of webpack or Rspack that is used. */
export interface WebpackCompiler {
  readonly context: string;
  readonly hooks: {
    readonly beforeRun: AsyncHook;
    readonly watchRun: AsyncHook;
    readonly thisCompilation: { tap(name: string, callback: (compilation: Compilation) => void): void };
  };
}

interface AsyncHook {
  tapPromise(name: string, callback: () => Promise<void>): void;
}

interface Compilation {
  readonly errors: { push(error: Error): unknown };
  readonly warnings: { push(warning: Error): unknown };
}

/** A plugin of webpack and Rspack. */
export interface WebpackPlugin {
  apply(compiler: WebpackCompiler): void;
}

/**
 * The plugin for webpack: brings the generated file up to date before each build, in watch mode too. What
 * `toolwright generate` would refuse is an error of the build. Paths are relative to webpack’s `context`.
 *
 * @example
 * ```js
 * // webpack.config.js
 * import { webpack as toolwright } from 'toolwright/plugin';
 *
 * export default { entry: './src/main.ts', plugins: [toolwright()] };
 * ```
 */
export function webpack(options: GenerateProjectOptions = {}): WebpackPlugin {
  checkGenerateOptions(options);
  return {
    apply({ context, hooks }) {
      let fault: Error | undefined;
      let warnings = '';
      // Before the entries are read: hooks of the compilation run beside that.
      const generate = async () => {
        fault = undefined;
        warnings = await generateProject(options, context).catch((error: Error) => {
          fault = error;
          return '';
        });
      };
      hooks.beforeRun.tapPromise(PLUGIN_NAME, generate);
      hooks.watchRun.tapPromise(PLUGIN_NAME, generate);
      hooks.thisCompilation.tap(PLUGIN_NAME, (compilation) => {
        // Thrown by a hook, it would end the watching.
        if (fault !== undefined) compilation.errors.push(fault);
        if (warnings !== '') compilation.warnings.push(new Error(warnings));
      });
    },
  };
}

/**
 * The plugin for Rspack and Rsbuild; the same as for webpack.
 *
 * @example
 * ```js
 * // rspack.config.js
 * import { rspack as toolwright } from 'toolwright/plugin';
 *
 * export default { entry: './src/main.ts', plugins: [toolwright()] };
 * ```
 */
export const rspack: typeof webpack = webpack;
