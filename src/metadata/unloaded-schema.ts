import type { AuthorFault } from '../errors/author-fault.js';
import { isRecord } from '../kernel/is-record.js';

/** What is wrong where `parameters` are given and are nothing: the tool would take no arguments, unnoticed. */
export function unloadedSchemaFaults(options: unknown): readonly Omit<AuthorFault, 'where'>[] {
  if (!isRecord(options) || !Object.hasOwn(options, 'parameters')) return [];
  const { parameters } = options;
  if (parameters !== undefined && parameters !== null) return [];
  return [
    {
      problem: `its \`parameters\` are ${parameters}`,
      causes: [
        'the schema comes from a file that imports this one, and is not loaded yet',
        'its name is not exported where it is imported from',
      ],
      fix: 'the schema in a file of its own; or no `parameters` where there are no arguments',
    },
  ];
}
