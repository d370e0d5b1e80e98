import { misspeltName, nearestName } from '../kernel/nearest-name.js';
import { KEYWORDS } from '../schema/keywords.js';
import type { KeywordPlace, SchemaFault } from './schema-faults.js';

const NAMES = [...KEYWORDS.keys()];
/** Of other tools, though they look like slips: OpenAPI's `example`, and remarks. */
const OTHERS: ReadonlySet<string> = new Set(['example', 'comment']);

/** A keyword that JSON Schema does not have and that is hardly but a slip of one: it would say nothing. */
export function misspeltKeyword({ name, path }: KeywordPlace): readonly SchemaFault[] {
  if (name.startsWith('x-') || OTHERS.has(name) || misspeltName(name, NAMES) === undefined) return [];
  const meant = nearestName(name, NAMES);
  // `description_de` says more than a slip would.
  if (meant === undefined || (name.startsWith(meant) && name.length > meant.length + 1)) return [];
  return [
    {
      path: path === '' ? name : `${path}.${name}`,
      problem: `is no keyword of JSON Schema (did you mean \`${meant}\`?)`,
      fix: `\`${meant}\`; names of your own begin with x-`,
    },
  ];
}
