import {
  checkGenerateOptions,
  type GenerateProjectOptions,
  generateProject,
} from '../cli/generate-project.js';

/** The plugin's name in messages of build tools. */
const PLUGIN_NAME = 'toolwright';

/** The used part of Vite's resolved configuration. */
export interface ViteConfig {
  readonly root: string;
  readonly command: string;
  readonly logger: { warn(message: string): void; error(message: string): void };
}

/** The used part of a Vite plugin. */
export interface VitePlugin {
  readonly name: string;
  readonly enforce: 'pre';
  configResolved(config: ViteConfig): void;
  buildStart(): Promise<void>;
  watchChange(file: string): Promise<void>;
}

/**
 * A plugin for Vite and Vitest: updates the generated file before each build, before the tests, and after each change
 * of a source while a server runs. If `toolwright generate` would fail, the build fails; a running server shows the
 * error and continues. Paths are relative to Vite's `root`.
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
  // Every environment of a server reports the same change.
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
      // A watching build starts again with each change anyway.
      if (config?.command !== 'serve' || !/(?<!\.gen)\.[cm]?tsx?$/.test(file)) return;
      // Vite does not await this hook: a rejection would end the server.
      await runOnce().catch((error) => config?.logger.error(`${PLUGIN_NAME}: ${error.message}`));
    },
  };
}

/** The used part of a Rollup or Rolldown plugin. */
export interface RollupPlugin {
  readonly name: string;
  buildStart(this: { warn(message: string): void }): Promise<void>;
}

/**
 * A plugin for Rollup: updates the generated file before each build, also in watch mode. If `toolwright generate` would
 * fail, the build fails.
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
 * A plugin for Rolldown, tsdown and other tools with Rolldown plugins; the same as for Rollup.
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

/** The used part of esbuild's build. */
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
 * A plugin for esbuild and tsup: updates the generated file before each build, also in watch mode. If
 * `toolwright generate` would fail, the build fails. Paths are relative to `absWorkingDir`.
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
          // If thrown, it would be shown with a stack trace of this package.
          return { errors: [{ text: (error as Error).message }] };
        }
      });
    },
  };
}

/** The used part of a webpack or Rspack compiler. */
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
 * A plugin for webpack: updates the generated file before each build, also in watch mode. If `toolwright generate`
 * would fail, its message becomes an error of the build. Paths are relative to webpack's `context`.
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
      // Before the entries are read; hooks of the compilation would run concurrently.
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
        // If a hook threw it, watching would end.
        if (fault !== undefined) compilation.errors.push(fault);
        if (warnings !== '') compilation.warnings.push(new Error(warnings));
      });
    },
  };
}

/**
 * A plugin for Rspack and Rsbuild; the same as for webpack.
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
