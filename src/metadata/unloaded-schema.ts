import type { AuthorFault } from '../errors/author-fault.js';
import { isRecord } from '../kernel/is-record.js';

/** Why a schema, or a part of it, is undefined. */
export const UNLOADED_SCHEMA: readonly string[] = unloaded('the schema');

/** What is wrong where `parameters` are given and are nothing: the tool would take no arguments, unnoticed. */
export function unloadedSchemaFaults(options: unknown): readonly Omit<AuthorFault, 'where'>[] {
  if (!isRecord(options) || !Object.hasOwn(options, 'parameters')) return [];
  const { parameters } = options;
  if (parameters !== undefined && parameters !== null) return [];
  return [
    {
      problem: `its \`parameters\` are ${parameters}`,
      causes: UNLOADED_SCHEMA,
      fix: 'the schema in a file of its own; or no `parameters` where there are no arguments',
    },
  ];
}

/** What is wrong where `execute` is given and is undefined: the tool would be left to the client, unnoticed. */
export function unloadedExecuteFaults(options: unknown): readonly Omit<AuthorFault, 'where'>[] {
  if (!isRecord(options) || !Object.hasOwn(options, 'execute') || options.execute !== undefined) return [];
  return [
    {
      problem: 'its `execute` is undefined',
      causes: unloaded('the function'),
      fix: 'the function in a file of its own; or no `execute` where the client executes it',
    },
  ];
}

function unloaded(what: string): readonly string[] {
  return [
    `${what} comes from a file that imports this one, and is not loaded yet`,
    'its name is not exported where it is imported from',
  ];
}
