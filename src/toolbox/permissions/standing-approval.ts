import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { isRecord } from '../../kernel/json.js';
import { nodeCrypto } from '../../kernel/node-module.js';
import { FILLED_TEXT, objectOf, optionFaults, optionTable, required } from '../../kernel/options.js';
import { withFileLock } from './file-lock.js';
import { type PermissionRule, RULES } from './permission-rule.js';

/** Whose calls a yes lets through: those of one session, or all of one user. */
export type YesScope = { readonly session: string } | { readonly user: string };

/** A yes that was given once and holds for what fits its rule. */
export interface StandingApproval {
  /** Names it for `revoke`. */
  readonly id: string;
  readonly rule: PermissionRule;
  readonly scope: YesScope;
  /** When it was given, ISO 8601. */
  readonly given: string;
  /** Until when it holds, ISO 8601; for ever where there is none. */
  readonly until?: string;
}

/** @deprecated The old name of {@link StandingApproval}. */
export type StandingYes = StandingApproval;

/** What stands at the head of the file, for who opens it. */
const ABOUT =
  'Calls that fit one of these are made without asking. Remove an entry, and somebody is asked again. Rules that deny win over all of them.';

const ENTRY = optionTable<StandingApproval>('an entry', {
  id: required(FILLED_TEXT),
  rule: required({
    accepts: (value) => RULES.accepts([value]) && isRecord(value) && value.decision === 'allow',
    fix: "{ decision: 'allow', … }",
  }),
  scope: required({
    accepts: (value) => SESSION.accepts(value) || USER.accepts(value),
    fix: "{ session: '…' } or { user: '…' }",
  }),
  given: required(FILLED_TEXT),
  until: FILLED_TEXT,
});
const SESSION = objectOf<{ readonly session: string }>({ session: required(FILLED_TEXT) }, { fix: '' });
const USER = objectOf<{ readonly user: string }>({ user: required(FILLED_TEXT) }, { fix: '' });

/** Keeps yeses, in a file that a person can read and change; without a file, for as long as the process lives. */
export class StandingApprovals {
  readonly #file: string | undefined;
  #entries: readonly StandingApproval[] = [];
  /** What the file said when it was last read. */
  #text = '';

  constructor(file: string | undefined) {
    this.#file = file;
  }

  /**
   * All that hold now. What other processes have written since counts.
   *
   * @throws Error where the file cannot be read as what it should be: then nobody knows what was meant.
   */
  all(now: Date = new Date()): readonly StandingApproval[] {
    this.#refresh();
    return this.#entries.filter(({ until }) => until === undefined || Date.parse(until) > now.getTime());
  }

  /** Keeps a yes; one for the same is replaced. */
  add(yes: Omit<StandingApproval, 'id'>): StandingApproval {
    const about = JSON.stringify([yes.rule, yes.scope]);
    const id = nodeCrypto().createHash('sha256').update(about).digest('hex').slice(0, 12);
    const entry = { id, ...yes };
    this.#change((entries) => [...entries.filter((other) => other.id !== id), entry]);
    return entry;
  }

  /** Takes one back; tells whether it was there. */
  remove(id: string): boolean {
    if (!this.all().some((entry) => entry.id === id)) return false;
    let wasThere = false;
    this.#change((entries) => {
      const rest = entries.filter((entry) => entry.id !== id);
      wasThere = rest.length < entries.length;
      return rest;
    });
    return wasThere;
  }

  /** Reads, changes and writes while no other process does: otherwise one would bring back what the other took. */
  #change(change: (entries: readonly StandingApproval[]) => readonly StandingApproval[]): void {
    const file = this.#file;
    if (file === undefined) {
      this.#entries = change(this.all());
      return;
    }
    mkdirSync(dirname(file), { recursive: true });
    let isWritten = false;
    while (!isWritten)
      isWritten = withFileLock(file, (isHeld) => {
        const text = `${JSON.stringify({ about: ABOUT, entries: change(this.all()) }, null, 2)}\n`;
        return writeWhole(file, text, isHeld);
      });
  }

  /** Time and size of a file do not tell two changes apart that are made at once; what it says does. */
  #refresh(): void {
    if (this.#file === undefined) return;
    const text = textOf(this.#file);
    if (text === this.#text) return;
    this.#entries = text === '' ? [] : entriesIn(text, this.#file);
    this.#text = text;
  }
}

/** Nothing where the file is not there yet. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8') || ' ';
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw unreadable(file, cause);
  }
}

function unreadable(file: string, cause: unknown): Error {
  return new Error(
    `${file} cannot be read as JSON, so that nobody knows what it allows. Mend it, or remove it.`,
    { cause },
  );
}

function entriesIn(text: string, file: string): readonly StandingApproval[] {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw unreadable(file, cause);
  }
  const entries = isRecord(json) && Array.isArray(json.entries) ? (json.entries as unknown[]) : undefined;
  if (entries === undefined) throw new Error(`${file} has no list of entries. Mend it, or remove it.`);
  for (const [index, entry] of entries.entries()) {
    const [fault] = optionFaults(entry, ENTRY);
    if (fault !== undefined)
      throw new Error(`${file}, entry ${index + 1}: ${fault.problem}. Write instead: ${fault.fix}`);
  }
  return entries as StandingApproval[];
}

/** Who reads it finds the old text or the new one. Nothing is written by whoever was held up until another came. */
function writeWhole(file: string, text: string, isHeld: () => boolean): boolean {
  const draft = `${file}.${nodeCrypto().randomUUID()}.tmp`;
  const handle = openSync(draft, 'wx', 0o600);
  try {
    writeFileSync(handle, text);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  const isStillHeld = isHeld();
  if (isStillHeld) renameSync(draft, file);
  else rmSync(draft, { force: true });
  return isStillHeld;
}
