import { afterAll, beforeAll } from '@jest/globals';
import pg from 'pg';
import type { TestService } from '../../services/services.js';

/** A separate pool for the test, and schemas that are dropped at the end. */
export class TestSchemas {
  readonly pool: pg.Pool;
  readonly #service: TestService;
  readonly #names: string[] = [];

  constructor(service: TestService) {
    this.#service = service;
    this.pool = new pg.Pool({ connectionString: service.url, max: 4 });
    this.pool.on('error', () => {});
    beforeAll(() => this.pool.query('SELECT 1'));
    afterAll(async () => {
      for (const name of this.#names) await this.pool.query(`DROP SCHEMA IF EXISTS ${name} CASCADE`);
      await this.pool.end();
    });
  }

  newSchema(): string {
    const name = this.#service.newName();
    this.#names.push(name);
    return name;
  }

  /** Empties the tables of a schema, which is faster than creating new ones. */
  async empty(schema: string): Promise<void> {
    const { rows } = await this.pool.query<{ name: string }>(
      `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
       WHERE schemaname = $1 AND tablename <> 'migrations'`,
      [schema],
    );
    await this.pool.query(rows.map(({ name }) => `DELETE FROM ${name}`).join(';'));
  }

  /** Moves all stored times back, as if that much time had passed on the server’s clock. */
  async age(schema: string, ms: number): Promise<void> {
    await this.pool.query(
      `UPDATE ${schema}.runs
       SET lease_end = lease_end - $1, changed_at = changed_at - $1, created_at = created_at - $1,
         expires_at = expires_at - $1`,
      [ms],
    );
    await this.pool.query(`UPDATE ${schema}.kept_results SET end_at = end_at - $1`, [ms]);
    await this.pool.query(`UPDATE ${schema}.schedules SET due_at = due_at - $1`, [ms]);
  }

  /** The same for jobs. */
  async ageJobs(schema: string, ms: number): Promise<void> {
    await this.pool.query(
      `UPDATE ${schema}.jobs SET changed_at = changed_at - $1, added_at = added_at - $1`,
      [ms],
    );
  }

  /** The same for conversations. */
  async ageConversations(schema: string, ms: number): Promise<void> {
    const older = (column: string) => `${column} = ${column} - ${Math.ceil(ms)}`;
    await this.pool.query(`
      UPDATE ${schema}.fleet_conversations SET ${older('lease_end')}, ${older('changed_at')};
      UPDATE ${schema}.fleet_inbox SET ${older('done_at')};
      UPDATE ${schema}.fleet_events SET ${older('kept_at')}`);
  }
}
