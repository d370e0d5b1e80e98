import { readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { API, type Diagnostic } from 'typescript/unstable/sync';
import { ROOT } from '../structure/repository.js';
import { runNode } from './run-node.js';

export interface CompilerError {
  /** Relative to the folder that the compiler ran in. */
  readonly file: string;
  readonly line: number;
  /** `TS2345` */
  readonly code: string;
  readonly message: string;
}

/** Type-checks a project with the repository's compiler; with `emit`, writes the output without checking types. */
export function runCompiler(
  project: string,
  { folder = ROOT, emit = false }: { readonly folder?: string; readonly emit?: boolean } = {},
): CompilerError[] {
  const compiler = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  // Parallel checkers would each check the same declarations again.
  const flags = [emit ? '--noCheck' : '--noEmit', '--pretty', 'false', '--singleThreaded'];
  const run = runNode([compiler, '-p', project, ...flags], { folder });
  const errors = [...run.stdout.matchAll(/^(?:(.+)\((\d+),\d+\): )?error (TS\d+): (.*)$/gm)].map(
    ([, file = '', line = '0', code = '', message = '']) => ({ file, line: Number(line), code, message }),
  );
  if (run.exitCode !== 0 && errors.length === 0) throw new Error(`tsc failed: ${run.stdout}${run.stderr}`);
  return errors;
}

/**
 * Type-checks only some files of a project: these paths in its folder, or those of its files and their imports that a
 * function chooses by absolute path.
 */
export function checkFiles(
  folder: string,
  files: readonly string[] | ((path: string) => boolean),
): CompilerError[] {
  const api = new API({ cwd: folder });
  try {
    const project = join(folder, 'tsconfig.json');
    const program = api.updateSnapshot({ openProjects: [project] }).getProject(project)?.program;
    if (program === undefined) throw new Error(`tsconfig.json in ${folder} was not loaded`);
    const problems = [...program.getConfigFileParsingDiagnostics(), ...program.getProgramDiagnostics()];
    if (problems.length > 0) throw new Error(problems.map(({ text }) => text).join('\n'));
    const chosen = typeof files === 'function' ? program.getSourceFileNames().filter(files) : files;
    return chosen.flatMap((file) => {
      const path = resolve(folder, file);
      const found = [...program.getSyntacticDiagnostics(path), ...program.getSemanticDiagnostics(path)];
      return found.map((diagnostic) => errorOf(diagnostic, folder));
    });
  } finally {
    api.close();
  }
}

function errorOf({ fileName = '', pos, code, text }: Diagnostic, folder: string): CompilerError {
  const before = readFileSync(fileName, 'utf8').slice(0, pos);
  return {
    file: relative(folder, fileName),
    line: before.split('\n').length,
    code: `TS${code}`,
    message: text,
  };
}
