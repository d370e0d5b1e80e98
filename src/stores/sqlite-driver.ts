import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import type { ConversationNews } from '../contract/conversation-log.js';
import {
  type Dialect,
  type Locks,
  type Outcome,
  type Row,
  type RunStatement,
  type SqlDriver,
  type Statement,
  type Transaction,
  writeStep,
} from '../sql/driver.js';
import { inTransaction } from './open-database.js';

/** Names of our own, so that the file can be the application's. */
export function tableOf(name: string): string {
  return `toolwright_${name.replace(/^fleet_/, '')}`;
}

const DIALECT: Dialect = {
  table: tableOf,
  now: '$now',
  nowOnce: '$now',
  // What other processes write changes the first part; here, nobody takes a row and leaves it between two statements.
  version: "concat_ws('|', (SELECT data_version FROM pragma_data_version), revision, claim, lease_end)",
  each: (list) => `(SELECT value, key + 1 AS place FROM json_each(${list})) AS each`,
  step: (name, column) => (column === undefined ? `$${name}` : `$${name}_${column}`),
};

/** What SQLite does not need, and what it calls otherwise. */
const REWRITTEN: readonly (readonly [RegExp, string])[] = [
  [/::[a-z]+(\[\])?/g, ''],
  [/ FOR (NO KEY )?UPDATE( SKIP LOCKED)?/g, ''],
  [/\bmd5\(([^)]+)\)/g, '$1'],
  [/\bstrpos\(/g, 'instr('],
  [/\bto_json\(/g, 'json_quote('],
  [/ ~ /g, ' REGEXP '],
];

/** How often the file is asked whether another process has changed it; SQLite tells nobody. */
const WATCH_EVERY_MS = 50;

const LAST_TOLD = 'SELECT coalesce(max(told_at), 0) AS told FROM toolwright_conversations';

/** A step as it is prepared: the names of its values, and whether it returns rows. */
interface Step {
  readonly name: string;
  readonly prepared: StatementSync;
  readonly values: readonly string[];
  readonly hasRows: boolean;
}

/**
 * An SQLite file under the stores. All is carried out at once: a transaction that waits for something would have another
 * store of this process, which blocks it, wait for the lock.
 */
export class SqliteDriver implements SqlDriver {
  readonly #database: DatabaseSync;
  readonly #now: () => number;
  readonly #steps = new Map<string, readonly Step[]>();
  readonly #watchers = new Set<{ readonly tell: (news: ConversationNews) => void }>();
  #timer: NodeJS.Timeout | undefined;
  #seen = { version: 0, told: 0 };

  constructor(database: DatabaseSync, now: () => number) {
    this.#database = database;
    this.#now = now;
    database.function('regexp', { deterministic: true }, (pattern, text) =>
      Number(new RegExp(String(pattern)).test(String(text))),
    );
  }

  readonly run: RunStatement = async (statement, values) => {
    if (statement.tells === undefined && Object.keys(statement.steps).length === 1)
      return this.#carryOut(statement, values);
    const outcome = inTransaction(this.#database, () => this.#carryOut(statement, values));
    if (outcome.news !== undefined) this.#tellAll(outcome.news);
    return outcome;
  };

  async transaction<Value>(_locks: Locks, work: () => Transaction<Value>): Promise<Value> {
    return inTransaction(this.#database, () => {
      const begun = work();
      let step = begun.next();
      while (!step.done) step = begun.next(this.#carryOut(...step.value));
      return step.value;
    });
  }

  watch(listener: (news: ConversationNews) => void): () => void {
    const watcher = { tell: listener };
    this.#watchers.add(watcher);
    if (this.#timer === undefined) {
      this.#seen = { version: this.#version(), told: this.#lastTold() };
      // The process stays: it may have nothing else to do than to wait for what others write.
      this.#timer = setInterval(() => this.#look(), WATCH_EVERY_MS);
    }
    return () => {
      this.#watchers.delete(watcher);
      if (this.#watchers.size === 0) this.stopWatching();
    };
  }

  /** Nobody is told any more, because the file is about to be closed. */
  stopWatching(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #carryOut(statement: Statement, values: readonly unknown[]): Outcome & { news?: ConversationNews } {
    const bound: Record<string, SQLInputValue> = { now: Math.floor(this.#now()) };
    for (const [index, value] of values.entries()) bound[index + 1] = inputOf(value);
    let first: Outcome | undefined;
    for (const step of this.#stepsOf(statement)) {
      const outcome = outcomeOf(step, bound);
      first ??= outcome;
      const [row] = outcome.rows;
      bound[step.name] = row === undefined ? 0 : 1;
      for (const [column, value] of Object.entries(row ?? {}))
        bound[`${step.name}_${column}`] = value as SQLInputValue;
    }
    const outcome = first ?? { rows: [], count: 0, isRepeated: false };
    if (statement.tells === undefined || bound[statement.tells.once] !== 1) return outcome;
    const { about, value } = statement.tells;
    return { ...outcome, news: this.#tell(String(values[value - 1]), about) };
  }

  /** Other processes see it when they next look. */
  #tell(conversationId: string, about: 'inbox' | 'events'): ConversationNews {
    const told = this.#lastTold() + 1;
    this.#database
      .prepare('UPDATE toolwright_conversations SET told_at = ? WHERE conversation_id = ?')
      .run(told, conversationId);
    return { conversationId, about };
  }

  #stepsOf(statement: Statement): readonly Step[] {
    const known = this.#steps.get(statement.name);
    if (known !== undefined) return known;
    const steps = Object.entries(statement.steps).map(([name, text]): Step => {
      const written = REWRITTEN.reduce(
        (rest, [pattern, replacement]) => rest.replace(pattern, replacement),
        writeStep(text, DIALECT),
      );
      const values = Array.from(new Set(written.match(/\$\w+/g)), (value) => value.slice(1));
      const hasRows = /^\s*(SELECT|WITH(?!.*\bDELETE\b))|\bRETURNING\b/s.test(written);
      return { name, prepared: this.#database.prepare(written), values, hasRows };
    });
    this.#steps.set(statement.name, steps);
    return steps;
  }

  #tellAll(news: ConversationNews): void {
    for (const { tell } of [...this.#watchers]) tell(news);
  }

  /** What other processes have changed since the last look; of a file that cannot be read now, the next one tells. */
  #look(): void {
    for (const news of this.#readNews()) this.#tellAll(news);
  }

  #readNews(): readonly ConversationNews[] {
    try {
      const version = this.#version();
      if (version === this.#seen.version) return [];
      const changed = this.#database
        .prepare(
          'SELECT conversation_id, told_at FROM toolwright_conversations WHERE told_at > ? ORDER BY told_at',
        )
        .all(this.#seen.told);
      // As far as these rows go: what is written meanwhile is for the next look.
      this.#seen = { version, told: Number(changed.at(-1)?.told_at ?? this.#seen.told) };
      // Which of both it was, the file does not say.
      return changed.flatMap(({ conversation_id: id }) =>
        (['inbox', 'events'] as const).map((about) => ({ conversationId: String(id), about })),
      );
    } catch {
      return [];
    }
  }

  /** Changes whenever another connection has written to the file. */
  #version(): number {
    return Number(this.#database.prepare('PRAGMA data_version').get()?.data_version);
  }

  #lastTold(): number {
    return Number(this.#database.prepare(LAST_TOLD).get()?.told);
  }
}

function outcomeOf(
  { prepared, values, hasRows }: Step,
  bound: Readonly<Record<string, SQLInputValue>>,
): Outcome {
  const own: Record<string, SQLInputValue> = {};
  // SQLite refuses values that a statement does not name.
  for (const value of values) own[value] = bound[value] ?? null;
  if (!hasRows) return { rows: [], count: Number(prepared.run(own).changes), isRepeated: false };
  const rows = prepared.all(own) as readonly Row[];
  return { rows, count: rows.length, isRepeated: false };
}

function inputOf(value: unknown): SQLInputValue {
  if (typeof value === 'boolean') return Number(value);
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : (value as SQLInputValue);
}
