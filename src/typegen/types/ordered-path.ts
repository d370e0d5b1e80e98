import type { SourceText } from '../compiler/compiler-view.js';

const LANGUAGE_FILE = /(?:^|\/)(lib\.[\w.]+\.d\.ts)$/;

/**
 * What a file is ordered by: the same on every machine, wherever the project, its packages and the compiler
 * are installed. The language comes first, then packages, then the project.
 */
export function orderedPath({ path, isDeclaration }: Pick<SourceText, 'path' | 'isDeclaration'>): string {
  const language = LANGUAGE_FILE.exec(path)?.[1];
  if (isDeclaration && language !== undefined) return `0 ${language}`;
  const [inProject, ...inPackages] = path.split('/node_modules/');
  return inPackages.length > 0 ? `1 ${inPackages.at(-1)}` : `2 ${inProject}`;
}
