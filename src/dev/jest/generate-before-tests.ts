import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { generateProject } from '../cli/generate-project.js';

/**
 * A Jest `globalSetup` that updates the generated file before the tests. If `toolwright generate` would fail, the test
 * run fails. Uses the nearest `tsconfig.json`, from Jest's `rootDir` upwards.
 *
 * @example
 * ```js
 * // jest.config.js
 * export default { globalSetup: 'toolwright/jest' };
 * ```
 */
export async function generateBeforeTests({ rootDir }: { readonly rootDir: string }): Promise<void> {
  const warnings = await generateProject({}, projectFolder(rootDir));
  if (warnings !== '') process.stderr.write(`${warnings}\n`);
}

/** `rootDir` is often a folder within the project, such as `src`. */
function projectFolder(rootDir: string): string {
  for (let folder = rootDir; ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'tsconfig.json'))) return folder;
    if (folder === dirname(folder)) return rootDir;
  }
}
