import type { JsonSchema } from '../contract/json-schema.js';
import { isRecord } from '../kernel/json.js';
import { allSchemas, eachSubschema, isSchemaNode, mapSubschemas } from '../schema/keywords.js';
import { vouchFor } from './author-schema.js';
import { judgesItselfAgain, referredSchema } from './interpreter/whole-schema.js';
import { isSafePattern } from './patterns.js';
import { schemaFaults } from './schema-faults.js';

/** A schema that somebody else sent, as it can be used; or why it cannot. */
type ForeignSchema =
  | {
      readonly ok: true;
      /** What values are checked against: the very schema, unless something is left to who sent it. */
      readonly checked: JsonSchema;
      /** Patterns that are not checked here. */
      readonly left: readonly string[];
    }
  /** Continues "its schema …". */
  | { readonly ok: false; readonly problem: string };

const MOST_CHARACTERS = 500_000;
const MOST_PARTS = 3_000;
/** With every reference replaced by what it refers to. */
const MOST_UNFOLDED = 30_000;
/** Patterns that one schema may have looked at; each look takes time. */
const MOST_PATTERNS = 50;

/**
 * Reads a schema that is not the author's own: within bounds of size, depth and unfolding, so that compiling
 * and checking take little time, and without patterns that a text can make run for ever.
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
  if (judgesItselfAgain(schema)) return 'refers to itself without getting anywhere';
  return unfolded(schema, { root: schema, known: new Map() }) > MOST_UNFOLDED
    ? `unfolds to more than ${MOST_UNFOLDED} parts`
    : undefined;
}

interface Unfolding {
  readonly root: JsonSchema;
  readonly known: Map<JsonSchema, number>;
}

/** How many parts a schema has where each reference counts as what it refers to; itself within counts as one. */
function unfolded(schema: JsonSchema, of: Unfolding): number {
  const before = of.known.get(schema);
  if (before !== undefined) return before;
  of.known.set(schema, 1);
  let parts = 1;
  eachSubschema(schema, ({ node, keyword }) => {
    if (isSchemaNode(node) && keyword.judges !== undefined) parts += unfolded(node, of);
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
  return new Set([...patterns].filter((pattern, index) => index >= MOST_PATTERNS || !isSafePattern(pattern)));
}

/** Who is judged by a pattern's schema is not known without the pattern: what is said of all others falls too. */
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
