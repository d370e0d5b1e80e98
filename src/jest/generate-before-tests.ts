import { generateProject } from '../cli/generate-project.js';

/**
 * A `globalSetup` of Jest: brings the generated file up to date before the tests, and fails the run with what
 * `toolwright generate` would refuse. The `tsconfig.json` is that of Jest’s `rootDir`.
 *
 * @example
 * ```js
 * // jest.config.js
 * export default { globalSetup: 'toolwright/jest' };
 * ```
 */
export async function generateBeforeTests({ rootDir }: { readonly rootDir: string }): Promise<void> {
  const warnings = await generateProject({}, rootDir);
  if (warnings !== '') process.stderr.write(`${warnings}\n`);
}
