import { posix } from 'node:path';
import { escapePattern } from '../../core/kernel/escape-pattern.js';
import { freeName } from '../../core/kernel/free-name.js';
import { isRecord } from '../../core/kernel/json.js';
import {
  type ClassDraft,
  describeClasses,
  type Finding,
  GENERATED_MARK,
  isModuleFile,
} from './describe-classes.js';
import { type CompilerView, type SyntaxNode, startOf } from './load-compiler.js';
import { CodeReference } from './written-schema.js';

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
  /** The missing import line, if no file of the project imports the generated file. */
  readonly missingImport?: string;
}

/** Reads the types of a project's toolsets and prints the file that registers them. */
export function generate({ view, folder, outFile, ending }: Generation): Generated {
  const { drafts, faults, warnings } = describeClasses(view);
  const toolsets = drafts.filter(({ tools }) => tools !== undefined);
  const toolFiles = toolsets.flatMap(({ reference }) => reference.origin.file ?? []);
  const files = view.projectFiles();
  // In `src`, if it contains all files with tools, or else all sources.
  const source = posix.join(folder, 'src');
  const isWithin = (file: string) => file.startsWith(`${folder}/`);
  const own = toolFiles.some(isWithin) ? toolFiles : files.map(({ path }) => path);
  const isInSource = own.filter(isWithin).every((file) => file.startsWith(`${source}/`));
  const out = outFile ?? posix.join(isInSource ? source : folder, 'toolwright.gen.ts');
  const printed = { drafts, outFile: out, ending: ending ?? importEnding(view, out) };
  // Reads the texts, because a file may also be loaded by `import()`, `require` or a mapped path.
  const name = escapePattern(posix.basename(withoutEnding(out)));
  const path = String.raw`['"](?:[^'"\n]*/)?${name}(?:\.[cm]?[jt]s)?['"]`;
  const loading = new RegExp(String.raw`^(?!\s*(?://|\*)).*\b(?:from|import|require)\b[\s(]*${path}`, 'm');
  const isImported = files.some((file) => file.path !== out && loading.test(file.text));
  return {
    outFile: out,
    text: printFile(printed),
    toolsets: toolsets.length,
    tools: toolsets.reduce((sum, { tools = {} }) => sum + Object.keys(tools).length, 0),
    faults: [...faults, ...cyclesOf(drafts, out, view)],
    warnings,
    missingImport: isImported ? undefined : `import '${relativeSpecifier(out, printed)}'`,
  };
}

/**
 * Import cycles. The generated file imports the files of its classes. If one of them imports the generated
 * file, it may run first, when the class does not exist yet.
 */
function cyclesOf(drafts: readonly ClassDraft[], outFile: string, view: CompilerView): readonly Finding[] {
  const cycles: Finding[] = [];
  const names = new Map<string | undefined, string>();
  for (const { reference } of drafts)
    if (!names.has(reference.origin.file))
      names.set(reference.origin.file, reference.origin.localName ?? reference.name);
  // Reads the text, because compilers represent type-only imports in different ways.
  const isOfTypes = /^(?:import|export)\s+type\s*(?!from\s*['"])[\w$*{]/;
  for (const { path, text, node: file } of view.projectFiles()) {
    const name = names.get(path);
    if (name === undefined) continue;
    for (const node of file.statements ?? []) {
      if (node.moduleSpecifier === undefined || isOfTypes.test(text.slice(startOf(node, text)))) continue;
      if (!leadsTo(outFile, node, view)) continue;
      const specifier = node.moduleSpecifier.text ?? '';
      cycles.push({
        ...view.lineOf(node),
        where: name,
        problem: `is in a file that imports the generated file ('${specifier}'), which imports ${name}: in this cycle, a class may be used before it is defined`,
        fix: `${name} in a separate file, and the import of '${posix.basename(specifier)}' only in the file that discovers the tools`,
      });
    }
  }
  return cycles;
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

function withoutEnding(path: string): string {
  return path.replace(/\.[cm]?[jt]s$/, '');
}

/**
 * The ending that a project's options require. If both work, there is none: some bundlers and Jest do not find
 * `tools.ts` for `./tools.js`, and only Node's own modules need an ending.
 */
function importEnding({ options }: CompilerView, outFile: string): ImportEnding {
  if (options.allowImportingTsExtensions || options.rewriteRelativeImportExtensions) return '.ts';
  const { module = 99, moduleResolution, noEmit, emitDeclarationOnly } = options;
  const isOfNode =
    NODE_RESOLUTIONS.includes(moduleResolution) ||
    (module >= 100 && module < 200) ||
    // Node runs the compiler's output without a bundler.
    (module >= 5 && module < 100 && !noEmit && !emitDeclarationOnly);
  return isOfNode && isModuleFile(outFile) ? '.js' : '';
}

const NODE_RESOLUTIONS: readonly unknown[] = [3, 99];

/** A file with imports. */
interface ImportingFile {
  /** Absolute, with `/`; imports are relative to it. */
  readonly outFile: string;
  readonly ending: ImportEnding;
}

/** Input of the printer. */
interface PrintedFile extends ImportingFile {
  readonly drafts: readonly ClassDraft[];
}

/** The generated file; the same drafts give the same bytes. */
function printFile({ drafts, outFile, ending }: PrintedFile): string {
  const imports = new ImportList({
    outFile,
    ending,
    taken: ['describeClass', 'toolsets', ...globalNames(drafts)],
  });
  const nameOf = imports.nameOf.bind(imports);
  const blocks = drafts.map(({ reference, ...description }) => {
    const start = `describeClass(${nameOf(reference)}, `;
    return `${start}${printValue(description, { indent: '', taken: 1000, nameOf })});\n`;
  });
  const toolsets = drafts.filter(({ tools }) => tools !== undefined).map(({ reference }) => reference);
  const list = printValue(toolsets, { indent: '', taken: 'export const toolsets = ;'.length, nameOf });
  return [
    GENERATED_MARK,
    "import { describeClass } from 'toolwright/decorators';",
    ...imports.print(),
    '',
    ...blocks,
    '/** The toolsets of this project: `discoverTools({ toolsets })`. */',
    `export const toolsets = ${list};`,
    '',
  ].join('\n');
}

/** `Date`, `Map` …: a class of the project with such a name gets another name in the file. */
function globalNames(part: unknown): readonly string[] {
  if (part instanceof CodeReference) return Object.keys(part.origin).length === 0 ? [part.name] : [];
  return typeof part === 'object' && part !== null ? Object.values(part).flatMap(globalNames) : [];
}

/** The imports of a generated file, and the names of its references. */
class ImportList {
  readonly #of: ImportingFile;
  readonly #taken: Set<string>;
  /** The names of each imported module, with those that they have in the file. */
  readonly #modules = new Map<string, Map<string, string>>();

  constructor(of: ImportingFile & { readonly taken: readonly string[] }) {
    this.#of = of;
    this.#taken = new Set(of.taken);
  }

  /** The name of a reference in the file; the first use adds the import. */
  nameOf(reference: CodeReference): string {
    const { name, origin } = reference;
    const module = origin.package ?? (origin.file && relativeSpecifier(origin.file, this.#of));
    if (module === undefined) return name;
    const names = this.#modules.get(module) ?? new Map<string, string>();
    const known = names.get(name);
    if (known !== undefined) return known;
    const isUsable = name !== 'default' && isIdentifier(name);
    const wanted = isUsable ? name : (origin.localName ?? defaultName(origin.file));
    const local = freeName(wanted, (taken) => this.#taken.has(taken));
    this.#taken.add(local);
    this.#modules.set(module, names.set(name, local));
    return local;
  }

  /** The import lines: packages first, then files, sorted by name. */
  print(): readonly string[] {
    const modules = [...this.#modules].sort(([a], [b]) => {
      const isFile = Number(a.startsWith('.')) - Number(b.startsWith('.'));
      return isFile || (a < b ? -1 : 1);
    });
    return modules.map(([module, names]) => {
      const list = [...names].sort(([a], [b]) => (a < b ? -1 : 1));
      const written = list.map(([name, local]) => (name === local ? name : `${printKey(name)} as ${local}`));
      return `import { ${written.join(', ')} } from ${printText(module)};`;
    });
  }
}

/** How a file imports another one. */
function relativeSpecifier(file: string, { outFile, ending }: ImportingFile): string {
  const path = posix.relative(posix.dirname(outFile), file);
  const relative = path.startsWith('.') ? path : `./${path}`;
  const [, stem = relative, kind = ''] = /^(.*)\.([cm]?)tsx?$/.exec(relative) ?? [];
  if (ending === '.ts') return relative;
  return ending === '' && kind === '' ? stem : `${stem}.${kind}js`;
}

/** Names a class without a name after its file: `order-tools.ts` → `OrderTools`. */
function defaultName(file = ''): string {
  const words = posix
    .basename(file)
    .replace(/\.[cm]?tsx?$/, '')
    .split(/\W+/);
  const name = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
  return isIdentifier(name) ? name : `Default${name}`;
}

/** The ending of relative imports. */
export type ImportEnding = '.js' | '.ts' | '';

/** Longer values are broken into lines. */
const WIDTH = 100;

/** The place of a value: its indentation, and the used part of its line. */
interface ValuePlace {
  readonly indent: string;
  readonly taken: number;
  /** The name of a reference in the printed file. */
  nameOf(reference: CodeReference): string;
}

/** A value as TypeScript: on one line if it fits, otherwise one line per entry. */
function printValue(value: unknown, place: ValuePlace): string {
  const flat = flatText(value, place.nameOf);
  const indent = `${place.indent}  `;
  const lineOf = (key: string, item: unknown) =>
    `${indent}${key}${printValue(item, { ...place, indent, taken: indent.length + key.length + 1 })},\n`;
  if (flat.length + place.taken <= WIDTH) return flat;
  if (Array.isArray(value)) return `[\n${value.map((item) => lineOf('', item)).join('')}${place.indent}]`;
  if (!isPlain(value)) return flat;
  const lines = entriesOf(value).map(([key, item]) => lineOf(`${printKey(key)}: `, item));
  return `{\n${lines.join('')}${place.indent}}`;
}

/** A value on one line. */
function flatText(value: unknown, nameOf: ValuePlace['nameOf']): string {
  if (value instanceof CodeReference) return nameOf(value);
  if (typeof value === 'string') return printText(value);
  if (Array.isArray(value)) return `[${value.map((item) => flatText(item, nameOf)).join(', ')}]`;
  if (!isPlain(value)) return String(value);
  const entries = entriesOf(value).map(([key, item]) => `${printKey(key)}: ${flatText(item, nameOf)}`);
  return entries.length === 0 ? '{}' : `{ ${entries.join(', ')} }`;
}

function entriesOf(record: Readonly<Record<string, unknown>>): readonly (readonly [string, unknown])[] {
  return Object.entries(record).filter(([, value]) => value !== undefined);
}

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  return isRecord(value) && !(value instanceof CodeReference);
}

function printKey(key: string): string {
  return isIdentifier(key) ? key : printText(key);
}

/** Whether a name needs no quotes in source code. */
function isIdentifier(name: string): boolean {
  return /^[A-Za-z_$][\w$]*$/.test(name);
}

/** A string literal, with the quotes that need fewer escapes. */
function printText(text: string): string {
  const json = JSON.stringify(text);
  if (text.includes("'") && !text.includes('"')) return json;
  return `'${json.slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
}
