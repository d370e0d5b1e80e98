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
  step: (name, column) => (column === undefined ? `$${name}` : `$${name}.${column}`),
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

/** A value in a statement: `$1`, `$now`, `$done`, `$done.id`. */
const INPUT = /\$(\w+)(?:\.(\w+))?/g;

const LAST_TOLD = 'SELECT coalesce(max(told_at), 0) AS told FROM toolwright_conversations';
const TELL = `UPDATE toolwright_conversations SET told_at = 1 + (${LAST_TOLD}) WHERE conversation_id = ?`;
const TOLD_SINCE =
  'SELECT conversation_id, told_at FROM toolwright_conversations WHERE told_at > ? ORDER BY told_at';

/** A step as it is prepared: its values in their order, and whether it returns rows. */
interface Step {
  readonly name: string;
  readonly prepared: StatementSync;
  readonly inputs: readonly Input[];
  readonly hasRows: boolean;
}

/** A value of the statement by its index, the time, or what a step returned. */
type Input = number | 'now' | { readonly step: string; readonly column: string | undefined };

/**
 * An SQLite file under the stores. All is carried out at once: a transaction that waits for something would have another
 * store of this process, which blocks it, wait for the lock.
 */
export class SqliteDriver implements SqlDriver {
  readonly #database: DatabaseSync;
  readonly #now: () => number;
  readonly #steps = new Map<string, readonly Step[]>();
  readonly #others = new Map<string, StatementSync>();
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
    const now = Math.floor(this.#now());
    const returned = new Map<string, Row | undefined>();
    const inputOf = (input: Input): SQLInputValue => {
      if (input === 'now') return now;
      if (typeof input === 'number') return bindable(values[input]);
      const row = returned.get(input.step);
      return input.column === undefined ? Number(row !== undefined) : bindable(row?.[input.column]);
    };
    let first: Outcome | undefined;
    for (const { name, prepared, inputs, hasRows } of this.#stepsOf(statement)) {
      const bound = inputs.map(inputOf);
      const rows = hasRows ? (prepared.all(...bound) as readonly Row[]) : [];
      const count = hasRows ? rows.length : Number(prepared.run(...bound).changes);
      returned.set(name, rows[0]);
      first ??= { rows, count, isRepeated: false };
    }
    const outcome = first ?? { rows: [], count: 0, isRepeated: false };
    if (statement.tells === undefined || returned.get(statement.tells.once) === undefined) return outcome;
    const { about, value } = statement.tells;
    const conversationId = String(values[value - 1]);
    // Other processes see it when they next look.
    this.#prepared(TELL).run(conversationId);
    return { ...outcome, news: { conversationId, about } };
  }

  #stepsOf(statement: Statement): readonly Step[] {
    const known = this.#steps.get(statement.name);
    if (known !== undefined) return known;
    const steps = Object.entries(statement.steps).map(([name, text]): Step => {
      const written = REWRITTEN.reduce(
        (rest, [pattern, replacement]) => rest.replace(pattern, replacement),
        writeStep(text, DIALECT),
      );
      const inputs = Array.from(written.matchAll(INPUT), ([, word = '', column]): Input => {
        if (word === 'now') return word;
        return /^\d+$/.test(word) ? Number(word) - 1 : { step: word, column };
      });
      const hasRows = /^\s*(SELECT|WITH(?!.*\bDELETE\b))|\bRETURNING\b/s.test(written);
      return { name, prepared: this.#database.prepare(written.replace(INPUT, '?')), inputs, hasRows };
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
      const changed = this.#prepared(TOLD_SINCE).all(this.#seen.told);
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
    return Number(this.#prepared('PRAGMA data_version').get()?.data_version);
  }

  #prepared(text: string): StatementSync {
    const prepared = this.#others.get(text) ?? this.#database.prepare(text);
    this.#others.set(text, prepared);
    return prepared;
  }

  #lastTold(): number {
    return Number(this.#prepared(LAST_TOLD).get()?.told);
  }
}

function bindable(value: unknown): SQLInputValue {
  if (value === undefined) return null;
  if (typeof value === 'boolean') return Number(value);
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : (value as SQLInputValue);
}
