import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isRecord } from '../../core/kernel/json.js';
import { checkGenerateOptions, type GenerateProjectOptions, generateFlags } from '../cli/generate-project.js';
import { packageFile } from '../cli/package-file.js';

/**
 * A plugin for the Nest CLI, which calls it before it compiles with `tsc`, webpack or Rspack: updates the generated
 * file. If `toolwright generate` would fail, the build fails; in watch mode, the error is shown.
 *
 * @example
 * ```json
 * { "compilerOptions": { "plugins": ["toolwright"] } }
 * ```
 */
export function before(
  options: NestPluginOptions = {},
  program?: NestProgram,
): () => (file: object) => object {
  checkGenerateOptions(options);
  const { complaints, hasFailed, hasWritten } = generateNow(options, program);
  if (hasFailed && !isWatching()) throw new Error(complaints);
  if (complaints !== '') process.stderr.write(`${complaints}\n`);
  // The program has read the old file, so start again; a watching build notices the new one itself.
  if (hasWritten && !isWatching() && process.env[STARTED_AGAIN] === undefined) {
    const { status } = spawnSync(process.execPath, [...process.execArgv, ...process.argv.slice(1)], {
      stdio: 'inherit',
      env: { ...process.env, [STARTED_AGAIN]: '1' },
    });
    process.exit(status ?? 1);
  }
  return () => (file) => file;
}

const STARTED_AGAIN = 'TOOLWRIGHT_STARTED_AGAIN';

/**
 * A plugin for the Nest CLI with the swc builder and `"typeCheck": true`: does the same as {@link before}, after the
 * types were checked and before swc starts.
 *
 * @example
 * ```json
 * { "compilerOptions": { "builder": "swc", "typeCheck": true, "plugins": ["toolwright"] } }
 * ```
 */
export class ReadonlyVisitor {
  /** Set by the CLI. */
  key = '';
  /** The CLI adds nothing from it to its own metadata. */
  readonly typeImports = {};
  readonly #options: NestPluginOptions;
  #program: NestProgram | undefined;

  constructor(options: NestPluginOptions = {}) {
    const own = withoutAdded(options);
    checkGenerateOptions(own);
    this.#options = own;
  }

  /** Called for each source file. */
  visit(program: NestProgram): void {
    this.#program = program;
  }

  /** Called after all source files. */
  collect(): object {
    const { complaints, hasFailed } = generateNow(this.#options, this.#program);
    if (complaints !== '') process.stderr.write(`${complaints}\n`);
    // The CLI ignores errors that are thrown here.
    if (hasFailed && !isWatching()) process.exit(1);
    return {};
  }
}

/** The CLI adds two options for each visitor; removes them. */
function withoutAdded(options: NestPluginOptions): NestPluginOptions {
  if (!isRecord(options)) return options;
  const { pathToSource: _1, readonly: _2, ...own } = options;
  return own;
}

/** The options in `nest-cli.json`. */
export interface NestPluginOptions extends GenerateProjectOptions {}

/** The used part of TypeScript's program. */
export interface NestProgram {
  getCompilerOptions(): { readonly configFilePath?: unknown };
}

/** In a separate process, because the CLI does not await promises. */
function generateNow(options: NestPluginOptions, program: NestProgram | undefined) {
  const command = packageFile('dist/src/dev/cli/main.js');
  const flags = generateFlags({ ...options, project: options.project ?? projectOf(program) });
  const { status, stdout, stderr, error } = spawnSync(process.execPath, [command, 'generate', ...flags], {
    encoding: 'utf8',
  });
  if (error !== undefined) throw error;
  return { complaints: stderr.trimEnd(), hasFailed: status !== 0, hasWritten: / written: /.test(stdout) };
}

/** The project of the command, if there is one: `tsconfig.build.json` lists only the built files. */
function projectOf(program: NestProgram | undefined): string | undefined {
  const path = program?.getCompilerOptions().configFilePath;
  if (typeof path !== 'string') return undefined;
  const whole = join(dirname(path), 'tsconfig.json');
  return existsSync(whole) ? whole : path;
}

/** Whether the CLI continues after the build. */
function isWatching(): boolean {
  // The swc builder checks types in a separate process while watching.
  return process.connected || process.argv.some((argument) => argument === '--watch' || argument === '-w');
}
