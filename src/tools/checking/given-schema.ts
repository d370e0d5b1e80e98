import type { JsonSchema } from '../../core/contract/json-schema.js';
import { isRecord } from '../../core/kernel/json.js';
import { misspeltName, nearestName, nearestNames } from '../../core/kernel/nearest-name.js';
import { nodeUtil } from '../../core/kernel/node-module.js';
import { allSchemas, eachSubschema, isSchemaNode, KEYWORDS, mapSubschemas } from '../schema/keywords.js';
import { KNOWN_FORMATS } from './formats.js';
import { fitsSchema } from './interpreter/interpret-schema.js';
import { referredSchema, validatesItselfAgain } from './interpreter/whole-schema.js';
import { patternGrowth } from './patterns.js';
import {
  type KeywordPlace,
  readSchema,
  type SchemaFault,
  type SchemaPart,
  schemaFaults,
} from './schema-faults.js';

const NO_FAULTS: readonly SchemaFault[] = [];

/** Schemas without faults. */
const sound = new WeakSet<object>();

/**
 * All faults of a schema that a tool author wrote: parts that cannot be used, and bounds that exclude every value. A
 * default that does not match is a fault only in `declared`, the parts whose default the author declared for a
 * parameter. In JSON Schema, which often comes from elsewhere, it is only a warning.
 */
export function authorSchemaFaults(
  schema: unknown,
  declared: readonly JsonSchema[] = [],
): readonly SchemaFault[] {
  if (!isRecord(schema)) return schemaFaults(schema);
  if (sound.has(schema)) return [];
  const { faults: malformed, doubtful, unknown } = readSchema(schema);
  const misspelt = unknown.flatMap(misspeltKeyword);
  const faults =
    malformed.length > 0
      ? [...malformed, ...misspelt]
      : [...misspelt, ...contradictions(schema, doubtful, declared)];
  if (faults.length === 0) sound.add(schema);
  return faults;
}

/** Marks a schema as already checked by its reader. */
function vouchFor(schema: JsonSchema): void {
  sound.add(schema);
}

/** Writes a fault as a sentence about a tool: "`properties.a.type` of its `parameters` is …". */
export function describeSchemaFault({ path, problem, fix }: SchemaFault, what: string) {
  const place = path === '' ? `its \`${what}\`` : `\`${path}\` of its \`${what}\``;
  return { problem: `${place} ${problem}`, fix };
}

function contradictions(
  root: JsonSchema,
  doubtful: readonly SchemaPart[],
  declared: readonly JsonSchema[],
): readonly SchemaFault[] {
  if (doubtful.length === 0) return NO_FAULTS;
  const faults: SchemaFault[] = [];
  for (const { schema, path } of doubtful) {
    const within = path === '' ? '' : `${path}.`;
    addEmptyBounds(schema, within, faults);
    if (declared.includes(schema)) faults.push(...misfittingDefault({ schema, path }, root));
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

/** A default that its own schema rejects, so that it is never filled in. */
function misfittingDefault({ schema, path }: SchemaPart, root: JsonSchema): readonly SchemaFault[] {
  const { default: fallback, type } = schema;
  if (fallback === undefined) return NO_FAULTS;
  if (plainVerdict(fallback, schema) ?? fitsSchema(fallback, { schema, root })) return NO_FAULTS;
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

/** Keywords that do not constrain the value. */
const WORDS: ReadonlySet<string> = new Set(['default', 'description', 'title', 'examples', 'deprecated']);

/**
 * Whether a value matches a schema of a few simple keywords, as most schemas with defaults are; `undefined` for other
 * schemas. Creating an interpreter takes longer than it would be used.
 */
function plainVerdict(value: unknown, schema: JsonSchema): boolean | undefined {
  if (typeof value === 'object') return undefined;
  for (const name of Object.keys(schema)) {
    const limit = schema[name];
    if (name === 'type') {
      if (typeof limit !== 'string') return undefined;
      if (limit === 'integer' ? !Number.isInteger(value) : typeof value !== limit) return false;
    } else if (name === 'enum') {
      if (!Array.isArray(limit)) return undefined;
      if (!limit.includes(value)) return false;
    } else if (name === 'minimum' || name === 'maximum') {
      if (typeof value !== 'number') continue;
      if (name === 'minimum' ? value < Number(limit) : value > Number(limit)) return false;
    } else if (!WORDS.has(name)) return undefined;
  }
  return true;
}

/** The author of a schema: a person, or a library, which chooses its own formats. */
type Writer = 'author' | 'library';

/**
 * Probable mistakes in an author's schema that works: patterns that may run very long, unknown formats, and defaults
 * that are never filled in because their own schema rejects them.
 */
export function schemaWarnings(schema: JsonSchema, writer: Writer): readonly SchemaFault[] {
  const { textual } = readSchema(schema);
  const slow = textual.flatMap(slowPatterns);
  return writer === 'library'
    ? slow
    : [...slow, ...textual.flatMap(unknownFormat), ...rejectedDefaults(schema)];
}

/** Defaults that their own schema rejects: the model sees them, but no call receives them. */
export function rejectedDefaults(schema: JsonSchema): readonly SchemaFault[] {
  return readSchema(schema).doubtful.flatMap((part) =>
    misfittingDefault(part, schema).map((fault) => ({
      ...fault,
      problem: `${fault.problem}, so that it is not filled in`,
    })),
  );
}

const ONE_WAY =
  'a pattern that matches a text in one way only, without repetitions of what repeats itself, as ^a+$ for ^(a+)+$';

function slowPatterns({ schema, path }: SchemaPart): readonly SchemaFault[] {
  const { pattern, patternProperties } = schema;
  const names = isRecord(patternProperties) ? Object.keys(patternProperties) : [];
  const places = [
    ...(typeof pattern === 'string' ? [{ place: 'pattern', pattern }] : []),
    ...names.map((name) => ({ place: 'patternProperties', pattern: name })),
  ];
  return places
    .filter((found) => patternGrowth(found.pattern) === 'exponential')
    .map((found) => ({
      path: joined(path, found.place),
      problem: `is ${found.pattern.slice(0, MOST_SHOWN)}, which a text of 40 characters can keep busy for ever`,
      fix: ONE_WAY,
    }));
}

const MOST_SHOWN = 200;

function unknownFormat({ schema: { format }, path }: SchemaPart): readonly SchemaFault[] {
  if (typeof format !== 'string' || KNOWN_FORMATS.has(format)) return [];
  const near = nearestNames(format, [...KNOWN_FORMATS]);
  return [
    {
      path: joined(path, 'format'),
      problem: `is ${format.slice(0, MOST_SHOWN)}, which nobody checks`,
      fix:
        near.length > 0
          ? near.join(' or ')
          : 'a format of JSON Schema, a `pattern`, or words in the description',
    },
  ];
}

function joined(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}

const NAMES = [...KEYWORDS.keys()];
/** Keywords of other tools that look like typos: OpenAPI's `example`, and `comment`. */
const OTHERS: ReadonlySet<string> = new Set(['example', 'comment']);

/** An unknown keyword that looks like a typo of a JSON Schema keyword: it would have no effect. */
function misspeltKeyword({ name, path }: KeywordPlace): readonly SchemaFault[] {
  if (name.startsWith('x-') || OTHERS.has(name) || misspeltName(name, NAMES) === undefined) return [];
  const meant = nearestName(name, NAMES);
  // `description_de` is a longer name, not a typo.
  if (meant === undefined || (name.startsWith(meant) && name.length > meant.length + 1)) return [];
  return [
    {
      path: path === '' ? name : `${path}.${name}`,
      problem: `is no keyword of JSON Schema (did you mean \`${meant}\`?)`,
      fix: `\`${meant}\`; names of your own begin with x-`,
    },
  ];
}

/** A received schema in a usable form; or why it cannot be used. */
type ForeignSchema =
  | {
      readonly ok: true;
      /** The schema for checks: the received schema without the parts that only its sender can check. */
      readonly checked: JsonSchema;
      /** Patterns that are not checked here. */
      readonly left: readonly string[];
    }
  /** Continues "its schema …". */
  | { readonly ok: false; readonly problem: string };

const MOST_CHARACTERS = 500_000;
const MOST_PARTS = 3_000;
/** The size after every reference is replaced by its target. */
const MOST_UNFOLDED = 30_000;
/** The most patterns that are analyzed per schema, because each analysis takes time. */
const MOST_PATTERNS = 50;

/**
 * Reads an untrusted schema. Its size, depth and unfolding are limited, so that compiling and checking take little
 * time. Patterns that can run very long are left out.
 */
export function readForeignSchema(schema: unknown): ForeignSchema {
  if (!isRecord(schema)) return { ok: false, problem: 'is no object' };
  const problem = problemOf(schema);
  if (problem !== undefined) return { ok: false, problem };
  vouchFor(schema);
  const left = unsafePatterns(schema);
  return { ok: true, checked: left.size === 0 ? schema : without(schema, left), left: [...left] };
}

function problemOf(schema: JsonSchema): string | undefined {
  if (JSON.stringify(schema).length > MOST_CHARACTERS) return `has more than ${MOST_CHARACTERS} characters`;
  if (allSchemas(schema).size > MOST_PARTS) return `has more than ${MOST_PARTS} parts`;
  const [fault] = schemaFaults(schema);
  if (fault !== undefined) return `is malformed: ${fault.path} ${fault.problem}`.slice(0, 500);
  if (validatesItselfAgain(schema)) return 'refers to itself without getting anywhere';
  return unfolded(schema, { root: schema, known: new Map() }) > MOST_UNFOLDED
    ? `unfolds to more than ${MOST_UNFOLDED} parts`
    : undefined;
}

interface Unfolding {
  readonly root: JsonSchema;
  readonly known: Map<JsonSchema, number>;
}

/** The number of parts of a schema if each reference counts as its target; a recursive reference counts as one. */
function unfolded(schema: JsonSchema, of: Unfolding): number {
  const before = of.known.get(schema);
  if (before !== undefined) return before;
  of.known.set(schema, 1);
  let parts = 1;
  eachSubschema(schema, ({ node, keyword }) => {
    if (isSchemaNode(node) && keyword.validates !== undefined) parts += unfolded(node, of);
  });
  const target = referredSchema(schema, of.root);
  if (target !== undefined) parts += unfolded(target, of);
  of.known.set(schema, parts);
  return parts;
}

function unsafePatterns(root: JsonSchema): ReadonlySet<string> {
  const patterns = new Set<string>();
  for (const { pattern, patternProperties } of allSchemas(root)) {
    if (typeof pattern === 'string') patterns.add(pattern);
    if (isRecord(patternProperties)) for (const name of Object.keys(patternProperties)) patterns.add(name);
  }
  return new Set(
    [...patterns].filter((pattern, index) => index >= MOST_PATTERNS || patternGrowth(pattern) !== 'linear'),
  );
}

/**
 * Removes patterns. Without the pattern of some properties, it is unknown which properties are "others", so
 * constraints on the others are removed too.
 */
function without(schema: JsonSchema, left: ReadonlySet<string>): JsonSchema {
  const { pattern, patternProperties, additionalProperties, unevaluatedProperties, ...others } =
    mapSubschemas(schema, (part) => without(part, left));
  const byPattern = isRecord(patternProperties) ? Object.entries(patternProperties) : [];
  const kept = byPattern.filter(([name]) => !left.has(name));
  return {
    ...others,
    ...(typeof pattern !== 'string' || left.has(pattern) ? {} : { pattern }),
    ...(kept.length === 0 ? {} : { patternProperties: Object.fromEntries(kept) }),
    ...(kept.length < byPattern.length
      ? {}
      : {
          ...(additionalProperties === undefined ? {} : { additionalProperties }),
          ...(unevaluatedProperties === undefined ? {} : { unevaluatedProperties }),
        }),
  };
}
