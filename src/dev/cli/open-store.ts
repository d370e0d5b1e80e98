import { existsSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { ConversationLog } from '../../core/contract/conversation-log.js';
import type { JobStore } from '../../core/contract/job-store.js';
import type { CheckpointStore } from '../../core/contract/run-checkpoint.js';
import type { ScheduleStore } from '../../core/contract/schedule-store.js';
import type { ApprovalStore } from '../../core/contract/standing-approvals.js';
import { InvalidOptionsError } from '../../core/errors/author-fault.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { misspeltName } from '../../core/kernel/nearest-name.js';
import { serverAddress } from '../../core/kernel/server-address.js';
import type { PostgresOptions } from '../../durable/postgres/index.js';
import { SqliteRunStore } from '../../durable/stores/index.js';
import { checkRunsFile } from '../../durable/stores/sqlite-run-store.js';
import { type CommandEnvironment, closing, installAdvice, UserFault } from './command.js';

/** A store that the user named. */
export interface OpenStore extends CheckpointStore, AsyncDisposable {
  readonly conversations: ConversationLog;
  readonly jobs: JobStore;
  readonly approvals: ApprovalStore;
  readonly schedules: ScheduleStore;
  close(): void | Promise<void>;
}

/**
 * Opens the store of `--store`: `postgres://…`, optionally with `?schema=`, or the path of an SQLite file. A `worker`
 * creates it if it is missing and waits for an unreachable database; an `operator` requires an existing one, and never
 * creates or changes tables.
 */
export async function openStore(
  name: string | undefined,
  { folder, error: say }: Pick<CommandEnvironment, 'folder' | 'error'>,
  user: 'operator' | 'worker' = 'operator',
): Promise<OpenStore> {
  if (name === undefined || name === '')
    throw new UserFault(
      `--store is ${name === '' ? 'empty' : 'missing'}: give postgres://user@host:5432/database, or the path of an SQLite file`,
    );
  if (/^postgres(ql)?:\/\//i.test(name)) return openPostgres(name, user);
  const [scheme] = /^(?!sqlite:)\w{2,}:\/+/i.exec(name) ?? [];
  if (scheme !== undefined)
    throw new UserFault(
      `--store: ${scheme}… is not supported: give postgres://…, or the path of an SQLite file`,
    );
  const path = resolve(folder, name.replace(/^sqlite:/, ''));
  const isThere = existsSync(path);
  if (isThere && statSync(path).isDirectory())
    throw new UserFault(`--store: ${path} is a folder: give the path of the store’s file in it`);
  if (!isThere && user === 'operator')
    throw new UserFault(
      `--store: ${path} does not exist: give the path of the application’s file, or start a worker or the application first, which creates it`,
      1,
    );
  try {
    if (user === 'operator') checkRunsFile(path);
    const store = closing(new SqliteRunStore({ path }));
    if (!isThere) say(`toolwright: --store: created ${path}, which did not exist\n`);
    return store;
  } catch (error) {
    throw wrongStore(error);
  }
}

const ADDRESS = serverAddress('postgres', 'postgres://user:password@host:5432/database');

async function openPostgres(name: string, user: 'operator' | 'worker'): Promise<OpenStore> {
  const [wrong] = ADDRESS.explain?.(name, '--store') ?? [];
  if (wrong !== undefined) throw new UserFault(`${wrong.problem}: ${ADDRESS.fix}`);
  // `pg` ignores unknown parameters, and a misspelled `schema` would select another schema.
  for (const option of new URLSearchParams(/\?.*/.exec(name)?.[0]).keys())
    if (option !== 'schema' && misspeltName(option, ['schema']))
      throw new UserFault(`--store has the unknown parameter ?${option}=: did you mean ?schema=`);
  const place = placeIn(name);
  try {
    const { PostgresRunStore } = await import('../../durable/postgres/index.js');
    const store = closing(new PostgresRunStore(place));
    // Stores create tables on first use, so an operator's store is checked before.
    const ready = user === 'worker' ? store.migrate() : checkTables(place);
    await ready.catch(async (error: unknown) => {
      if (user === 'worker' && isAway(error)) return;
      await store.close();
      throw wrongStore(error, isAway(error) ? ': start the server, or correct the address' : '');
    });
    return store;
  } catch (error) {
    if (error instanceof InvalidOptionsError)
      throw new UserFault(
        error.faults.map(({ problem, fix }) => `--store: ${problem}: write ${fix}`).join('; '),
      );
    const advice = installAdvice(error);
    throw advice === undefined ? error : new UserFault(`a store in PostgreSQL: ${advice}`, 1);
  }
}

async function checkTables(place: PostgresOptions): Promise<void> {
  const { Database } = await import('../../durable/postgres/postgres-stores.js');
  const database = new Database(place);
  await database.check().finally(() => database.close());
}

/** Errors of the database and its connection have codes. */
export function hasCode(error: unknown): boolean {
  return typeof (error as { readonly code?: unknown } | undefined)?.code === 'string';
}

/** Codes of Node and the server, and messages of `pg` without a code. */
const AWAY = /^(E[A-Z]+|08...|53...|57P..|Connection terminated|timeout exceeded)/;

function isAway(error: unknown): boolean {
  return AWAY.test(
    hasCode(error) ? String((error as { readonly code?: unknown }).code) : errorMessage(error),
  );
}

function wrongStore(error: unknown, advice = ''): UserFault {
  const said = error instanceof InvalidOptionsError ? error.faults[0]?.problem : errorMessage(error);
  return new UserFault(`--store: ${String(said).replace(/\s*\n\s*/g, ' ')}${advice}`, 1);
}

/** Extracts `?schema=shop`, which is for the store and unknown to `pg`. */
function placeIn(name: string): PostgresOptions {
  const [, before = name, schema, after = ''] = /^([^?]*\?(?:.*&)?)schema=([^&]*)&?(.*)$/.exec(name) ?? [];
  if (schema === undefined) return { connectionString: name };
  const connectionString = `${before}${after}`.replace(/[?&]$/, '');
  try {
    return { connectionString, schema: decodeURIComponent(schema) };
  } catch {
    // Refused as the name of a schema.
    return { connectionString, schema };
  }
}
