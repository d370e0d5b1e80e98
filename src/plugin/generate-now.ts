import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { type GenerateProjectOptions, generateFlags } from '../cli/generate-project.js';

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
export function generateNow(options: NestPluginOptions, program: NestProgram | undefined): Generation {
  const manifest = createRequire(import.meta.url).resolve('toolwright/package.json');
  const command = join(dirname(manifest), 'dist/src/cli/main.js');
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
export function isWatching(): boolean {
  // The type checker of the swc builder watches in a process of its own.
  return process.connected || process.argv.some((argument) => argument === '--watch' || argument === '-w');
}

/** What build tools call the plugin when they complain. */
export const PLUGIN_NAME = 'toolwright';
