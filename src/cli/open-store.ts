import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { ConversationLog } from '../contract/conversation-log.js';
import type { CheckpointStore } from '../contract/run-checkpoint.js';
import type { ScheduleStore } from '../contract/schedule-store.js';
import type { ApprovalStore } from '../contract/standing-approvals.js';
import { InvalidOptionsError } from '../errors/author-fault.js';
import { errorMessage } from '../kernel/error-message.js';
import { SqliteRunStore } from '../stores/index.js';
import { UserFault } from './command.js';

/** A store that the user named. */
export interface OpenStore extends CheckpointStore {
  readonly conversations: ConversationLog;
  readonly approvals: ApprovalStore;
  readonly schedules: ScheduleStore;
  close(): void | Promise<void>;
}

/** Opens what `--store` names: `postgres://…`, with `?schema=` where it is another one, or the path of an SQLite file that is there. */
export async function openStore(name: string | undefined, folder: string): Promise<OpenStore> {
  if (name === undefined)
    throw new UserFault(
      '--store is missing: postgres://user@host:5432/database, or the path of an SQLite file',
    );
  if (/^postgres(ql)?:\/\//.test(name)) return openPostgres(name);
  const path = resolve(folder, name.replace(/^sqlite:/, ''));
  if (!existsSync(path)) throw new UserFault(`--store: there is no file ${path}`, 1);
  try {
    return new SqliteRunStore({ path });
  } catch (error) {
    throw new UserFault(errorMessage(error), 1);
  }
}

async function openPostgres(name: string): Promise<OpenStore> {
  try {
    const { PostgresRunStore } = await import('../postgres/index.js');
    return new PostgresRunStore(placeIn(name));
  } catch (error) {
    if (error instanceof InvalidOptionsError) throw new UserFault(`--store: ${oneLine(error)}`, 1);
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new UserFault('a store in PostgreSQL needs pg: npm install pg', 1);
  }
}

/** `?schema=shop` is for the store, and nothing that `pg` knows. */
function placeIn(name: string): { readonly connectionString: string; readonly schema?: string } {
  const [, before = name, schema, after = ''] = /^([^?]*\?(?:.*&)?)schema=([^&]*)&?(.*)$/.exec(name) ?? [];
  if (schema === undefined) return { connectionString: name };
  return { connectionString: `${before}${after}`.replace(/[?&]$/, ''), schema: decodeURIComponent(schema) };
}

function oneLine(error: Error): string {
  return error.message.replace(/\s*\n\s*/g, ' ');
}
