import { runCommandLine } from './run-command-line.js';

/** What `toolwright generate` can be told, by the names of its flags. */
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

/** The arguments of the command line that means the same. */
export function generateArguments({ project, out, importEnding, strict }: GenerateProjectOptions): string[] {
  return [
    'generate',
    ...(project === undefined ? [] : ['--project', project]),
    ...(out === undefined ? [] : ['--out', out]),
    ...(importEnding === undefined ? [] : ['--import-ending', importEnding]),
    ...(strict ? ['--strict'] : []),
  ];
}

/**
 * Does what `toolwright generate` does, in this process, and gives its warnings.
 *
 * @throws Error with what the command would complain of.
 */
export async function generateProject(options: GenerateProjectOptions, folder: string): Promise<string> {
  let complaints = '';
  const exitCode = await runCommandLine(generateArguments(options), {
    folder,
    out: () => {},
    error: (text) => {
      complaints += text;
    },
    isTerminal: false,
  });
  if (exitCode !== 0) throw new Error(complaints.trimEnd());
  return complaints.trimEnd();
}
