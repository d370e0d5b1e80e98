import type { JsonSchema } from '../../core/contract/json-schema.js';
import { cached } from '../../core/kernel/cached.js';
import { childPath, filterFields, isRecord } from '../../core/kernel/json.js';
import { misspeltName, nearestName, nearestNames } from '../../core/kernel/nearest-name.js';
import { nodeUtil } from '../../core/kernel/node-module.js';
import {
  allSchemas,
  type Draft,
  draftOf,
  findReference,
  isKnownIn,
  isSchemaNode,
  KEYWORD_RULES,
  KEYWORDS,
  type KeywordValue,
  mapSubschemas,
  reachableSchemas,
  schemaPlaces,
} from '../schema/keywords.js';
import { KNOWN_FORMATS } from './formats.js';
import { fitsSchema } from './interpreter/interpret-schema.js';
import { referredSchema, validatesItselfAgain } from './interpreter/whole-schema.js';
import { patternGrowth } from './patterns.js';
import { endOfReferences } from './schema-level.js';

/** A fault of a schema, and the fix. */
export interface SchemaFault {
  /** `properties.a.type`; empty for the schema itself. */
  readonly path: string;
  /** Continues "it …". */
  readonly problem: string;
  readonly fix: string;
}

/** A deeper schema is unreadable, and checking it would overflow the stack. */
const MOST_LEVELS = 200;
/** Enough to find the cause; a list of thousands does not help. */
const MOST_FAULTS = 50;

const known = new WeakMap<object, ReadSchema>();

/** The result of analyzing a whole schema. */
interface ReadSchema {
  readonly faults: readonly SchemaFault[];
  /** References that lead back to themselves; the validator would accept every value. */
  readonly circular: readonly SchemaFault[];
  /** Parts with a default or a bound, which may contradict themselves. */
  readonly doubtful: readonly SchemaPart[];
  /** Parts with a pattern or a format. */
  readonly textual: readonly SchemaPart[];
  /** Positions of unknown keywords. */
  readonly unknown: readonly KeywordPlace[];
}

/** A keyword and its position. */
interface KeywordPlace {
  readonly name: string;
  readonly path: string;
}

/** A subschema and its position. */
interface SchemaPart {
  readonly schema: JsonSchema;
  readonly path: string;
}

/**
 * All faults that the validator would report for a schema, found with the keyword table. This takes a small fraction
 * of the time of compiling, and is done once for each schema.
 */
export function schemaFaults(schema: unknown): readonly SchemaFault[] {
  if (isSchemaNode(schema)) return readSchema(schema).faults;
  return KEYWORD_RULES['a schema'].accepts(schema) ? [] : [misfit('', schema, 'a schema')];
}

/** Analyzes a whole schema, once. */
function readSchema(schema: JsonSchema): ReadSchema {
  return cached(known, schema, () => new SchemaReading(schema).read());
}

const TEXTUAL: ReadonlySet<string> = new Set(['pattern', 'format', 'patternProperties']);

/** A schema that is being read. */
interface Reading extends SchemaPart {
  readonly level: number;
}

/** Faults that matter only if their schema is used. */
type FaultsInUse = (readonly [schema: JsonSchema, fault: SchemaFault])[];

class SchemaReading {
  readonly #root: JsonSchema;
  readonly #draft: Draft;
  readonly #seen = new Set<JsonSchema>();
  readonly #open: Reading[] = [];
  readonly #faults: SchemaFault[] = [];
  readonly #inUse: FaultsInUse = [];
  readonly #circular: FaultsInUse = [];
  readonly #doubtful: SchemaPart[] = [];
  readonly #textual: SchemaPart[] = [];
  readonly #unknown: KeywordPlace[] = [];

  constructor(root: JsonSchema) {
    this.#root = root;
    this.#draft = draftOf(root);
  }

  read(): ReadSchema {
    this.#enter({ schema: this.#root, path: '', level: 0 });
    for (const next of this.#open) {
      if (this.#faults.length >= MOST_FAULTS) break;
      this.#read(next);
    }
    const used = this.#inUse.length + this.#circular.length > 0 ? usedParts(this.#root) : undefined;
    for (const [schema, fault] of this.#inUse) if (used?.has(schema)) this.#faults.push(fault);
    const circular = this.#circular.filter(([schema]) => used?.has(schema)).map(([, fault]) => fault);
    return {
      faults: this.#faults.slice(0, MOST_FAULTS),
      circular: circular.slice(0, MOST_FAULTS),
      doubtful: this.#doubtful,
      textual: this.#textual,
      unknown: this.#unknown,
    };
  }

  #enter(reading: Reading): void {
    if (this.#seen.has(reading.schema)) return;
    this.#seen.add(reading.schema);
    if (reading.level <= MOST_LEVELS) this.#open.push(reading);
    else
      this.#faults.push({
        path: `${reading.path.slice(0, 100)}…`,
        problem: 'is nested too deep',
        fix: `at most ${MOST_LEVELS} levels`,
      });
  }

  #read(reading: Reading): void {
    const { schema, path, level } = reading;
    let isDoubtful = false;
    let isTextual = false;
    for (const [name, value] of Object.entries(schema)) {
      const keyword = KEYWORDS.get(name);
      if (keyword === undefined) this.#unknown.push({ name, path });
      if (keyword === undefined || value === undefined) continue;
      isDoubtful ||= name === 'default' || keyword.upTo !== undefined;
      isTextual ||= TEXTUAL.has(name);
      if (!isKnownIn(this.#draft, keyword)) continue;
      if (!KEYWORD_RULES[keyword.takes].accepts(value))
        this.#faults.push(misfit(childPath(path, name), value, keyword.takes));
    }
    if (isDoubtful) this.#doubtful.push(reading);
    if (isTextual) this.#textual.push(reading);
    const { nullable, type, $ref } = schema;
    const types = [type ?? []].flat();
    if (nullable !== undefined && (types.length === 0 || (nullable === false && types.includes('null'))))
      this.#inUse.push([
        schema,
        {
          path: childPath(path, 'nullable'),
          problem: types.length === 0 ? 'has no `type` next to it' : 'is false, but `type` includes null',
          fix: "type: ['string', 'null'], or a branch { type: 'null' }",
        },
      ]);
    for (const { node, name, keyword, key } of schemaPlaces(schema)) {
      if (!isKnownIn(this.#draft, keyword)) continue;
      const place = key === undefined ? childPath(path, name) : `${childPath(path, name)}.${key}`;
      if (keyword.takes === 'schemas by pattern' && !KEYWORD_RULES['a pattern'].accepts(key))
        this.#faults.push(misfit(place, key, 'a pattern'));
      const isListed =
        keyword.takes === 'schemas or lists of names, by name' && KEYWORD_RULES.names.accepts(node);
      if (isSchemaNode(node)) this.#enter({ schema: node, path: place, level: level + 1 });
      else if (key !== undefined && !KEYWORD_RULES['a schema'].accepts(node) && !isListed)
        this.#faults.push(misfit(place, node, 'a schema'));
    }
    if (typeof $ref !== 'string') return;
    // The targets of references may be in places that are not schemas.
    const target = findReference($ref, this.#root, schema);
    if (isSchemaNode(target)) this.#enter({ schema: target, path: $ref, level: level + 1 });
    const isNowhere = target === undefined && !JSON_SCHEMA.test($ref);
    if (!isNowhere && endOfReferences(schema, this.#root) !== undefined) return;
    const fault = {
      path: childPath(path, '$ref'),
      problem: `is ${shown($ref)}, which leads ${isNowhere ? 'nowhere' : 'back to itself'}`,
      fix: "a reference to another part of the schema, such as '#/$defs/Item'",
    };
    (isNowhere ? this.#inUse : this.#circular).push([schema, fault]);
  }
}

/** The parts of a schema that validate values: not unused definitions, and not `then` without `if`. */
function usedParts(root: JsonSchema): ReadonlySet<JsonSchema> {
  return reachableSchemas([root], (schema) => [
    ...schemaPlaces(schema).flatMap(({ node, name, keyword }) =>
      keyword.validates === undefined || isIdle(name, schema) ? [] : [node],
    ),
    typeof schema.$ref === 'string' && findReference(schema.$ref, root, schema),
  ]);
}

function isIdle(name: string, schema: JsonSchema): boolean {
  const { if: condition, then: follows, else: otherwise, items, minContains, maxContains } = schema;
  switch (name) {
    case 'if':
      return follows === undefined && otherwise === undefined;
    case 'then':
    case 'else':
      return condition === undefined;
    case 'additionalItems':
      return !Array.isArray(items);
    case 'contains':
      return minContains === 0 && maxContains === undefined;
    default:
      return false;
  }
}

/** The meta-schemas, which the validator contains. */
const JSON_SCHEMA =
  /^(?:http:\/\/json-schema\.org\/draft-07|https:\/\/json-schema\.org\/draft\/20(?:19-09|20-12))\//;

function misfit(path: string, value: unknown, wanted: KeywordValue): SchemaFault {
  return { path, problem: `is ${shown(value)}`, fix: KEYWORD_RULES[wanted].fix };
}

function shown(value: unknown): string {
  return nodeUtil().inspect(value, {
    depth: 1,
    breakLength: Number.POSITIVE_INFINITY,
    maxStringLength: 80,
    maxArrayLength: 5,
  });
}

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
  const { faults: malformed, circular, doubtful, unknown } = readSchema(schema);
  const faults = [...malformed];
  for (const { name, path } of unknown) {
    // A keyword that looks like a typo would have no effect.
    if (name.startsWith('x-') || OTHERS.has(name) || misspeltName(name, NAMES) === undefined) continue;
    const meant = nearestName(name, NAMES);
    // `description_de` is a longer name, not a typo.
    if (meant === undefined || (name.startsWith(meant) && name.length > meant.length + 1)) continue;
    faults.push({
      path: childPath(path, name),
      problem: `is not a keyword of JSON Schema (did you mean \`${meant}\`?)`,
      fix: `\`${meant}\`; your own keywords must begin with x-`,
    });
  }
  if (malformed.length > 0) return faults;
  faults.push(...circular);
  for (const part of doubtful) {
    for (const name of Object.keys(part.schema)) {
      const upTo = KEYWORDS.get(name)?.upTo;
      const [least, most] = [Number(part.schema[name]), Number(upTo && part.schema[upTo])];
      if (!(least > most)) continue;
      const problem = `is ${least}, above its \`${upTo}\` of ${most}: no value fits`;
      faults.push({ path: childPath(part.path, name), problem, fix: `a ${name} of at most ${most}` });
    }
    if (declared.includes(part.schema)) faults.push(...misfittingDefault(part, schema));
  }
  if (faults.length === 0) sound.add(schema);
  return faults;
}

const NAMES = [...KEYWORDS.keys()];
/** Keywords of other tools that look like typos: OpenAPI's `example`, and `comment`. */
const OTHERS: ReadonlySet<string> = new Set(['example', 'comment']);

/** Writes a fault as a sentence about a tool: "`properties.a.type` of its `parameters` is …". */
export function describeSchemaFault({ path, problem, fix }: SchemaFault, what: string) {
  const place = path === '' ? `its \`${what}\`` : `\`${path}\` of its \`${what}\``;
  return { problem: `${place} ${problem}`, fix };
}

/** A default that its own schema rejects, so that it is never filled in. */
function misfittingDefault({ schema, path }: SchemaPart, root: JsonSchema): readonly SchemaFault[] {
  const { default: fallback, type } = schema;
  if (fallback === undefined || fitsSchema(fallback, schema, root)) return [];
  return [
    {
      path: childPath(path, 'default'),
      problem: `is ${shown(fallback)}, which its own schema does not accept`,
      fix:
        fallback === null && type !== undefined
          ? 'no default, or a type that includes null'
          : 'a default that fits',
    },
  ];
}

/**
 * Probable mistakes in an author's schema that works: patterns that may run very long, unknown formats, and defaults
 * that are never filled in because their own schema rejects them. A library chooses its own formats.
 */
export function schemaWarnings(schema: JsonSchema, writer: 'author' | 'library'): readonly SchemaFault[] {
  const { textual } = readSchema(schema);
  const warnings: SchemaFault[] = [];
  for (const { schema: part, path } of textual)
    for (const { keyword, pattern } of patternsOf(part))
      if (patternGrowth(pattern) === 'exponential')
        warnings.push({
          path: childPath(path, keyword),
          problem: `is ${pattern.slice(0, MOST_SHOWN)}, which takes practically unlimited time for a string of 40 characters`,
          fix: 'a pattern with only one way to match, e.g. ^a+$ instead of ^(a+)+$',
        });
  if (writer === 'library') return warnings;
  for (const { schema: part, path } of textual) {
    const { format } = part;
    if (typeof format !== 'string' || KNOWN_FORMATS.has(format)) continue;
    const near = nearestNames(format, [...KNOWN_FORMATS]);
    warnings.push({
      path: childPath(path, 'format'),
      problem: `is ${format.slice(0, MOST_SHOWN)}, which is not checked`,
      fix:
        near.length > 0
          ? near.join(' or ')
          : 'a format of JSON Schema, a `pattern`, or a sentence in the description',
    });
  }
  return [...warnings, ...rejectedDefaults(schema)];
}

const MOST_SHOWN = 200;

/** Defaults that their own schema rejects: the model sees them, but no call receives them. */
export function rejectedDefaults(schema: JsonSchema): readonly SchemaFault[] {
  return readSchema(schema).doubtful.flatMap((part) =>
    misfittingDefault(part, schema).map((fault) => ({
      ...fault,
      problem: `${fault.problem}, so it is not applied`,
    })),
  );
}

/** The regular expressions of a schema. */
function patternsOf({ pattern, patternProperties }: JsonSchema) {
  const names = isRecord(patternProperties) ? Object.keys(patternProperties) : [];
  return [
    ...(typeof pattern === 'string' ? [{ keyword: 'pattern', pattern }] : []),
    ...names.map((name) => ({ keyword: 'patternProperties', pattern: name })),
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
  if (!isRecord(schema)) return { ok: false, problem: 'is not an object' };
  const problem = problemOf(schema);
  if (problem !== undefined) return { ok: false, problem };
  sound.add(schema);
  const patterns = new Set([...allSchemas(schema)].flatMap(patternsOf).map(({ pattern }) => pattern));
  const left = new Set(
    [...patterns].filter((pattern, index) => index >= MOST_PATTERNS || patternGrowth(pattern) !== 'linear'),
  );
  return { ok: true, checked: left.size === 0 ? schema : without(schema, left), left: [...left] };
}

function problemOf(schema: JsonSchema): string | undefined {
  if (JSON.stringify(schema).length > MOST_CHARACTERS) return `has more than ${MOST_CHARACTERS} characters`;
  if (allSchemas(schema).size > MOST_PARTS) return `has more than ${MOST_PARTS} parts`;
  const [fault] = schemaFaults(schema);
  if (fault !== undefined) return `is malformed: ${fault.path} ${fault.problem}`.slice(0, 500);
  if (validatesItselfAgain(schema)) return 'refers to itself without end';
  return unfolded(schema, schema) > MOST_UNFOLDED ? `expands to more than ${MOST_UNFOLDED} parts` : undefined;
}

/** The number of parts of a schema if each reference counts as its target; a recursive reference counts as one. */
function unfolded(schema: JsonSchema, root: JsonSchema, known = new Map<JsonSchema, number>()): number {
  const before = known.get(schema);
  if (before !== undefined) return before;
  known.set(schema, 1);
  let parts = 1;
  for (const { node, keyword } of schemaPlaces(schema))
    if (isSchemaNode(node) && keyword.validates !== undefined) parts += unfolded(node, root, known);
  const target = referredSchema(schema, root);
  if (target !== undefined) parts += unfolded(target, root, known);
  known.set(schema, parts);
  return parts;
}

/**
 * Removes patterns. Without the pattern of some properties, it is unknown which properties are "others", so
 * constraints on the others are removed too.
 */
function without(schema: JsonSchema, left: ReadonlySet<string>): JsonSchema {
  const { pattern, patternProperties, ...others } = mapSubschemas(schema, (part) => without(part, left));
  const byPattern = isRecord(patternProperties) ? patternProperties : {};
  const kept = filterFields(byPattern, (name) => !left.has(name));
  const [before, after] = [Object.keys(byPattern).length, Object.keys(kept).length];
  return {
    ...filterFields(others, (name) => after === before || !OF_OTHERS.includes(name)),
    ...(typeof pattern !== 'string' || left.has(pattern) ? {} : { pattern }),
    ...(after === 0 ? {} : { patternProperties: kept }),
  };
}

const OF_OTHERS = ['additionalProperties', 'unevaluatedProperties'];
