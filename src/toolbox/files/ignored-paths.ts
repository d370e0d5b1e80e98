import ignore from 'ignore';
import { joinPath, splitPath } from '../paths/folder-path.js';
import type { FileSystem, FolderEntry, WalkedFolder } from './file-system.js';

/** Its folder, and whether a path is ignored, is meant all the same, or is not spoken of. */
interface RulesOfFolder {
  readonly folder: string;
  readonly rules: ignore.Ignore;
}

const RULES_FILE = '.gitignore';
const MOST_BYTES = 1024 * 1024;

/** Never of interest, and large. */
const ALWAYS = new Set(['.git']);

/** What `.gitignore` files say of paths, folder by folder, as a walk comes to them. */
export class IgnoredPaths {
  readonly #known = new Map<string, readonly RulesOfFolder[]>();

  private constructor() {}

  /** Knows what the folders above the first one say, unless that itself is ignored and meant all the same. */
  static async above(files: FileSystem, start: string): Promise<IgnoredPaths> {
    const paths = new IgnoredPaths();
    const folders: string[] = [];
    for (let place = splitPath(start); place !== undefined; place = splitPath(place.folder))
      folders.unshift(place.folder);
    let rules: readonly RulesOfFolder[] = [];
    for (const folder of folders) {
      const text = await textOf(files, joinPath(folder, RULES_FILE));
      if (text !== undefined) rules = [{ folder, rules: rulesIn(text) }, ...rules];
    }
    const isMeant = folders.concat(start).some((folder) => folder !== '.' && says(rules, folder, 'folder'));
    paths.#known.set(start, isMeant ? [] : rules);
    return paths;
  }

  /** The entries of a folder that are not ignored; the folders among them may be asked for next. */
  kept(folder: WalkedFolder): readonly FolderEntry[] {
    const { path, entries } = folder;
    let rules = this.#known.get(path) ?? [];
    this.#known.delete(path);
    const own = entries.some(({ name, kind }) => name === RULES_FILE && kind === 'file')
      ? folder.read(RULES_FILE, MOST_BYTES)
      : undefined;
    if (own !== undefined)
      rules = [{ folder: path, rules: rulesIn(new TextDecoder().decode(own)) }, ...rules];
    const kept = entries.filter(
      ({ name, kind }) => !ALWAYS.has(name) && !says(rules, joinPath(path, name), kind),
    );
    for (const { name, kind } of kept) if (kind === 'folder') this.#known.set(joinPath(path, name), rules);
    return kept;
  }
}

function rulesIn(text: string): ignore.Ignore {
  return ignore({ allowRelativePaths: true }).add(text);
}

/** The folder nearest to a path has the last word. */
function says(all: readonly RulesOfFolder[], path: string, kind: FolderEntry['kind']): boolean {
  for (const { folder, rules } of all) {
    const relative = folder === '.' ? path : path.slice(folder.length + 1);
    const { ignored, unignored } = rules.test(kind === 'folder' ? `${relative}/` : relative);
    if (ignored) return true;
    if (unignored) return false;
  }
  return false;
}

async function textOf(files: FileSystem, path: string): Promise<string | undefined> {
  try {
    const { bytes } = await files.read(path, { most: MOST_BYTES });
    return new TextDecoder().decode(bytes);
  } catch {
    return undefined;
  }
}
