import { DatabaseSync } from 'node:sqlite';
import { Inject, Injectable } from '@nestjs/common';
import { DATABASE } from '../database/open-database.js';
import type { User } from './user.js';

/** The users of the shop. */
@Injectable()
export class Users {
  constructor(@Inject(DATABASE) private readonly database: DatabaseSync) {}

  byToken(token: string): User | undefined {
    const row = this.database.prepare('SELECT id, name, role FROM users WHERE token = ?').get(token);
    return row as unknown as User | undefined;
  }

  byId(id: string): User | undefined {
    const row = this.database.prepare('SELECT id, name, role FROM users WHERE id = ?').get(id);
    return row as unknown as User | undefined;
  }
}
