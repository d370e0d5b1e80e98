import { spawnSync } from 'node:child_process';
import { checkGenerateOptions } from '../cli/generate-project.js';
import { generateNow, isWatching, type NestPluginOptions, type NestProgram } from './generate-now.js';

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
