import { inspect } from 'node:util';
import type { JsonSchema } from '../contract/json-schema.js';
import { isRecord } from '../kernel/is-record.js';
import { eachSubschema, isSchemaNode, KEYWORDS } from '../schema/keywords.js';
import { fitsSchema } from './fits-schema.js';
import { type SchemaFault, schemaFaults } from './schema-faults.js';

/** Schemas that nothing is wrong with; in those that a library derives, defaults are its own affair. */
const sound = new WeakSet<object>();

/**
 * Which defaults of a schema are its author's: all, those of the arguments themselves (what is in a class may
 * be documented for others), or none, where a library derives the schema and fills them in itself.
 */
export type OwnDefaults = 'all' | 'of arguments' | 'none';

/**
 * Everything that is wrong with a schema that the author of a tool gives: what keeps it from being used, bounds
 * that nothing is within, and defaults that do not fit.
 */
export function authorSchemaFaults(schema: unknown, defaults: OwnDefaults = 'all'): readonly SchemaFault[] {
  if (!isRecord(schema)) return schemaFaults(schema);
  if (sound.has(schema)) return [];
  const malformed = schemaFaults(schema);
  const faults = malformed.length > 0 ? malformed : contradictions(schema, defaults);
  if (faults.length === 0) sound.add(schema);
  return faults;
}

/** Says that a schema was read elsewhere, by whoever took it from somebody else; its defaults are that one's affair. */
export function vouchFor(schema: JsonSchema): void {
  sound.add(schema);
}

/** A fault as a sentence about a tool: "`properties.a.type` of its `parameters` is …". */
export function describeSchemaFault({ path, problem, fix }: SchemaFault, what: string) {
  const place = path === '' ? `its \`${what}\`` : `\`${path}\` of its \`${what}\``;
  return { problem: `${place} ${problem}`, fix };
}

function contradictions(root: JsonSchema, defaults: OwnDefaults): readonly SchemaFault[] {
  const faults: SchemaFault[] = [];
  const seen = new Set<JsonSchema>();
  const open = [{ schema: root, path: '' }];
  for (const { schema, path } of open) {
    if (seen.has(schema)) continue;
    seen.add(schema);
    const within = path === '' ? '' : `${path}.`;
    faults.push(...emptyBounds(schema, within));
    const isOwn = defaults === 'all' || (defaults === 'of arguments' && isArgument(schema, root));
    if (isOwn && schema.default !== undefined && !fitsSchema(schema.default, { schema, root }))
      faults.push(misfittingDefault(schema, within));
    eachSubschema(schema, ({ node, name, key }) => {
      if (isSchemaNode(node))
        open.push({ schema: node, path: `${within}${name}${key === undefined ? '' : `.${key}`}` });
    });
  }
  return faults;
}

function isArgument(schema: JsonSchema, { properties = {} }: JsonSchema): boolean {
  return Object.values(properties).includes(schema);
}

function emptyBounds(schema: JsonSchema, within: string): readonly SchemaFault[] {
  return Object.keys(schema).flatMap((name) => {
    const upTo = KEYWORDS.get(name)?.upTo;
    if (upTo === undefined || schema[upTo] === undefined || !(Number(schema[name]) > Number(schema[upTo])))
      return [];
    const problem = `is ${schema[name]}, above its \`${upTo}\` of ${schema[upTo]}: nothing fits`;
    return [{ path: within + name, problem, fix: `a ${name} of at most ${schema[upTo]}` }];
  });
}

function misfittingDefault({ default: fallback, type }: JsonSchema, within: string): SchemaFault {
  return {
    path: `${within}default`,
    problem: `is ${inspect(fallback, { depth: 1, maxStringLength: 80 })}, which its own schema does not take`,
    fix:
      fallback === null && type !== undefined
        ? 'no default, or a type that takes null'
        : 'a default that fits',
  };
}
