import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { isRecord } from '../../core/kernel/json.js';
import { checkGenerateOptions, type GenerateProjectOptions, generateFlags } from '../cli/generate-project.js';

/**
 * For the Nest CLI, which calls it before it compiles with `tsc`, webpack or Rspack: brings the generated file
 * up to date. What `toolwright generate` would refuse fails the build; while it watches, it is shown.
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
  // The program has read the file that was there before; a build that watches sees the new one by itself.
  if (hasWritten && !isWatching()) startAgain();
  return () => (file) => file;
}

const STARTED_AGAIN = 'TOOLWRIGHT_STARTED_AGAIN';

function startAgain(): void {
  if (process.env[STARTED_AGAIN] !== undefined) return;
  const { status } = spawnSync(process.execPath, [...process.execArgv, ...process.argv.slice(1)], {
    stdio: 'inherit',
    env: { ...process.env, [STARTED_AGAIN]: '1' },
  });
  process.exit(status ?? 1);
}

/**
 * For the Nest CLI with the swc builder and `"typeCheck": true`: the same as {@link before}, after the types
 * were checked and before swc starts.
 *
 * @example
 * ```json
 * { "compilerOptions": { "builder": "swc", "typeCheck": true, "plugins": ["toolwright"] } }
 * ```
 */
export class ReadonlyVisitor {
  /** Set by the CLI. */
  key = '';
  /** Nothing of it goes into the CLI’s own metadata. */
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

  /** Called when all were seen. */
  collect(): object {
    const { complaints, hasFailed } = generateNow(this.#options, this.#program);
    if (complaints !== '') process.stderr.write(`${complaints}\n`);
    // The CLI takes no notice of what is thrown here.
    if (hasFailed && !isWatching()) process.exit(1);
    return {};
  }
}

/** The CLI adds these two to the options of each visitor. */
function withoutAdded(options: NestPluginOptions): NestPluginOptions {
  if (!isRecord(options)) return options;
  const { pathToSource: _1, readonly: _2, ...own } = options;
  return own;
}

/** The options that stand in `nest-cli.json`. */
export interface NestPluginOptions extends GenerateProjectOptions {}

/** The part of TypeScript’s program that is read. */
export interface NestProgram {
  getCompilerOptions(): { readonly configFilePath?: unknown };
}

/** What the command said. */
interface Generation {
  readonly complaints: string;
  readonly hasFailed: boolean;
  readonly hasWritten: boolean;
}

/** In a process of its own: the CLI does not wait for promises. */
function generateNow(options: NestPluginOptions, program: NestProgram | undefined): Generation {
  const manifest = createRequire(import.meta.url).resolve('toolwright/package.json');
  const command = join(dirname(manifest), 'dist/src/dev/cli/main.js');
  const flags = generateFlags({ ...options, project: options.project ?? projectOf(program) });
  const { status, stdout, stderr, error } = spawnSync(process.execPath, [command, 'generate', ...flags], {
    encoding: 'utf8',
  });
  if (error !== undefined) throw error;
  return { complaints: stderr.trimEnd(), hasFailed: status !== 0, hasWritten: / written: /.test(stdout) };
}

/** That of the command where there is one: `tsconfig.build.json` is only what is built of it. */
function projectOf(program: NestProgram | undefined): string | undefined {
  const path = program?.getCompilerOptions().configFilePath;
  if (typeof path !== 'string') return undefined;
  const whole = join(dirname(path), 'tsconfig.json');
  return existsSync(whole) ? whole : path;
}

/** Whether the CLI goes on after the build. */
function isWatching(): boolean {
  // The type checker of the swc builder watches in a process of its own.
  return process.connected || process.argv.some((argument) => argument === '--watch' || argument === '-w');
}
