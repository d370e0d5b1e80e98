import { checkOptions } from '../../core/errors/author-fault.js';
import { BOOLEAN, FILLED_TEXT, oneOf, optionTable } from '../../core/kernel/options.js';
import { UserFault } from './command.js';

/** The options of `toolwright generate`, by the names of its flags. */
export interface GenerateProjectOptions {
  /** tsconfig.json or its folder, relative to the working directory; default: `tsconfig.json`. */
  readonly project?: string;
  /** The generated file, relative to the working directory. */
  readonly out?: string;
  /** How relative imports of the generated file end; default: as tsconfig.json wants it. */
  readonly importEnding?: 'js' | 'ts' | 'none';
  /** Warnings are faults. */
  readonly strict?: boolean;
}

const OPTIONS = optionTable<GenerateProjectOptions>('the plugin of toolwright', {
  project: FILLED_TEXT,
  out: FILLED_TEXT,
  importEnding: oneOf('js', 'ts', 'none'),
  strict: BOOLEAN,
});

/**
 * Checks what a plugin was given.
 *
 * @throws InvalidOptionsError (521) naming everything that is wrong.
 */
export function checkGenerateOptions(given: unknown): void {
  checkOptions(given, OPTIONS);
}

/** The flags that mean the same. */
export function generateFlags({ project, out, importEnding, strict }: GenerateProjectOptions): string[] {
  return [
    ...(project === undefined ? [] : ['--project', project]),
    ...(out === undefined ? [] : ['--out', out]),
    ...(importEnding === undefined ? [] : ['--import-ending', importEnding]),
    ...(strict ? ['--strict'] : []),
  ];
}

/**
 * Does what `toolwright generate` does, in this process, and returns its warnings. `out` receives what it has written.
 *
 * @throws Error with what the command would complain of.
 */
export async function generateProject(
  options: GenerateProjectOptions,
  folder: string,
  out: (text: string) => void = () => {},
): Promise<string> {
  const { generateCommand } = await import('./generate-command.js');
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
    const exitCode = await generateCommand.run(generateFlags(options), environment);
    if (exitCode === 0) return said.trimEnd();
  } catch (error) {
    if (!(error instanceof UserFault)) throw error;
    said = `toolwright: ${error.message}`;
  }
  throw new Error(said.trimEnd());
}
