import { posix } from 'node:path';
import type { Finding, ProjectScan } from './analysis/class-draft.js';
import { describeClasses } from './analysis/describe-classes.js';
import { reportCycles } from './analysis/report-cycles.js';
import type { CompilerView } from './compiler/compiler-view.js';
import { type ImportEnding, importEnding, printFile } from './printing/print-file.js';

/** What a generation is about. */
interface Generation {
  readonly view: CompilerView;
  /** The folder of tsconfig.json, absolute, with `/`. */
  readonly folder: string;
  /** Where the file goes, absolute, with `/`; without it: `src/toolwright.gen.ts`, or beside tsconfig.json. */
  readonly outFile?: string;
  /** Default: the one that the project’s options want. */
  readonly ending?: ImportEnding;
}

/** The file, or what keeps it from being written; and what the author should know either way. */
export interface Generated {
  readonly outFile: string;
  readonly text: string;
  readonly toolsets: number;
  readonly tools: number;
  readonly faults: readonly Finding[];
  readonly warnings: readonly Finding[];
}

/** Reads the types of a project's toolsets and prints the file that registers what they say. */
export function generate({ view, folder, outFile, ending }: Generation): Generated {
  const scan: ProjectScan = { view, faults: [], warnings: [], dataClasses: new Map() };
  const drafts = describeClasses(scan);
  const toolsets = drafts.filter(({ tools }) => tools !== undefined);
  const toolFiles = toolsets.flatMap(({ reference }) => reference.origin.file ?? []);
  const files = view.projectFiles().map(({ path }) => path);
  const out = outFile ?? defaultOutFile(folder, toolFiles, files);
  reportCycles(drafts, out, scan);
  return {
    outFile: out,
    text: printFile({ drafts, outFile: out, ending: ending ?? importEnding(view.options, out) }),
    toolsets: toolsets.length,
    tools: toolsets.reduce((sum, { tools = [] }) => sum + tools.length, 0),
    faults: scan.faults,
    warnings: scan.warnings,
  };
}

/** In `src`, where all that the project has of its own tools, or else of sources, is there. */
function defaultOutFile(folder: string, toolFiles: readonly string[], files: readonly string[]): string {
  const source = posix.join(folder, 'src');
  const isWithin = (file: string) => file.startsWith(`${folder}/`);
  const own = toolFiles.some(isWithin) ? toolFiles : files;
  const isInSource = own.filter(isWithin).every((file) => file.startsWith(`${source}/`));
  return posix.join(isInSource ? source : folder, 'toolwright.gen.ts');
}
