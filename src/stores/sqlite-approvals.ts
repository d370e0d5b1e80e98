import type { DatabaseSync } from 'node:sqlite';
import type { ApprovalStore, StandingApproval } from '../contract/standing-approvals.js';
import { type Prepared, preparedIn } from './open-database.js';

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
  readonly #now: () => number;
  readonly #sql: Prepared<keyof typeof SQL>;

  constructor(database: DatabaseSync, now: () => number) {
    this.#now = now;
    database.exec(TABLE);
    this.#sql = preparedIn(database, SQL);
  }

  addApproval(approval: StandingApproval): void {
    this.#sql.forget.run({ now: this.#now() });
    const { id, expiresAt = null } = approval;
    this.#sql.add.run({ id, approval: JSON.stringify(approval), expiresAt });
  }

  findApproval(ids: readonly string[]): StandingApproval | undefined {
    for (const id of ids) {
      const row = this.#sql.find.get({ id, now: this.#now() });
      if (row !== undefined) return read(row);
    }
    return undefined;
  }

  listApprovals(limit = DEFAULT_LIMIT): readonly StandingApproval[] {
    return this.#sql.list.all({ limit, now: this.#now() }).map(read);
  }

  revokeApproval(id: string): boolean {
    return Number(this.#sql.revoke.run({ id, now: this.#now() }).changes) > 0;
  }
}

function read({ approval }: Readonly<Record<string, unknown>>): StandingApproval {
  return JSON.parse(String(approval)) as StandingApproval;
}
