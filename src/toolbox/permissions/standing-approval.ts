import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { withFileLock } from '../../kernel/file-lock.js';
import { isRecord, parsedJson } from '../../kernel/json.js';
import { nodeCrypto } from '../../kernel/node-module.js';
import { either, FILLED_TEXT, objectOf, optionFaults, optionTable, required } from '../../kernel/options.js';
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

const ABOUT =
  'Calls that fit one of these are made without asking. Remove an entry, and somebody is asked again. Rules that deny win over all of them.';

const SCOPES = either(
  objectOf<{ session: string }>({ session: required(FILLED_TEXT) }, { fix: "{ session: '…' }" }),
  objectOf<{ user: string }>({ user: required(FILLED_TEXT) }, { fix: "{ user: '…' }" }),
);
const ENTRY = optionTable<StandingApproval>('an entry', {
  id: required(FILLED_TEXT),
  rule: required({
    accepts: (value) => RULES.accepts([value]) && isRecord(value) && value.decision === 'allow',
    fix: "{ decision: 'allow', … }",
  }),
  scope: required({ accepts: SCOPES.accepts, fix: SCOPES.fix }),
  given: required(FILLED_TEXT),
  until: FILLED_TEXT,
});

/** Stores approvals in a file that a person can read and change, or in memory. */
export class StandingApprovals {
  readonly #file: string | undefined;
  #inMemory: readonly StandingApproval[] = [];

  constructor(file: string | undefined) {
    this.#file = file;
  }

  /**
   * All that hold now. The file is read each time: its time and size do not reveal two quick changes by other processes.
   *
   * @throws Error if the file cannot be understood.
   */
  all(): readonly StandingApproval[] {
    const entries = this.#file === undefined ? this.#inMemory : entriesIn(this.#file);
    return entries.filter(({ until }) => until === undefined || Date.parse(until) > Date.now());
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
    let wasThere = this.all().some((entry) => entry.id === id);
    if (wasThere)
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
      this.#inMemory = change(this.all());
      return;
    }
    mkdirSync(dirname(file), { recursive: true });
    const draft = `${file}.${nodeCrypto().randomUUID()}.tmp`;
    const write = (isHeld: () => boolean): boolean => {
      const text = JSON.stringify({ about: ABOUT, entries: change(this.all()) }, null, 2);
      writeFileSync(draft, `${text}\n`, { mode: 0o600, flush: true });
      const isStillHeld = isHeld();
      if (isStillHeld) renameSync(draft, file);
      return isStillHeld;
    };
    // A process that was stopped until its lock expired begins again.
    while (!withFileLock(file, write));
  }
}

function entriesIn(file: string): readonly StandingApproval[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    // It is not there yet.
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw new Error(`${file} cannot be read. Repair it, or remove it.`, { cause });
  }
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
