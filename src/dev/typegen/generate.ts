import { posix } from 'node:path';
import { escapePattern } from '../../core/kernel/escape-pattern.js';
import {
  type ClassDraft,
  type Finding,
  lineOf,
  openScan,
  type ProjectScan,
  startOf,
} from './analysis/class-draft.js';
import { describeClasses, isModuleFile } from './analysis/describe-classes.js';
import type { CompilerView, ProjectOptions, SourceText, SyntaxNode } from './compiler/load-compiler.js';
import { ImportEnding, printFile, relativeSpecifier } from './printing/print-file.js';

/** Input of a generation. */
interface Generation {
  readonly view: CompilerView;
  /** The folder of tsconfig.json, absolute, with `/`. */
  readonly folder: string;
  /** The file to write, absolute, with `/`; default: `src/toolwright.gen.ts`, or a file beside tsconfig.json. */
  readonly outFile?: string;
  /** Default: as the project's options require. */
  readonly ending?: ImportEnding;
}

/** The generated file, or the faults that prevent it; with warnings for the author. */
export interface Generated {
  readonly outFile: string;
  readonly text: string;
  readonly toolsets: number;
  readonly tools: number;
  readonly faults: readonly Finding[];
  readonly warnings: readonly Finding[];
  /** The line that the project lacks if none of its files imports the generated file. */
  readonly missingImport?: string;
}

/** Reads the types of a project's toolsets and prints the file that registers them. */
export function generate({ view, folder, outFile, ending }: Generation): Generated {
  const scan = openScan(view);
  const drafts = describeClasses(scan);
  const toolsets = drafts.filter(({ tools }) => tools !== undefined);
  const toolFiles = toolsets.flatMap(({ reference }) => reference.origin.file ?? []);
  const files = view.projectFiles();
  const paths = files.map(({ path }) => path);
  const out = outFile ?? defaultOutFile(folder, toolFiles, paths);
  reportCycles(drafts, out, scan);
  const printed = { drafts, outFile: out, ending: ending ?? importEnding(view.options, out) };
  return {
    outFile: out,
    text: printFile(printed),
    toolsets: toolsets.length,
    tools: toolsets.reduce((sum, { tools = {} }) => sum + Object.keys(tools).length, 0),
    faults: scan.faults,
    warnings: scan.warnings,
    missingImport: isImported(out, files) ? undefined : `import '${relativeSpecifier(out, printed)}'`,
  };
}

/** Reads the texts, because a file may also be loaded by `import()`, `require` or a mapped path. */
function isImported(outFile: string, files: readonly SourceText[]): boolean {
  const name = escapePattern(posix.basename(withoutEnding(outFile)));
  const path = String.raw`['"](?:[^'"\n]*/)?${name}(?:\.[cm]?[jt]s)?['"]`;
  const loading = new RegExp(String.raw`^(?!\s*(?://|\*)).*\b(?:from|import|require)\b[\s(]*${path}`, 'm');
  return files.some((file) => file.path !== outFile && loading.test(file.text));
}

/** In `src`, if it contains all files with tools, or else all sources. */
function defaultOutFile(folder: string, toolFiles: readonly string[], files: readonly string[]): string {
  const source = posix.join(folder, 'src');
  const isWithin = (file: string) => file.startsWith(`${folder}/`);
  const own = toolFiles.some(isWithin) ? toolFiles : files;
  const isInSource = own.filter(isWithin).every((file) => file.startsWith(`${source}/`));
  return posix.join(isInSource ? source : folder, 'toolwright.gen.ts');
}

/**
 * Reports import cycles. The generated file imports the files of its classes. If one of them imports the generated
 * file, it may run first, when the class does not exist yet.
 */
function reportCycles(drafts: readonly ClassDraft[], outFile: string, { view, faults }: ProjectScan): void {
  const names = new Map<string | undefined, string>();
  for (const { reference } of drafts)
    if (!names.has(reference.origin.file))
      names.set(reference.origin.file, reference.origin.localName ?? reference.name);
  for (const file of view.projectFiles()) {
    const name = names.get(file.path);
    if (name === undefined) continue;
    for (const node of loadingStatements(file)) {
      const specifier = node.moduleSpecifier?.text ?? '';
      if (!leadsTo(outFile, node, view)) continue;
      faults.push({
        ...lineOf(node, view),
        where: name,
        problem: `stands in a file that imports the generated file ('${specifier}'), which imports ${name}: a cycle, in which a class may be used before it exists`,
        fix: `${name} in a file of its own, and the import of '${posix.basename(specifier)}' only where the tools are discovered`,
      });
    }
  }
}

/** Works even if the file does not exist; a mapped path can be resolved only if it does. */
function leadsTo(outFile: string, node: SyntaxNode, view: CompilerView): boolean {
  const { moduleSpecifier: named } = node;
  const specifier = named?.text ?? '';
  const wanted = withoutEnding(outFile);
  if (/^\.\.?\//.test(specifier))
    return withoutEnding(posix.join(posix.dirname(view.fileOf(node).path), specifier)) === wanted;
  if (posix.basename(withoutEnding(specifier)) !== posix.basename(wanted)) return false;
  const symbol = named && view.symbolAt(named);
  return symbol !== undefined && view.declaringFiles(symbol).includes(outFile);
}

/** Statements that load another module; type-only imports do not. */
function loadingStatements({ node, text }: SourceText): readonly SyntaxNode[] {
  // Reads the text, because compilers represent type-only imports in different ways.
  const isOfTypes = /^(?:import|export)\s+type\s*(?!from\s*['"])[\w$*{]/;
  return (node.statements ?? []).filter(
    (statement) =>
      statement.moduleSpecifier !== undefined && !isOfTypes.test(text.slice(startOf(statement, text))),
  );
}

function withoutEnding(path: string): string {
  return path.replace(/\.[cm]?[jt]s$/, '');
}

/**
 * The ending that a project's options require. If both work, there is none: some bundlers and Jest do not find
 * `tools.ts` for `./tools.js`, and only Node's own modules need an ending.
 */
function importEnding(options: ProjectOptions, outFile: string): ImportEnding {
  if (options.allowImportingTsExtensions || options.rewriteRelativeImportExtensions) return '.ts';
  return isRunByNode(options) && isModuleFile(outFile) ? '.js' : '';
}

const NODE_RESOLUTIONS: readonly unknown[] = [3, 99];

/** Whether Node runs the compiler's output without a bundler. */
function isRunByNode({
  module = 99,
  moduleResolution,
  noEmit,
  emitDeclarationOnly,
}: ProjectOptions): boolean {
  if (NODE_RESOLUTIONS.includes(moduleResolution) || (module >= 100 && module < 200)) return true;
  return module >= 5 && module < 100 && !noEmit && !emitDeclarationOnly;
}
