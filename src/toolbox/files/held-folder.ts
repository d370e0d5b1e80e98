import { type BigIntStats, closeSync, constants, existsSync, fsyncSync, lstatSync, openSync } from 'node:fs';
import type { FileKind } from './file-system.js';

/** A folder that is open: what is looked up in it is in that folder, whatever becomes of its path meanwhile. */
export interface HeldFolder {
  /** How the system names something in it. */
  at(name: string): string;
  /** How the system names the folder itself. */
  readonly self: string;
  /** The folder of that name in it; throws what the system says where it is none, or a link. */
  enter(name: string): HeldFolder;
  /** Makes what was done in it last. */
  sync(): void;
  close(): void;
}

/** Where Linux shows what a process has open: a path through it begins at the folder that is open. */
const HANDLES = '/proc/self/fd';

// Windows has no such flags.
const { O_DIRECTORY = 0, O_NOFOLLOW = 0, O_RDONLY } = constants;

/** Whether folders can be held here. Elsewhere each step is looked at before it is taken, which leaves a gap. */
export function canHoldFolders(): boolean {
  return process.platform === 'linux' && existsSync(HANDLES);
}

class OpenFolder implements HeldFolder {
  readonly self: string;
  readonly #handle: number;

  constructor(path: string) {
    this.#handle = openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    this.self = `${HANDLES}/${this.#handle}`;
  }

  at(name: string): string {
    return `${this.self}/${name}`;
  }

  enter(name: string): HeldFolder {
    return new OpenFolder(this.at(name));
  }

  sync(): void {
    fsyncSync(this.#handle);
  }

  close(): void {
    closeSync(this.#handle);
  }
}

class NamedFolder implements HeldFolder {
  readonly self: string;

  constructor(path: string) {
    const kind = kindOf(lstatSync(path, { bigint: true }));
    if (kind !== 'folder')
      throw Object.assign(new Error('not a folder'), { code: kind === 'link' ? 'ELOOP' : 'ENOTDIR' });
    this.self = path;
  }

  at(name: string): string {
    return `${this.self}/${name}`;
  }

  enter(name: string): HeldFolder {
    return new NamedFolder(this.at(name));
  }

  sync(): void {}

  close(): void {}
}

/** How folders are gone through: `handles` where they can be held, `names` elsewhere. */
export type FolderAccess = 'handles' | 'names';

/** Opens a folder by its absolute path, in which no links are. */
export function openFolder(path: string, access: FolderAccess): HeldFolder {
  return access === 'handles' ? new OpenFolder(path) : new NamedFolder(path);
}

/** What something is, by what the system says of it. */
export function kindOf(stats: Pick<BigIntStats, 'isFile' | 'isDirectory' | 'isSymbolicLink'>): FileKind {
  if (stats.isFile()) return 'file';
  if (stats.isDirectory()) return 'folder';
  return stats.isSymbolicLink() ? 'link' : 'other';
}
