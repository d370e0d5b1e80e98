import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { ApprovalStore, StandingApproval } from '../contract/standing-approvals.js';

/** Times in milliseconds. */
const TABLE = `
  CREATE TABLE IF NOT EXISTS toolwright_approvals (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    approval TEXT NOT NULL,
    expires_at REAL
  ) STRICT`;

const STANDS = '(expires_at IS NULL OR expires_at > $now)';

const SQL = {
  forget: `DELETE FROM toolwright_approvals WHERE NOT ${STANDS}`,
  add: 'INSERT OR REPLACE INTO toolwright_approvals (id, approval, expires_at) VALUES ($id, $approval, $expiresAt)',
  find: `SELECT approval FROM toolwright_approvals WHERE id = $id AND ${STANDS}`,
  list: `SELECT approval FROM toolwright_approvals WHERE ${STANDS} ORDER BY seq DESC LIMIT $limit`,
  revoke: `DELETE FROM toolwright_approvals WHERE id = $id AND ${STANDS}`,
} as const;

const DEFAULT_LIMIT = 100;

/** The standing approvals of a store in an SQLite file. */
export class SqliteApprovals implements ApprovalStore {
  readonly #database: DatabaseSync;
  readonly #now: () => number;
  readonly #prepared = new Map<keyof typeof SQL, StatementSync>();

  constructor(database: DatabaseSync, now: () => number) {
    this.#database = database;
    this.#now = now;
    database.exec(TABLE);
  }

  addApproval(approval: StandingApproval): void {
    this.#statement('forget').run({ now: this.#now() });
    const { id, expiresAt = null } = approval;
    this.#statement('add').run({ id, approval: JSON.stringify(approval), expiresAt });
  }

  findApproval(ids: readonly string[]): StandingApproval | undefined {
    for (const id of ids) {
      const row = this.#statement('find').get({ id, now: this.#now() });
      if (row !== undefined) return read(row);
    }
    return undefined;
  }

  listApprovals(limit = DEFAULT_LIMIT): readonly StandingApproval[] {
    return this.#statement('list').all({ limit, now: this.#now() }).map(read);
  }

  revokeApproval(id: string): boolean {
    return Number(this.#statement('revoke').run({ id, now: this.#now() }).changes) > 0;
  }

  #statement(name: keyof typeof SQL): StatementSync {
    const known = this.#prepared.get(name) ?? this.#database.prepare(SQL[name]);
    this.#prepared.set(name, known);
    return known;
  }
}

function read({ approval }: Readonly<Record<string, unknown>>): StandingApproval {
  return JSON.parse(String(approval)) as StandingApproval;
}
