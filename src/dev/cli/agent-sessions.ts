import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, isAbsolute, join } from 'node:path';
import { errorMessage } from '../../core/kernel/error-message.js';
import { withFileLock } from '../../core/kernel/file-lock.js';
import { isRecord } from '../../core/kernel/json.js';
import { UserFault } from './command.js';

/** A session of `toolwright agent`: a conversation about a folder, with its store and its journal. */
interface AgentSession {
  readonly id: string;
  /** The absolute path of its working folder. */
  readonly folder: string;
  /** When it was last started or continued, ISO 8601. */
  readonly used: string;
  /** The start of the first prompt. */
  readonly title: string;
  /** Reverted changes that the model has not been informed of yet. */
  readonly undone: readonly string[];
}

type FoundSession =
  | { readonly status: 'known'; readonly session: AgentSession }
  | { readonly status: 'missing' }
  | { readonly status: 'broken'; readonly path: string; readonly why: string };

const ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** Folder for data that belongs to this user and to no project. */
export function stateFolder(): string {
  const { XDG_STATE_HOME } = process.env;
  const home =
    XDG_STATE_HOME !== undefined && isAbsolute(XDG_STATE_HOME)
      ? XDG_STATE_HOME
      : join(homedir(), '.local', 'state');
  return join(home, 'toolwright');
}

/** The sessions of this user, each in a folder of its own with access for this user only. */
export class AgentSessions {
  readonly #root: string;
  readonly #warn: (sentence: string) => void;

  /** `warn` receives messages about unreadable sessions. */
  constructor(warn: (sentence: string) => void, root: string = join(stateFolder(), 'agent')) {
    this.#warn = warn;
    this.#root = root;
  }

  /** All sessions, or those of one folder, sorted by their last use. */
  list(folder?: string): readonly AgentSession[] {
    let ids: readonly string[];
    try {
      ids = readdirSync(this.#root);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw unusable(this.#root, error);
    }
    return ids
      .flatMap((id) => {
        const found = ID.test(id) ? this.#find(id) : { status: 'missing' as const };
        if (found.status === 'broken')
          this.#warn(`${found.path} cannot be read: ${found.why}; --session ${id} goes on with it`);
        return found.status === 'known' ? [found.session] : [];
      })
      .filter((session) => folder === undefined || session.folder === folder)
      .sort((one, other) => (one.used < other.used ? 1 : -1));
  }

  /** A session; `undefined` if there is none. */
  read(id: string): AgentSession | undefined {
    const found = this.#find(id);
    return found.status === 'known' ? found.session : undefined;
  }

  #find(id: string): FoundSession {
    const path = this.#fileOf(id);
    try {
      const session: unknown = JSON.parse(readFileSync(path, 'utf8'));
      const { folder, used, title = '', undone } = isRecord(session) ? session : {};
      if (typeof folder !== 'string' || typeof used !== 'string')
        return { status: 'broken', path, why: 'it is not what a session is kept as' };
      const reverted = Array.isArray(undone) ? undone.map(String) : [];
      return { status: 'known', session: { id, folder, used, title: String(title), undone: reverted } };
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      const isMissing = code === 'ENOENT' || code === 'ENOTDIR';
      return isMissing ? { status: 'missing' } : { status: 'broken', path, why: errorMessage(error) };
    }
  }

  #fileOf(id: string): string {
    return join(this.placeOf(id), 'session.json');
  }

  /** The folder of a session's data. */
  placeOf(id: string): string {
    if (!ID.test(id))
      throw new UserFault(`--session is a name of letters, digits, '.', '_' and '-', not '${id}'`);
    return join(this.#root, id);
  }

  /**
   * Opens a session for this process only, and creates it if it is missing; returns a function that closes it.
   *
   * @throws UserFault if it belongs to another folder, is open in another process, or cannot be stored.
   */
  open(id: string, folder: string): () => void {
    const place = this.placeOf(id);
    const lock = join(place, 'lock');
    this.#withLock(id, () => {
      const found = this.#find(id);
      const known = found.status === 'known' ? found.session : undefined;
      if (known !== undefined && known.folder !== folder)
        throw new UserFault(`the session ${id} is over ${known.folder}: toolwright agent ${known.folder}`, 1);
      refuseHeld(lock, id);
      mkdirSync(place, { recursive: true, mode: 0o700 });
      writeFileSync(lock, String(process.pid), { mode: 0o600 });
      const title = found.status === 'broken' ? this.#renameBroken(found) : '';
      this.note({ id, folder, title: known?.title ?? title, undone: known?.undone ?? [] });
    });
    return () =>
      this.#withLock(id, () => {
        if (readHolder(lock) !== process.pid) return;
        // The session was never used.
        if (this.read(id)?.title === '') rmSync(place, { recursive: true, force: true });
        else rmSync(lock, { force: true });
      });
  }

  /** Renames an unreadable session file; the conversation in its store is intact. */
  #renameBroken({ path, why }: FoundSession & { readonly status: 'broken' }): string {
    const renamed = `${path}.broken-${Date.now()}`;
    renameSync(path, renamed);
    this.#warn(`${path} cannot be read, and is kept as ${basename(renamed)}: ${why}`);
    return '(title lost)';
  }

  /** Runs `work` while no other process opens or closes the same session. */
  #withLock(id: string, work: () => void): void {
    const place = this.placeOf(id);
    try {
      mkdirSync(this.#root, { recursive: true, mode: 0o700 });
      withFileLock(join(this.#root, `.${id}`), work);
    } catch (error) {
      throw error instanceof UserFault ? error : unusable(place, error);
    }
  }

  /** Stores the session's data. */
  note({ id, ...known }: Omit<AgentSession, 'used'>): void {
    const session = { ...known, used: new Date().toISOString() };
    const path = this.#fileOf(id);
    // Written to a draft first, so that a crash leaves the old file intact.
    writeFileSync(`${path}.draft`, `${JSON.stringify(session, null, 2)}\n`, { mode: 0o600 });
    renameSync(`${path}.draft`, path);
  }
}

function unusable(folder: string, error: unknown): UserFault {
  return new UserFault(
    `sessions are kept in ${folder} (XDG_STATE_HOME says where), and it cannot be used: ${errorMessage(error)}`,
    1,
  );
}

/** Throws if a running process holds the lock; a lock of a crashed process is ignored. */
function refuseHeld(lock: string, id: string): void {
  const holder = readHolder(lock);
  if (holder !== process.pid && isAlive(holder))
    throw new UserFault(`the session ${id} is open in process ${holder}`, 1);
}

function readHolder(path: string): number {
  try {
    return Number(readFileSync(path, 'utf8'));
  } catch {
    return 0;
  }
}

function isAlive(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
