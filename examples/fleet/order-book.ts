import type { Pool } from 'pg';

/** An order of the shop. */
export interface Order {
  readonly id: number;
  readonly item: string;
  readonly cents: number;
}

/** What was paid for an order. */
export interface Payment {
  readonly order: number;
  readonly cents: number;
}

const SAMPLES = "(1, 'lamp', 4900), (2, 'desk', 24900), (3, 'chair', 12900)";

/** The shop's own tables, in PostgreSQL. */
export class OrderBook {
  constructor(
    private readonly pool: Pool,
    private readonly schema: string,
  ) {}

  /** Creates the tables with three orders; several processes may do so at the same time. */
  async prepare(): Promise<void> {
    const orders = `${this.schema}.orders`;
    // Processes take turns, in one transaction each: creating a schema twice at the same time fails.
    await this.pool.query(`BEGIN;
      SELECT pg_advisory_xact_lock(hashtext('${this.schema} orders'));
      CREATE SCHEMA IF NOT EXISTS ${this.schema};
      CREATE TABLE IF NOT EXISTS ${orders} (id integer PRIMARY KEY, item text NOT NULL, cents integer NOT NULL);
      CREATE TABLE IF NOT EXISTS ${this.schema}.payments
        (key text PRIMARY KEY, order_id integer NOT NULL REFERENCES ${orders}, cents integer NOT NULL);
      INSERT INTO ${orders} VALUES ${SAMPLES} ON CONFLICT DO NOTHING;
      COMMIT`);
  }

  async list(): Promise<readonly Order[]> {
    const { rows } = await this.pool.query<Order>(`SELECT * FROM ${this.schema}.orders ORDER BY id`);
    return rows;
  }

  /** Pays an order; the same key pays only once. `undefined` if there is no such order. */
  async pay(order: number, key: string): Promise<Payment | undefined> {
    await this.pool.query(
      `INSERT INTO ${this.schema}.payments SELECT $1, id, cents FROM ${this.schema}.orders WHERE id = $2
       ON CONFLICT (key) DO NOTHING`,
      [key, order],
    );
    return this.findPayment(key);
  }

  async findPayment(key: string): Promise<Payment | undefined> {
    const { rows } = await this.pool.query<Payment>(
      `SELECT order_id AS "order", cents FROM ${this.schema}.payments WHERE key = $1`,
      [key],
    );
    return rows[0];
  }

  /** The cents paid so far. */
  async paid(): Promise<number> {
    const { rows } = await this.pool.query<{ readonly cents: string }>(
      `SELECT coalesce(sum(cents), 0) AS cents FROM ${this.schema}.payments`,
    );
    return Number(rows[0]?.cents);
  }
}
