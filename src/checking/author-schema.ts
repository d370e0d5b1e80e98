import type { JsonSchema } from '../contract/json-schema.js';
import { isRecord } from '../kernel/is-record.js';
import { nodeUtil } from '../kernel/node-module.js';
import { KEYWORDS } from '../schema/keywords.js';
import { fitsSchema } from './fits-schema.js';
import { misspeltKeyword } from './misspelt-keyword.js';
import { readSchema, type SchemaFault, type SchemaPart, schemaFaults } from './schema-faults.js';

/** Schemas that nothing is wrong with; in those that a library derives, defaults are its own affair. */
const sound = new WeakSet<object>();

/**
 * Which defaults of a schema are its author's: all, those of the arguments themselves (what is in a class may
 * be documented for others), or none, where a library derives the schema and fills them in itself.
 */
type OwnDefaults = 'all' | 'of arguments' | 'none';

/**
 * Everything that is wrong with a schema that the author of a tool gives: what keeps it from being used, bounds
 * that nothing is within, and defaults that do not fit.
 */
export function authorSchemaFaults(schema: unknown, defaults: OwnDefaults = 'all'): readonly SchemaFault[] {
  if (!isRecord(schema)) return schemaFaults(schema);
  if (sound.has(schema)) return [];
  const { faults: malformed, doubtful, unknown } = readSchema(schema);
  const misspelt = unknown.flatMap(misspeltKeyword);
  const faults =
    malformed.length > 0
      ? [...malformed, ...misspelt]
      : [...misspelt, ...contradictions(schema, doubtful, defaults)];
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

function contradictions(
  root: JsonSchema,
  doubtful: readonly SchemaPart[],
  defaults: OwnDefaults,
): readonly SchemaFault[] {
  const ofArguments = defaults === 'of arguments' ? new Set(Object.values(root.properties ?? {})) : undefined;
  const faults: SchemaFault[] = [];
  for (const { schema, path } of doubtful) {
    const within = path === '' ? '' : `${path}.`;
    addEmptyBounds(schema, within, faults);
    const isOwn = defaults !== 'none' && (ofArguments === undefined || ofArguments.has(schema));
    if (isOwn) faults.push(...misfittingDefault({ schema, path }, root));
  }
  return faults;
}

function addEmptyBounds(schema: JsonSchema, within: string, faults: SchemaFault[]): void {
  for (const name of Object.keys(schema)) {
    const upTo = KEYWORDS.get(name)?.upTo;
    if (upTo === undefined || schema[upTo] === undefined) continue;
    const [least, most] = [Number(schema[name]), Number(schema[upTo])];
    if (least <= most) continue;
    const problem = `is ${least}, above its \`${upTo}\` of ${most}: nothing fits`;
    faults.push({ path: within + name, problem, fix: `a ${name} of at most ${most}` });
  }
}

/** A default that the schema beside it does not take, so that it is never filled in. */
export function misfittingDefault({ schema, path }: SchemaPart, root: JsonSchema): readonly SchemaFault[] {
  const { default: fallback, type } = schema;
  if (fallback === undefined || fitsSchema(fallback, { schema, root })) return [];
  return [
    {
      path: path === '' ? 'default' : `${path}.default`,
      problem: `is ${nodeUtil().inspect(fallback, { depth: 1, maxStringLength: 80 })}, which its own schema does not take`,
      fix:
        fallback === null && type !== undefined
          ? 'no default, or a type that takes null'
          : 'a default that fits',
    },
  ];
}
