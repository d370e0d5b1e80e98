import { isModuleFile } from '../analysis/package-files.js';
import type { ProjectOptions } from '../compiler/project-options.js';

/** How relative imports end. */
export type ImportEnding = '.js' | '.ts' | '';

/**
 * The ending that a project’s options want. Where both are understood it is none: not every bundler and not
 * Jest finds `tools.ts` behind `./tools.js`, and only Node, for its own modules, insists on an ending.
 */
export function importEnding(options: ProjectOptions, outFile: string): ImportEnding {
  if (options.allowImportingTsExtensions || options.rewriteRelativeImportExtensions) return '.ts';
  return isRunByNode(options) && isModuleFile(outFile) ? '.js' : '';
}

const NODE_RESOLUTIONS: readonly unknown[] = [3, 99];

/** Whether Node reads what the compiler writes, and not a bundler. */
function isRunByNode({
  module = 99,
  moduleResolution,
  noEmit,
  emitDeclarationOnly,
}: ProjectOptions): boolean {
  if (NODE_RESOLUTIONS.includes(moduleResolution) || (module >= 100 && module < 200)) return true;
  return module >= 5 && module < 100 && !noEmit && !emitDeclarationOnly;
}
