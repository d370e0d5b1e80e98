/** A statement that the server prepares once for each connection. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

/** By the server's clock, which is the same for all processes. */
export const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

/** Once for a statement, so that an index can be searched with it. */
export const NOW_ONCE = `(SELECT ${NOW})`;

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
    (SELECT ${columns} FROM ${table} WHERE ${where} AND changed_at = $1 AND ${id} > $2 ORDER BY ${id} LIMIT $3)
    UNION ALL
    (SELECT ${columns} FROM ${table} WHERE ${where} AND changed_at < $1 ${order})
    ${order}`;
}

/** Names as the server keeps the statements of a connection, which several stores may share: no two have the same prefix and key. */
export function namedStatements<Key extends string>(
  schema: string,
  texts: Readonly<Record<Key, string>>,
  prefix = '',
): Readonly<Record<Key, Statement>> {
  const named = Object.entries<string>(texts).map(([key, text]) => [
    key,
    { name: `${schema}.${prefix}${key}`, text: text.replace(TABLE, (_mark, table) => `${schema}.${table}`) },
  ]);
  return Object.fromEntries(named) as Readonly<Record<Key, Statement>>;
}

/** `:runs`, and no `::bigint`. */
const TABLE = /(?<!:):([a-z_]+)/g;
