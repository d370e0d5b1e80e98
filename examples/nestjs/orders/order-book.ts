import { DatabaseSync } from 'node:sqlite';
import { Inject, Injectable } from '@nestjs/common';
import { DATABASE } from '../database/open-database.js';
import type { NewOrder } from './new-order.js';
import type { Order } from './order.js';

const COLUMNS = 'id, user_id AS userId, item, quantity, status';

/** The orders of the shop, independent of tools. */
@Injectable()
export class OrderBook {
  constructor(@Inject(DATABASE) private readonly database: DatabaseSync) {}

  ofUser(userId: string, limit: number): readonly Order[] {
    const select = this.database.prepare(
      `SELECT ${COLUMNS} FROM orders WHERE user_id = ? ORDER BY id DESC LIMIT ?`,
    );
    return select.all(userId, limit) as unknown as Order[];
  }

  place(userId: string, { item, quantity }: NewOrder): Order {
    const insert = this.database.prepare(
      `INSERT INTO orders (user_id, item, quantity) VALUES (?, ?, ?) RETURNING ${COLUMNS}`,
    );
    return insert.get(userId, item, quantity) as unknown as Order;
  }

  /** The cancelled order; `undefined` if the user has no such open order. */
  cancel(userId: string, id: number): Order | undefined {
    const update = this.database.prepare(
      `UPDATE orders SET status = 'cancelled' WHERE id = ? AND user_id = ? AND status = 'open' RETURNING ${COLUMNS}`,
    );
    return update.get(id, userId) as unknown as Order | undefined;
  }

  sales(): readonly { readonly item: string; readonly sold: number }[] {
    const select = this.database.prepare(
      "SELECT item, SUM(quantity) AS sold FROM orders WHERE status <> 'cancelled' GROUP BY item ORDER BY item",
    );
    return select.all() as unknown as { item: string; sold: number }[];
  }
}
