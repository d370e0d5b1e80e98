import { randomUUID } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { Inject, Injectable } from '@nestjs/common';
import type { Message, ToolLoopResult } from 'toolwright';
import { DATABASE } from '../database/open-database.js';

/** The messages of one user and the model. */
export interface Conversation {
  readonly id: string;
  readonly messages: readonly Message[];
  /** The run that waits for answers. */
  readonly runId?: string;
}

/** The conversations of the shop; each belongs to one user. */
@Injectable()
export class Conversations {
  constructor(@Inject(DATABASE) private readonly database: DatabaseSync) {}

  begin(userId: string): Conversation {
    const id = randomUUID();
    const insert = this.database.prepare(
      "INSERT INTO conversations (id, user_id, messages) VALUES (?, ?, '[]')",
    );
    insert.run(id, userId);
    return { id, messages: [] };
  }

  /** The conversation, if it belongs to this user. */
  find(userId: string, id: string): Conversation | undefined {
    const select = this.database.prepare(
      'SELECT id, messages, run_id AS runId FROM conversations WHERE id = ? AND user_id = ?',
    );
    const row = select.get(id, userId);
    if (row === undefined) return undefined;
    const runId = row.runId === null ? {} : { runId: String(row.runId) };
    return { id, messages: JSON.parse(String(row.messages)), ...runId };
  }

  /** A conversation of any user; the run itself checks who may answer. */
  waiting(id: string): Conversation | undefined {
    const row = this.database.prepare('SELECT user_id AS userId FROM conversations WHERE id = ?').get(id);
    return row && this.find(String(row.userId), id);
  }

  /** Stores the history after a run, and the run if it waits for answers. */
  keep(id: string, { messages, state }: ToolLoopResult): void {
    const update = this.database.prepare('UPDATE conversations SET messages = ?, run_id = ? WHERE id = ?');
    update.run(JSON.stringify(messages), state?.runId ?? null, id);
  }
}
