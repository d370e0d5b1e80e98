import type { ApprovalStore, StandingApproval } from '../contract/standing-approvals.js';
import { type Row, type SqlDriver, statements } from './driver.js';

const STANDS = '(expires_at IS NULL OR expires_at > {now})';

const APPROVALS = statements('approval', {
  add: {
    steps: {
      added: `
        INSERT INTO :approvals (id, approval, expires_at, seq)
        SELECT $1, $2, $3::bigint, coalesce(max(seq), 0) + 1 FROM :approvals WHERE true
        ON CONFLICT (id) DO UPDATE SET approval = excluded.approval, expires_at = excluded.expires_at, seq = excluded.seq
        RETURNING id`,
      forgotten: `DELETE FROM :approvals WHERE NOT ${STANDS} AND id <> $1`,
    },
  },
  find: `
    SELECT approval FROM :approvals JOIN {each $1} ON id = value WHERE ${STANDS} ORDER BY place LIMIT 1`,
  list: `SELECT approval FROM :approvals WHERE ${STANDS} ORDER BY seq DESC LIMIT $1`,
  revoke: `DELETE FROM :approvals WHERE id = $1 AND ${STANDS}`,
});

const DEFAULT_LIMIT = 100;

/** The standing approvals of a store. */
export class SqlApprovals implements ApprovalStore {
  readonly #driver: SqlDriver;

  constructor(driver: SqlDriver) {
    this.#driver = driver;
  }

  async addApproval(approval: StandingApproval): Promise<void> {
    const { id, expiresAt } = approval;
    const values = [id, JSON.stringify(approval), expiresAt === undefined ? null : Math.ceil(expiresAt)];
    await this.#driver.run(APPROVALS.add, values);
  }

  async findApproval(ids: readonly string[]): Promise<StandingApproval | undefined> {
    const { rows } = await this.#driver.run(APPROVALS.find, [ids]);
    return rows[0] && approvalOf(rows[0]);
  }

  async listApprovals(limit = DEFAULT_LIMIT): Promise<readonly StandingApproval[]> {
    return (await this.#driver.run(APPROVALS.list, [limit])).rows.map(approvalOf);
  }

  async revokeApproval(id: string): Promise<boolean> {
    return (await this.#driver.run(APPROVALS.revoke, [id])).count > 0;
  }
}

function approvalOf({ approval }: Row): StandingApproval {
  return JSON.parse(String(approval)) as StandingApproval;
}
