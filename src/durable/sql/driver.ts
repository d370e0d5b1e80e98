import type { ConversationNews } from '../../core/contract/conversation-log.js';
import type { SqlTransaction } from '../../core/contract/job-engine.js';
import type { ReadQuery } from '../../core/errors/list-pages.js';

/**
 * A statement for every database; `$1` is its first value. `:runs` is a table, `{now}` the time in milliseconds, and
 * `{at}` the same time as a constant of the statement, so that an index can be used. `{each $1}` are the rows `value`
 * and `place` of a list. `{version}` changes with every change of a row. Several steps are atomic, and each step sees
 * the tables as they were before: `{done}` is whether the step `done` returned a row, and `{done.id}` a column of it.
 * The rows of the first step, which must return some, are those of the statement.
 */
export interface Statement {
  /** Unique. */
  readonly name: string;
  readonly steps: Readonly<Record<string, string>>;
  readonly tells: Tells | undefined;
}

/** Publishes news of the conversation whose id is value number `value`, if the step `once` returned a row. */
interface Tells {
  readonly about: 'inbox' | 'events';
  readonly value: number;
  readonly once: string;
}

interface Steps {
  readonly steps: Readonly<Record<string, string>>;
  readonly tells?: Tells;
}

/** Names the statements of a topic. */
export function statements<Key extends string>(
  prefix: string,
  texts: Readonly<Record<Key, string | Steps>>,
): Readonly<Record<Key, Statement>> {
  const named: Partial<Record<string, Statement>> = {};
  for (const [key, given] of Object.entries<string | Steps>(texts)) {
    const { steps, tells } = typeof given === 'string' ? { steps: { done: given } } : given;
    named[key] = { name: `${prefix}_${key}`, steps, tells };
  }
  return named as Readonly<Record<Key, Statement>>;
}

/** A row; databases may return large numbers as text, and booleans as numbers. */
export type Row = Readonly<Record<string, unknown>>;

/** The result of a statement. */
export interface Outcome {
  readonly rows: readonly Row[];
  /** Number of rows that it returned or, if it returns no rows, changed. */
  readonly count: number;
  /** It was sent more than once: an earlier attempt may have been executed although its response was lost. */
  readonly isRepeated: boolean;
}

/** Whether a statement took effect: a repeated one returns no rows, because its first execution did the work. */
export function isDone({ rows, isRepeated }: Outcome): boolean {
  return rows.length > 0 || isRepeated;
}

/** The row of a write. A repeated one finds nothing to do if its first execution did the work: `check` looks for it. */
export async function writtenRow(
  { rows, isRepeated }: Pick<Outcome, 'rows' | 'isRepeated'>,
  check: () => Promise<Pick<Outcome, 'rows'>>,
): Promise<Row | undefined> {
  return rows.length > 0 || !isRepeated ? rows[0] : (await check()).rows[0];
}

/** Executes a statement. */
export type RunStatement = (statement: Statement, values: readonly unknown[]) => Promise<Outcome>;

/** Yields statements of one transaction and receives their results. It may be executed twice as a whole. */
export type Transaction<Value> = Generator<
  readonly [statement: Statement, values: readonly unknown[]],
  Value,
  Outcome
>;

/** Locks of a kind. */
export interface Locks {
  readonly of: string;
  readonly names: readonly string[];
}

/** What the stores need from a database. */
export interface SqlDriver {
  /** After a lost connection, a statement may be executed twice. */
  readonly run: RunStatement;
  /** Executes a statement in a transaction of the application. Absent: completions of jobs cannot join one. */
  runIn?(
    transaction: SqlTransaction,
    statement: Statement,
    values: readonly unknown[],
  ): Promise<Pick<Outcome, 'rows'>>;
  /** Transactions that need the same lock run one after another. */
  transaction<Value>(locks: Locks, work: () => Transaction<Value>): Promise<Value>;
  /** Reports what statements with `tells` published, in all processes; returns a function that stops it. */
  watch(listener: (news: ConversationNews) => void): () => void;
}

/** The SQL of a database where databases differ. */
export interface Dialect {
  readonly table: (name: string) => string;
  readonly now: string;
  readonly nowOnce: string;
  readonly version: string;
  readonly each: (list: string) => string;
  /** Whether a step returned a row, or a column of that row. */
  readonly step: (name: string, column?: string) => string;
}

/** `:runs`, and no `::bigint`. */
const TABLE = /(?<!:):([a-z_]+)/g;
const LIST = /\{each (\$\d+)\}/g;
const TOKEN = /\{(\w+)(?:\.(\w+))?\}/g;

/** Translates a step to the SQL of a database. */
export function writeStep(text: string, dialect: Dialect): string {
  const { table, now, nowOnce, version, each, step } = dialect;
  return text
    .replace(TABLE, (_, name: string) => table(name))
    .replace(LIST, (_, list: string) => each(list))
    .replace(
      TOKEN,
      (_, name: string, column?: string) => ({ now, at: nowOnce, version })[name] ?? step(name, column),
    );
}

/** Statements of a table that is listed with the latest change first; rows of the same time are sorted by id. */
export function pageStatements(table: string, id: string, columns: string) {
  const order = `ORDER BY changed_at DESC, ${id} LIMIT $3`;
  // The page after (`$1`, `$2`): rows of the same time with greater ids, then all earlier rows. Both use an index.
  const page = (where: string) => `
    SELECT * FROM (
      SELECT ${columns} FROM ${table} WHERE ${where} AND changed_at = $1 AND ${id} > $2 ORDER BY ${id} LIMIT $3
    ) AS same_moment
    UNION ALL SELECT * FROM (
      SELECT ${columns} FROM ${table} WHERE ${where} AND changed_at < $1 ${order}
    ) AS before
    ${order}`;
  return { list: page('true'), list_of: page('status = $4') };
}

/** The rows of a page, and one more. */
export async function readPage(
  run: RunStatement,
  { list, list_of: listOf }: Readonly<Record<'list' | 'list_of', Statement>>,
  { status, after, limit }: ReadQuery,
): Promise<readonly Row[]> {
  const place = [after?.changedAt ?? Number.MAX_SAFE_INTEGER, after?.id ?? '', limit + 1];
  return (await (status === undefined ? run(list, place) : run(listOf, [...place, status]))).rows;
}

/** How many rows are removed at once, so that other statements do not wait long. */
const BATCH = 5_000;

/** Removes old rows in batches. The statement's values are the age in milliseconds, the batch size, and others. */
export async function removeOld(
  run: RunStatement,
  statement: Statement,
  [ageMs, ...values]: readonly [number, ...unknown[]],
): Promise<number> {
  for (let removed = 0; ; ) {
    const { count } = await run(statement, [wholeMs(ageMs), BATCH, ...values]);
    removed += count;
    if (count < BATCH) return removed;
  }
}

/** Rounds a duration, because databases store whole numbers. */
export function wholeMs(ms: number): number {
  return Math.ceil(Math.min(ms, 2 ** 52));
}
