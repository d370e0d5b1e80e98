import type { ApprovalStore, StandingApproval } from '../contract/standing-approvals.js';
import type { Database } from './database.js';
import { NOW, namedStatements } from './statements.js';

const STANDS = `(expires_at IS NULL OR expires_at > ${NOW})`;

const TEXTS = {
  approval_add: `
    WITH forgotten AS (DELETE FROM :approvals WHERE NOT ${STANDS} AND id <> $1)
    INSERT INTO :approvals (id, approval, expires_at) VALUES ($1, $2, $3)
    ON CONFLICT (id) DO UPDATE SET approval = excluded.approval, expires_at = excluded.expires_at, seq = DEFAULT`,
  approval_find: `
    SELECT approval FROM :approvals WHERE id = ANY ($1::text[]) AND ${STANDS}
    ORDER BY array_position($1::text[], id) LIMIT 1`,
  approval_list: `SELECT approval FROM :approvals WHERE ${STANDS} ORDER BY seq DESC LIMIT $1`,
  approval_revoke: `DELETE FROM :approvals WHERE id = $1 AND ${STANDS}`,
} as const;

const DEFAULT_LIMIT = 100;

/** The standing approvals of a store in PostgreSQL. */
export class PostgresApprovals implements ApprovalStore {
  readonly #database: Database;
  readonly #sql: ReturnType<typeof namedStatements<keyof typeof TEXTS>>;

  constructor(database: Database) {
    this.#database = database;
    this.#sql = namedStatements(database.schema, TEXTS);
  }

  async addApproval(approval: StandingApproval): Promise<void> {
    const { id, expiresAt = null } = approval;
    const values = [id, JSON.stringify(approval), expiresAt === null ? null : Math.ceil(expiresAt)];
    await this.#database.run(this.#sql.approval_add, () => values);
  }

  async findApproval(ids: readonly string[]): Promise<StandingApproval | undefined> {
    const { rows } = await this.#database.run(this.#sql.approval_find, () => [[...ids]]);
    return rows[0] && read(rows[0]);
  }

  async listApprovals(limit = DEFAULT_LIMIT): Promise<readonly StandingApproval[]> {
    return (await this.#database.run(this.#sql.approval_list, () => [limit])).rows.map(read);
  }

  async revokeApproval(id: string): Promise<boolean> {
    const { rowCount } = await this.#database.run(this.#sql.approval_revoke, () => [id]);
    return (rowCount ?? 0) > 0;
  }
}

function read({ approval }: Readonly<Record<string, unknown>>): StandingApproval {
  return JSON.parse(String(approval)) as StandingApproval;
}
