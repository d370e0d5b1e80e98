import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { isRecord, parsedJson } from '../../kernel/json.js';
import { nodeCrypto } from '../../kernel/node-module.js';
import { FILLED_TEXT, objectOf, optionFaults, optionTable, required } from '../../kernel/options.js';
import { withFileLock } from './file-lock.js';
import { type PermissionRule, RULES } from './permission-rule.js';

/** The calls that an approval allows: those of one session, or all of one user. */
export type YesScope = { readonly session: string } | { readonly user: string };

/** An approval that was given once and holds for what fits its rule. */
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

/** For people who open the file. */
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

/** Stores approvals in a file that a person can read and change, or in memory. */
export class StandingApprovals {
  readonly #file: string | undefined;
  #entries: readonly StandingApproval[] = [];
  /** The text of the file when it was last read. */
  #text: string | undefined;

  constructor(file: string | undefined) {
    this.#file = file;
  }

  /**
   * All that hold now, with changes by other processes: time and size of a file do not tell two quick changes apart.
   *
   * @throws Error if the file cannot be understood.
   */
  all(now: Date = new Date()): readonly StandingApproval[] {
    if (this.#file !== undefined) {
      const text = textOf(this.#file);
      if (text !== this.#text) this.#entries = text === undefined ? [] : entriesIn(text, this.#file);
      this.#text = text;
    }
    return this.#entries.filter(({ until }) => until === undefined || Date.parse(until) > now.getTime());
  }

  /** Adds an approval, or replaces that of the same rule and scope. */
  add(approval: Omit<StandingApproval, 'id'>): StandingApproval {
    const about = JSON.stringify([approval.rule, approval.scope]);
    const id = nodeCrypto().createHash('sha256').update(about).digest('hex').slice(0, 12);
    const entry = { id, ...approval };
    this.#change((entries) => [...entries.filter((other) => other.id !== id), entry]);
    return entry;
  }

  /** Removes an approval; returns whether it was there. */
  remove(id: string): boolean {
    if (!this.all().some((entry) => entry.id === id)) return false;
    let wasThere = false;
    this.#change((entries) => {
      wasThere = entries.some((entry) => entry.id === id);
      return entries.filter((entry) => entry.id !== id);
    });
    return wasThere;
  }

  /** Under a lock: another process must not bring back what this one removes. */
  #change(change: (entries: readonly StandingApproval[]) => readonly StandingApproval[]): void {
    const file = this.#file;
    if (file === undefined) {
      this.#entries = change(this.all());
      return;
    }
    mkdirSync(dirname(file), { recursive: true });
    const draft = `${file}.${nodeCrypto().randomUUID()}.tmp`;
    let isWritten = false;
    while (!isWritten)
      isWritten = withFileLock(file, (isHeld) => {
        const text = JSON.stringify({ about: ABOUT, entries: change(this.all()) }, null, 2);
        writeFileSync(draft, `${text}\n`, { mode: 0o600, flush: true });
        // Whoever was stopped until the lock expired begins again.
        const isStillHeld = isHeld();
        if (isStillHeld) renameSync(draft, file);
        return isStillHeld;
      });
  }
}

/** `undefined` if the file is not there yet. */
function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Error(`${file} cannot be read. Repair it, or remove it.`, { cause });
  }
}

function entriesIn(text: string, file: string): readonly StandingApproval[] {
  const json = parsedJson(text);
  if (!isRecord(json) || !Array.isArray(json.entries))
    throw new Error(`${file} is no JSON with a list of entries. Repair it, or remove it.`);
  for (const [index, entry] of json.entries.entries()) {
    const [fault] = optionFaults(entry, ENTRY);
    if (fault !== undefined)
      throw new Error(`${file}, entry ${index + 1}: ${fault.problem}. Write instead: ${fault.fix}`);
  }
  return json.entries as StandingApproval[];
}
