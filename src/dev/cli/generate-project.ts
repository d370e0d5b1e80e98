import { checkOptions } from '../../core/errors/author-fault.js';
import { BOOLEAN, FILLED_TEXT, oneOf, optionTable } from '../../core/kernel/options.js';
import { UserFault } from './command.js';

/** Options of `toolwright generate`, with the names of its flags. */
export interface GenerateProjectOptions {
  /** tsconfig.json or its folder; default: `tsconfig.json`. */
  readonly project?: string;
  /** The generated file. */
  readonly out?: string;
  /** The ending of relative imports in the generated file; default: as tsconfig.json requires. */
  readonly importEnding?: 'js' | 'ts' | 'none';
  /** Treats warnings as errors. */
  readonly strict?: boolean;
}

const OPTIONS = optionTable<GenerateProjectOptions>('the Toolwright plugin', {
  project: FILLED_TEXT,
  out: FILLED_TEXT,
  importEnding: oneOf('js', 'ts', 'none'),
  strict: BOOLEAN,
});

/**
 * Checks the options of a plugin.
 *
 * @throws InvalidOptionsError (521) with all faults.
 */
export function checkGenerateOptions(given: unknown): void {
  checkOptions(given, OPTIONS);
}

/** Converts options to flags. */
export function generateFlags({ project, out, importEnding, strict }: GenerateProjectOptions): string[] {
  return [
    ...(project === undefined ? [] : ['--project', project]),
    ...(out === undefined ? [] : ['--out', out]),
    ...(importEnding === undefined ? [] : ['--import-ending', importEnding]),
    ...(strict ? ['--strict'] : []),
  ];
}

/**
 * Runs `toolwright generate` in this process and returns its warnings. `out` receives its output.
 *
 * @throws Error with the faults that the command would print.
 */
export async function generateProject(
  options: GenerateProjectOptions,
  folder: string,
  out: (text: string) => void = () => {},
): Promise<string> {
  const { command } = await import('./generate-command.js');
  let said = '';
  const environment = {
    folder,
    out,
    error: (text: string) => {
      said += text;
    },
    isTerminal: false,
  };
  try {
    const exitCode = await command(generateFlags(options), environment);
    if (exitCode === 0) return said.trimEnd();
  } catch (error) {
    if (!(error instanceof UserFault)) throw error;
    said = `toolwright: ${error.message}`;
  }
  throw new Error(said.trimEnd());
}
