import { join } from 'node:path';
import { ROOT } from '../house/repository.js';
import { runNode } from './run-node.js';

/** One complaint of the compiler. */
export interface CompilerError {
  /** Relative to the folder that the compiler ran in. */
  readonly file: string;
  readonly line: number;
  /** `TS2345` */
  readonly code: string;
  readonly message: string;
}

/** Type-checks a project with the repository's own compiler; writes the result only if told to. */
export function runCompiler(
  project: string,
  { folder = ROOT, emit = false }: { readonly folder?: string; readonly emit?: boolean } = {},
): CompilerError[] {
  const compiler = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  // Several checkers look at the same declarations again, each for itself.
  const flags = [...(emit ? [] : ['--noEmit']), '--pretty', 'false', '--singleThreaded'];
  const run = runNode([compiler, '-p', project, ...flags], { folder });
  const errors = [...run.stdout.matchAll(/^(?:(.+)\((\d+),\d+\): )?error (TS\d+): (.*)$/gm)].map(
    ([, file = '', line = '0', code = '', message = '']) => ({ file, line: Number(line), code, message }),
  );
  if (run.exitCode !== 0 && errors.length === 0) throw new Error(`tsc failed: ${run.stdout}${run.stderr}`);
  return errors;
}
