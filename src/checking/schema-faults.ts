import { inspect } from 'node:util';
import type { JsonSchema } from '../contract/json-schema.js';
import { findReference } from '../schema/find-reference.js';
import { type Draft, eachSubschema, isSchemaNode, KEYWORDS, type Keyword } from '../schema/keywords.js';
import { draftOf } from './draft-of.js';
import { isNameList, isPattern, isSchema, KEYWORD_RULES } from './keyword-rules.js';

/** What keeps a schema from being used, and what to write there. */
export interface SchemaFault {
  /** `properties.a.type`; empty for the schema itself. */
  readonly path: string;
  /** Continues "it …". */
  readonly problem: string;
  readonly fix: string;
}

/** Who writes a schema that deep lets nobody read it, and its checks would need more stack than there is. */
const MOST_LEVELS = 200;
/** Enough to mend; a list of thousands helps nobody. */
const MOST_FAULTS = 50;

const known = new WeakMap<object, readonly SchemaFault[]>();

/**
 * Everything that the validator would refuse in a schema, told by the table of keywords: it takes a small
 * fraction of what compiling the schema would, and is done once for each.
 */
export function schemaFaults(schema: unknown): readonly SchemaFault[] {
  if (!isSchemaNode(schema))
    return isSchema(schema) ? [] : [misfit('', schema, KEYWORD_RULES['a schema'].what)];
  const before = known.get(schema);
  if (before !== undefined) return before;
  const faults = new SchemaReading(schema).faults();
  known.set(schema, faults);
  return faults;
}

/** A schema on its way to be read, and where it stands. */
interface Reading {
  readonly schema: JsonSchema;
  readonly path: string;
  readonly level: number;
}

class SchemaReading {
  readonly #root: JsonSchema;
  readonly #draft: Draft;
  readonly #faults: SchemaFault[] = [];
  readonly #seen = new Set<JsonSchema>();
  readonly #open: Reading[] = [];
  /** References that lead nowhere. */
  readonly #dangling: Reading[] = [];

  constructor(root: JsonSchema) {
    this.#root = root;
    this.#draft = draftOf(root);
  }

  faults(): readonly SchemaFault[] {
    this.#enter({ schema: this.#root, path: '', level: 0 });
    for (const next of this.#open) {
      if (this.#faults.length >= MOST_FAULTS) break;
      this.#read(next);
    }
    if (this.#dangling.length > 0) this.#tellDangling();
    return this.#faults.slice(0, MOST_FAULTS);
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
    const { schema, path } = reading;
    for (const [name, value] of Object.entries(schema)) {
      const keyword = KEYWORDS.get(name);
      if (keyword === undefined || value === undefined || !isKnownIn(this.#draft, keyword)) continue;
      const { accepts, what } = KEYWORD_RULES[keyword.takes];
      if (!accepts(value)) this.#faults.push(misfit(joined(path, name), value, what));
    }
    this.#faults.push(...nullableFaults(reading));
    eachSubschema(schema, ({ node, name, keyword, key }) => {
      if (!isKnownIn(this.#draft, keyword)) return;
      const place = key === undefined ? joined(path, name) : `${joined(path, name)}.${key}`;
      if (keyword.takes === 'schemas by pattern' && !isPattern(key))
        this.#faults.push(misfit(place, key, KEYWORD_RULES['a pattern'].what));
      if (isSchemaNode(node)) this.#enter({ schema: node, path: place, level: reading.level + 1 });
      else if (key !== undefined && !isSchema(node) && !isListed(node, keyword))
        this.#faults.push(misfit(place, node, KEYWORD_RULES['a schema'].what));
    });
    this.#follow(reading);
  }

  /** Where a reference leads is read too: it may be no position of schemas. */
  #follow({ schema, path, level }: Reading): void {
    if (typeof schema.$ref !== 'string') return;
    const target = findReference(schema.$ref, { root: this.#root, from: schema });
    if (isSchemaNode(target)) this.#enter({ schema: target, path: schema.$ref, level: level + 1 });
    else if (target === undefined && !JSON_SCHEMA.test(schema.$ref))
      this.#dangling.push({ schema, path: joined(path, '$ref'), level });
  }

  /** In definitions that nothing refers to, they do no harm. */
  #tellDangling(): void {
    const used = usedParts(this.#root);
    for (const { schema, path } of this.#dangling) {
      if (!used.has(schema)) continue;
      const problem = `is ${shown(schema.$ref)}, which leads nowhere`;
      this.#faults.push({ path, problem, fix: "a reference within the schema, such as '#/$defs/Item'" });
    }
  }
}

/** What of a schema judges anything: all but definitions that nothing refers to. */
function usedParts(root: JsonSchema): ReadonlySet<JsonSchema> {
  const used = new Set<JsonSchema>([root]);
  for (const schema of used) {
    eachSubschema(schema, ({ node, keyword }) => {
      if (isSchemaNode(node) && keyword.judges !== undefined) used.add(node);
    });
    const target =
      typeof schema.$ref === 'string' ? findReference(schema.$ref, { root, from: schema }) : undefined;
    if (isSchemaNode(target)) used.add(target);
  }
  return used;
}

/** JSON Schema itself, which the validator brings. */
const JSON_SCHEMA = /^https?:\/\/json-schema\.org\//;

function nullableFaults({ schema, path }: Reading): readonly SchemaFault[] {
  const { nullable, type } = schema;
  if (nullable === undefined) return [];
  const types = [type ?? []].flat();
  if (types.length > 0 && !(nullable === false && types.includes('null'))) return [];
  return [
    {
      path: joined(path, 'nullable'),
      problem: types.length === 0 ? 'has no `type` beside it' : 'is false, and `type` has null',
      fix: "type: ['string', 'null'], or a branch { type: 'null' }",
    },
  ];
}

function isListed(node: unknown, { takes }: Keyword): boolean {
  return takes === 'schemas or lists of names, by name' && isNameList(node);
}

const DRAFTS: readonly Draft[] = ['7', '2019-09', '2020-12'];

function isKnownIn(draft: Draft, { since = '7', until = '2020-12' }: Keyword): boolean {
  const at = DRAFTS.indexOf(draft);
  return DRAFTS.indexOf(since) <= at && at <= DRAFTS.indexOf(until);
}

function misfit(path: string, value: unknown, what: string): SchemaFault {
  return { path, problem: `is ${shown(value)}`, fix: what };
}

function joined(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}

function shown(value: unknown): string {
  return inspect(value, {
    depth: 1,
    breakLength: Number.POSITIVE_INFINITY,
    maxStringLength: 80,
    maxArrayLength: 5,
  });
}
