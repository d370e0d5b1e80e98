import type { JsonSchema } from '../../contract/json-schema.js';
import { isRecord } from '../../kernel/json.js';
import { findReference } from '../find-reference.js';
import { isSchemaNode, KEYWORDS } from '../keywords.js';

const ANYTHING: JsonSchema = {};
const NOTHING: JsonSchema = { not: {} };

/** What stands where a schema should, as one. */
export function asSchema(node: unknown): JsonSchema {
  if (isSchemaNode(node)) return node;
  return node === false ? NOTHING : ANYTHING;
}

/** Keywords that judge nothing. */
const SILENT: ReadonlySet<string> = new Set([
  ...['$id', '$schema', '$comment', '$anchor', '$dynamicAnchor', '$recursiveAnchor', '$defs', 'definitions'],
  ...['title', 'description', 'default', 'examples', 'deprecated', 'readOnly', 'writeOnly', '$async'],
]);

/** Whether a schema judges anything. */
function judges(schema: JsonSchema): boolean {
  return Object.keys(schema).some((keyword) => KEYWORDS.has(keyword) && !SILENT.has(keyword));
}

/** All that has to hold for one value: what references and `allOf` lead to, each part without them. */
interface Conjunction {
  readonly parts: readonly JsonSchema[];
  /** Schemas that judge nothing, and only say something of this place. */
  readonly remarks: readonly JsonSchema[];
}

/** Reads schemas that hold together; tells of references that cannot be followed. */
export class ConjunctionReader {
  readonly #root: JsonSchema;
  readonly #tellFault: (problem: string) => void;
  readonly #stripped = new WeakMap<JsonSchema, Map<string, JsonSchema>>();

  constructor(root: JsonSchema, tellFault: (problem: string) => void) {
    this.#root = root;
    this.#tellFault = tellFault;
  }

  read(schemas: readonly JsonSchema[]): Conjunction {
    const seen = new Set<JsonSchema>();
    const path = new Set<JsonSchema>();
    const parts: JsonSchema[] = [];
    const remarks: JsonSchema[] = [];
    const visit = (schema: JsonSchema): void => {
      if (path.has(schema)) this.#tellFault('a reference leads to itself');
      if (seen.has(schema)) return;
      seen.add(schema);
      path.add(schema);
      const { own, inner } = this.#split(schema);
      (judges(own) ? parts : remarks).push(own);
      for (const part of inner) visit(part);
      path.delete(schema);
    };
    for (const schema of schemas) visit(schema);
    return { parts, remarks };
  }

  /** The schema without some of its keywords: always the same object, so that it is known again. */
  without(schema: JsonSchema, keywords: readonly string[]): JsonSchema {
    if (!keywords.some((keyword) => keyword in schema)) return schema;
    const known = this.#stripped.get(schema) ?? new Map<string, JsonSchema>();
    this.#stripped.set(schema, known);
    const key = keywords.join();
    const entries = Object.entries(schema).filter(([keyword]) => !keywords.includes(keyword));
    const stripped = known.get(key) ?? Object.fromEntries(entries);
    known.set(key, stripped);
    return stripped;
  }

  /** The parts without what they only say, those that judge nothing left out. */
  judging(parts: readonly JsonSchema[]): readonly JsonSchema[] {
    return parts.filter(judges).map((part) => this.without(part, [...SILENT]));
  }

  #split(schema: JsonSchema): { readonly own: JsonSchema; readonly inner: readonly JsonSchema[] } {
    const { $ref, allOf } = schema;
    const inner: JsonSchema[] = [];
    const taken = ['$ref', 'allOf'];
    if (typeof $ref === 'string') inner.push(this.#target($ref, schema));
    if (Array.isArray(allOf)) inner.push(...allOf.map(asSchema));
    for (const keyword of ['anyOf', 'oneOf'] as const) {
      const branches = schema[keyword];
      if (!Array.isArray(branches) || branches.length !== 1) continue;
      inner.push(asSchema(branches[0]));
      taken.push(keyword);
    }
    for (const keyword of ['$dynamicRef', '$recursiveRef'])
      if (keyword in schema) this.#tellFault(`${keyword} depends on where the schema is used`);
    return { own: this.without(schema, taken), inner };
  }

  #target(reference: string, from: JsonSchema): JsonSchema {
    const target = findReference(reference, { root: this.#root, from });
    if (target === undefined) this.#tellFault(`the reference ${reference} leads nowhere within the schema`);
    return asSchema(target);
  }
}

/** Whether a part refuses everything. */
export function refusesAll(parts: readonly JsonSchema[]): boolean {
  return parts.some(({ not }) => not === true || (isRecord(not) && !judges(not)));
}
