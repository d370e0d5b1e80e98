import type { ConversationNews } from '../../core/contract/conversation-log.js';
import type { SqlTransaction } from '../../core/contract/job-engine.js';

/**
 * A statement for every database, `$1` its first value. `:runs` is a table; `{now}` the time in milliseconds and `{at}`
 * the same, once for a statement, so that an index can be searched with it; `{each $1}` the rows `value` and `place`
 * of a list; `{version}` changes with every change of a row. With several steps, all of them or none are carried out,
 * each of which sees the tables as they were before: `{done}` is whether the step `done` returned a row, and
 * `{done.id}` a column of it. The rows of the first step, which has to return some, are those of the statement.
 */
export interface Statement {
  /** No two have the same. */
  readonly name: string;
  readonly steps: Readonly<Record<string, string>>;
  readonly tells: Tells | undefined;
}

/** News of a conversation, whose id is the value of this number, once the step of this name has returned a row. */
interface Tells {
  readonly about: 'inbox' | 'events';
  readonly value: number;
  readonly once: string;
}

interface Steps {
  readonly steps: Readonly<Record<string, string>>;
  readonly tells?: Tells;
}

/** Gives statements their names. */
export function statements<Key extends string>(
  prefix: string,
  texts: Readonly<Record<Key, string | Steps>>,
): Readonly<Record<Key, Statement>> {
  const named = Object.entries<string | Steps>(texts).map(([key, given]) => {
    const { steps, tells } = typeof given === 'string' ? { steps: { done: given } } : given;
    return [key, { name: `${prefix}_${key}`, steps, tells }];
  });
  return Object.fromEntries(named) as Readonly<Record<Key, Statement>>;
}

/** A row; databases may give large numbers as text, and booleans as numbers. */
export type Row = Readonly<Record<string, unknown>>;

/** What became of a statement. */
export interface Outcome {
  readonly rows: readonly Row[];
  /** Rows that it returned or, where it returns none, changed. */
  readonly count: number;
  /** It was sent more than once: one before may have been carried out although its answer was lost. */
  readonly isRepeated: boolean;
}

/** Carries a statement out. */
export type RunStatement = (statement: Statement, values: readonly unknown[]) => Promise<Outcome>;

/** Yields statements that are carried out as one, and gets what became of each; perhaps carried out twice as a whole. */
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

/** What the stores need of a database. */
export interface SqlDriver {
  /** Where the connection was lost, a statement may be carried out twice. */
  readonly run: RunStatement;
  /** The same in a transaction of the application. Absent: completions of jobs do not take part in one. */
  runIn?(
    transaction: SqlTransaction,
    statement: Statement,
    values: readonly unknown[],
  ): Promise<Pick<Outcome, 'rows'>>;
  /** Of transactions that need the same lock, one after the other is carried out. */
  transaction<Value>(locks: Locks, work: () => Transaction<Value>): Promise<Value>;
  /** Reports what statements with `tells` published, here and in other processes; returns a function that ends that. */
  watch(listener: (news: ConversationNews) => void): () => void;
}

/** How a database says it. */
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

/** Writes a step as a database has it. */
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

/** What is listed, the latest change first and of one moment by their ids. */
interface PagedTable {
  readonly table: string;
  readonly columns: string;
  readonly id: string;
  readonly where: string;
}

/** Those behind a place, `$1` and `$2`: of its moment the ones with later ids, and then all before, each out of an index. */
export function pageBehind({ table, columns, id, where }: PagedTable): string {
  const order = `ORDER BY changed_at DESC, ${id} LIMIT $3`;
  return `
    SELECT * FROM (
      SELECT ${columns} FROM ${table} WHERE ${where} AND changed_at = $1 AND ${id} > $2 ORDER BY ${id} LIMIT $3
    ) AS same_moment
    UNION ALL SELECT * FROM (
      SELECT ${columns} FROM ${table} WHERE ${where} AND changed_at < $1 ${order}
    ) AS before
    ${order}`;
}

/** How many rows are removed at once: others wait no longer than for these. */
const BATCH = 5_000;

/** Removes what is older, by a statement of the age in milliseconds, the most rows and other values, until all is removed. */
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

/** A duration that databases keep as a whole number. */
export function wholeMs(ms: number): number {
  return Math.ceil(Math.min(ms, 2 ** 52));
}
