import { posix } from 'node:path';
import { freeName } from '../../../core/kernel/free-name.js';
import { isRecord } from '../../../core/kernel/json.js';
import type { ClassDraft, MethodDraft } from '../analysis/class-draft.js';
import { CodeReference, type WrittenSchema } from '../types/type-walk.js';

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
export function printFile({ drafts, outFile, ending }: PrintedFile): string {
  const imports = new ImportList({
    outFile,
    ending,
    taken: ['describeClass', 'toolsets', ...globalNames(drafts)],
  });
  const nameOf = imports.nameOf.bind(imports);
  const blocks = drafts.map((draft) => {
    const start = `describeClass(${nameOf(draft.reference)}, `;
    return `${start}${printValue(descriptionOf(draft), { indent: '', taken: 1000, nameOf })});\n`;
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
  if (part instanceof Map) return [...part.values()].flatMap(globalNames);
  return typeof part === 'object' && part !== null ? Object.values(part).flatMap(globalNames) : [];
}

function descriptionOf({ reference, dependencies, tools, properties, definitions }: ClassDraft): object {
  return {
    name: properties && (reference.origin.localName ?? reference.name),
    dependencies,
    tools: tools && Object.fromEntries(tools.map((tool) => [tool.name, toolOf(tool)])),
    properties:
      properties &&
      Object.fromEntries(
        properties.map(({ name, optional, schema }) => [name, optional ? { optional, schema } : { schema }]),
      ),
    $defs: definitionsOf(definitions),
  };
}

function toolOf({ description, parameters, output, definitions }: MethodDraft): object {
  return {
    description,
    parameters: parameters.map(({ name, inject, optional, rest, schema }) => ({
      name,
      inject,
      ...(optional && !rest ? { optional } : {}),
      ...(rest ? { rest } : {}),
      schema,
    })),
    output,
    $defs: definitionsOf(definitions),
  };
}

function definitionsOf(definitions: ReadonlyMap<string, WrittenSchema>): object | undefined {
  return definitions.size === 0 ? undefined : Object.fromEntries(definitions);
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
    const modules = [...this.#modules].sort(([a], [b]) => order(a, b));
    return modules.map(([module, names]) => {
      const list = [...names].sort(([a], [b]) => (a < b ? -1 : 1));
      const written = list.map(([name, local]) => (name === local ? name : `${printKey(name)} as ${local}`));
      return `import { ${written.join(', ')} } from ${printText(module)};`;
    });
  }
}

/** How a file imports another one. */
export function relativeSpecifier(file: string, { outFile, ending }: ImportingFile): string {
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

function order(a: string, b: string): number {
  const isFile = Number(a.startsWith('.')) - Number(b.startsWith('.'));
  if (isFile !== 0) return isFile;
  return a < b ? -1 : 1;
}

/** The ending of relative imports. */
export type ImportEnding = '.js' | '.ts' | '';

/** The first line of every generated file, which distinguishes it from hand-written files. */
export const GENERATED_MARK = '// Generated by `toolwright generate`. Do not edit.';

/** Longer values are broken into lines. */
const WIDTH = 100;

/** The name of a reference in the printed file. */
type NameOf = (reference: CodeReference) => string;

/** The place of a value: its indentation, and the used part of its line. */
interface ValuePlace {
  readonly indent: string;
  readonly taken: number;
  readonly nameOf: NameOf;
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
function flatText(value: unknown, nameOf: NameOf): string {
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
