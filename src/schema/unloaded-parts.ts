import type { AuthorFault } from '../errors/author-fault.js';
import { UNLOADED_SCHEMA } from '../metadata/unloaded-schema.js';
import { eachSubschema, isSchemaNode } from './keywords.js';

/** Of the keywords that hold no schemas, those that would let everything pass where they say nothing. */
const JUDGING = ['enum', 'const'];
/** Enough to see which file it is. */
const MOST_TOLD = 5;

/**
 * What is wrong with a schema, as its author wrote it, where parts of it are not loaded yet: JSON leaves what is
 * undefined out, and nothing would be checked there. Continues "its schema …".
 */
export function unloadedParts(schema: object): Omit<AuthorFault, 'where'> | undefined {
  const paths = undefinedPaths(schema).slice(0, MOST_TOLD);
  if (paths.length === 0) return undefined;
  return {
    problem: `is undefined at ${paths.map((path) => `\`${path}\``).join(' and ')}`,
    causes: UNLOADED_SCHEMA,
    fix: 'the schema in a file of its own; or no such key where it has nothing to say',
  };
}

function undefinedPaths(root: object): readonly string[] {
  if (!isSchemaNode(root)) return [];
  const found: string[] = [];
  const places = new Map([[root, '']]);
  for (const [schema, within] of places) {
    // What writes itself has its own say of what it leaves out.
    if (typeof schema.toJSON === 'function') continue;
    for (const name of JUDGING)
      if (Object.hasOwn(schema, name) && schema[name] === undefined) found.push(within + name);
    eachSubschema(schema, ({ node, name, key }) => {
      const path = key === undefined ? within + name : `${within}${name}.${key}`;
      if (node === undefined) found.push(path);
      else if (isSchemaNode(node) && !places.has(node)) places.set(node, `${path}.`);
    });
  }
  return found;
}
