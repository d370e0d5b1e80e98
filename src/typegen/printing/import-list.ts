import { posix } from 'node:path';
import type { CodeReference } from '../types/described-schema.js';
import type { ImportEnding } from './import-ending.js';
import { isIdentifier, printText } from './print-value.js';

/** The imports that a generated file needs, and the names that its references have in it. */
export class ImportList {
  readonly #folder: string;
  readonly #ending: ImportEnding;
  readonly #taken = new Set<string>();
  readonly #names = new Map<string, string>();
  readonly #modules = new Map<string, Map<string, string>>();

  constructor(outFile: string, ending: ImportEnding) {
    this.#folder = posix.dirname(outFile);
    this.#ending = ending;
  }

  /** A name that nothing else may take. */
  reserve(name: string): void {
    this.#taken.add(name);
  }

  /** What the file calls a reference; the first mention adds the import. */
  nameOf(reference: CodeReference): string {
    const { name, origin } = reference;
    const module = origin.package ?? (origin.file && this.#specifier(origin.file));
    if (module === undefined) return name;
    const key = JSON.stringify([module, name]);
    const known = this.#names.get(key);
    if (known !== undefined) return known;
    const isUsable = name !== 'default' && isIdentifier(name);
    const local = this.#free(isUsable ? name : (origin.localName ?? defaultName(origin.file)));
    this.#names.set(key, local);
    const ofModule = this.#modules.get(module) ?? new Map<string, string>();
    this.#modules.set(module, ofModule.set(name, local));
    return local;
  }

  /** The import lines: packages first, then files, each in the order of their names. */
  print(): readonly string[] {
    const modules = [...this.#modules].sort(([one], [other]) => order(one, other));
    return modules.map(([module, names]) => {
      const list = [...names].sort(([one], [other]) => (one < other ? -1 : 1));
      return `import { ${list.map(printName).join(', ')} } from ${printText(module)};`;
    });
  }

  #specifier(file: string): string {
    const path = posix.relative(this.#folder, file);
    const relative = path.startsWith('.') ? path : `./${path}`;
    const [, stem = relative, kind = ''] = /^(.*)\.([cm]?)tsx?$/.exec(relative) ?? [];
    if (this.#ending === '.ts') return relative;
    return this.#ending === '' && kind === '' ? stem : `${stem}.${kind}js`;
  }

  #free(wanted: string): string {
    let name = wanted;
    for (let count = 2; this.#taken.has(name); count++) name = `${wanted}${count}`;
    this.#taken.add(name);
    return name;
  }
}

/** A class without a name is called by its file: `order-tools.ts` → `OrderTools`. */
function defaultName(file = ''): string {
  const words = posix
    .basename(file)
    .replace(/\.[cm]?tsx?$/, '')
    .split(/\W+/);
  const name = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
  return isIdentifier(name) ? name : `Default${name}`;
}

function order(one: string, other: string): number {
  const isFile = Number(one.startsWith('.')) - Number(other.startsWith('.'));
  if (isFile !== 0) return isFile;
  return one < other ? -1 : 1;
}

function printName([name, local]: readonly [string, string]): string {
  if (name === local) return name;
  return `${isIdentifier(name) ? name : printText(name)} as ${local}`;
}
