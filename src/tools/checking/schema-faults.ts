import type { JsonSchema } from '../../core/contract/json-schema.js';
import { isRecord } from '../../core/kernel/json.js';
import { nodeUtil } from '../../core/kernel/node-module.js';
import { findReference } from '../schema/find-reference.js';
import {
  allSchemas,
  type Draft,
  eachSubschema,
  holdsSchemas,
  isKnownIn,
  isSchemaNode,
  KEYWORDS,
  type Keyword,
  type KeywordValue,
} from '../schema/keywords.js';

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
  /** Parts with a default or a bound, which may contradict themselves. */
  readonly doubtful: readonly SchemaPart[];
  /** Parts with a pattern or a format. */
  readonly textual: readonly SchemaPart[];
  /** Positions of unknown keywords. */
  readonly unknown: readonly KeywordPlace[];
}

/** A keyword and its position. */
export interface KeywordPlace {
  readonly name: string;
  readonly path: string;
}

/** A subschema and its position. */
export interface SchemaPart {
  readonly schema: JsonSchema;
  readonly path: string;
}

/**
 * All faults that the validator would report for a schema, found with the keyword table. This takes a small fraction
 * of the time of compiling, and is done once for each schema.
 */
export function schemaFaults(schema: unknown): readonly SchemaFault[] {
  if (isSchemaNode(schema)) return readSchema(schema).faults;
  return isSchema(schema) ? [] : [misfit('', schema, KEYWORD_RULES['a schema'].what)];
}

const NOTHING: ReadSchema = { faults: [], doubtful: [], textual: [], unknown: [] };

/** Analyzes a whole schema, once. */
export function readSchema(schema: JsonSchema): ReadSchema {
  const before = known.get(schema);
  if (before !== undefined) return before;
  const read =
    new SchemaReading(schema, saidDraft(schema) ?? '2020-12').read() ??
    new SchemaReading(schema, draftOf(schema)).read() ??
    NOTHING;
  known.set(schema, read);
  return read;
}

const TEXTUAL: ReadonlySet<string> = new Set(['pattern', 'format', 'patternProperties']);

/** A schema that is being read. */
interface Reading extends SchemaPart {
  readonly level: number;
}

class SchemaReading {
  readonly #root: JsonSchema;
  readonly #draft: Draft;
  readonly #faults: SchemaFault[] = [];
  readonly #seen = new Set<JsonSchema>();
  readonly #open: Reading[] = [];
  /** Faults that matter only if the schema is used. */
  readonly #inUse: { readonly schema: JsonSchema; readonly fault: SchemaFault }[] = [];

  readonly #doubtful: SchemaPart[] = [];
  readonly #textual: SchemaPart[] = [];
  readonly #unknown: KeywordPlace[] = [];
  /** The schema has keywords of another draft than assumed. */
  #isMistaken = false;

  constructor(root: JsonSchema, draft: Draft) {
    this.#root = root;
    this.#draft = draft;
  }

  /** `undefined` if the schema is of another draft. */
  read(): ReadSchema | undefined {
    this.#enter({ schema: this.#root, path: '', level: 0 });
    for (const next of this.#open) {
      if (this.#faults.length >= MOST_FAULTS) break;
      this.#read(next);
    }
    if (this.#inUse.length > 0) {
      const used = usedParts(this.#root);
      this.#faults.push(...this.#inUse.flatMap(({ schema, fault }) => (used.has(schema) ? [fault] : [])));
    }
    if (this.#isMistaken) return undefined;
    const faults = this.#faults.slice(0, MOST_FAULTS);
    return { faults, doubtful: this.#doubtful, textual: this.#textual, unknown: this.#unknown };
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
    let isDoubtful = false;
    let isTextual = false;
    let isHolding = false;
    for (const name of Object.keys(schema)) {
      const keyword = KEYWORDS.get(name);
      const value = schema[name];
      if (keyword === undefined) this.#unknown.push({ name, path });
      if (keyword === undefined || value === undefined) continue;
      if (this.#draft === '2020-12' && belongsToEarlier(name, value)) this.#isMistaken = true;
      isDoubtful ||= name === 'default' || keyword.upTo !== undefined;
      isTextual ||= TEXTUAL.has(name);
      isHolding ||= holdsSchemas(name);
      if (!isKnownIn(this.#draft, keyword)) continue;
      const { accepts, what } = KEYWORD_RULES[keyword.takes];
      if (!accepts(value)) this.#faults.push(misfit(joined(path, name), value, what));
    }
    if (isDoubtful) this.#doubtful.push(reading);
    if (isTextual) this.#textual.push(reading);
    if (schema.nullable !== undefined)
      this.#inUse.push(...nullableFaults(reading).map((fault) => ({ schema, fault })));
    if (isHolding) this.#enterParts(reading);
    this.#follow(reading);
  }

  #enterParts({ schema, path, level }: Reading): void {
    eachSubschema(schema, ({ node, name, keyword, key }) => {
      if (!isKnownIn(this.#draft, keyword)) return;
      const place = key === undefined ? joined(path, name) : `${joined(path, name)}.${key}`;
      if (keyword.takes === 'schemas by pattern' && !isPattern(key))
        this.#faults.push(misfit(place, key, KEYWORD_RULES['a pattern'].what));
      if (isSchemaNode(node)) this.#enter({ schema: node, path: place, level: level + 1 });
      else if (key !== undefined && !isSchema(node) && !isListed(node, keyword))
        this.#faults.push(misfit(place, node, KEYWORD_RULES['a schema'].what));
    });
  }

  /** Also reads the targets of references, which may be in places that are not schemas. */
  #follow({ schema, path, level }: Reading): void {
    if (typeof schema.$ref !== 'string') return;
    const target = findReference(schema.$ref, { root: this.#root, from: schema });
    if (isSchemaNode(target)) this.#enter({ schema: target, path: schema.$ref, level: level + 1 });
    else if (target === undefined && !JSON_SCHEMA.test(schema.$ref)) {
      const problem = `is ${shown(schema.$ref)}, which leads nowhere`;
      const fix = "a reference within the schema, such as '#/$defs/Item'";
      this.#inUse.push({ schema, fault: { path: joined(path, '$ref'), problem, fix } });
    }
  }
}

/** The parts of a schema that validate values: not unused definitions, and not `then` without `if`. */
function usedParts(root: JsonSchema): ReadonlySet<JsonSchema> {
  const used = new Set<JsonSchema>([root]);
  for (const schema of used) {
    eachSubschema(schema, ({ node, name, keyword }) => {
      if (isSchemaNode(node) && keyword.validates !== undefined && !isIdle(name, schema)) used.add(node);
    });
    const target =
      typeof schema.$ref === 'string' ? findReference(schema.$ref, { root, from: schema }) : undefined;
    if (isSchemaNode(target)) used.add(target);
  }
  return used;
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

function nullableFaults({ schema, path }: Reading): readonly SchemaFault[] {
  const { nullable, type } = schema;
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

function misfit(path: string, value: unknown, what: string): SchemaFault {
  return { path, problem: `is ${shown(value)}`, fix: what };
}

function joined(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}

function shown(value: unknown): string {
  return nodeUtil().inspect(value, {
    depth: 1,
    breakLength: Number.POSITIVE_INFINITY,
    maxStringLength: 80,
    maxArrayLength: 5,
  });
}

/** The rule for a keyword's value, without its subschemas. */
interface KeywordRule {
  accepts(value: unknown): boolean;
  /** Continues "must be …". */
  readonly what: string;
}

const TYPES = ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'] as const;

const ANY_VALUE: KeywordRule = { accepts: () => true, what: 'anything' };

/** By the kind of value. For schemas, only the container is checked here. */
const KEYWORD_RULES: Readonly<Record<KeywordValue, KeywordRule>> = {
  'a schema': { accepts: isSchema, what: 'a schema: an object, true or false' },
  'a list of schemas': { accepts: isFilled, what: 'a list of schemas' },
  'schemas by name': { accepts: isRecord, what: 'an object of schemas' },
  'schemas by pattern': { accepts: isRecord, what: 'an object of schemas' },
  'a schema or a list of schemas': {
    accepts: (value) => isSchema(value) || isFilled(value),
    what: 'a schema, or a list of schemas in draft 7',
  },
  'schemas or lists of names, by name': { accepts: isRecord, what: 'an object of schemas or lists of names' },
  anything: ANY_VALUE,
  'a list': { accepts: Array.isArray, what: 'a list' },
  'a list of values': { accepts: isFilled, what: 'a list of at least one value' },
  text: { accepts: (value) => typeof value === 'string', what: 'a string' },
  'a fragment': {
    accepts: (value) => typeof value === 'string' && value.startsWith('#'),
    what: 'a reference within the schema, which begins with #',
  },
  'a number': { accepts: Number.isFinite, what: 'a number' },
  'a number above 0': {
    accepts: (value) => Number.isFinite(value) && Number(value) > 0,
    what: 'a number above 0',
  },
  'a count': {
    accepts: (value) => Number.isInteger(value) && Number(value) >= 0,
    what: 'a whole number, 0 or more',
  },
  'true or false': { accepts: (value) => typeof value === 'boolean', what: 'true or false' },
  false: { accepts: (value) => value === false, what: 'false: arguments are checked at once' },
  names: { accepts: isNameList, what: 'a list of different names' },
  'names by name': {
    accepts: (value) => isRecord(value) && Object.values(value).every(isNameList),
    what: 'an object of lists of different names',
  },
  'a pattern': { accepts: isPattern, what: 'a regular expression' },
  types: { accepts: areTypes, what: `a type or a list of different types (${TYPES.join(', ')})` },
};

/** Whether all items are different strings. */
function isNameList(value: unknown): boolean {
  if (!Array.isArray(value) || new Set(value).size !== value.length) return false;
  return value.every((name) => typeof name === 'string');
}

/** With or without Unicode: some patterns of older tools are invalid with it, newer ones without it. */
function isPattern(value: unknown): boolean {
  return typeof value === 'string' && (compiles(value, 'u') || compiles(value, ''));
}

/** Whether a value can be a schema. */
function isSchema(value: unknown): boolean {
  return isRecord(value) || typeof value === 'boolean';
}

function compiles(pattern: string, flags: string): boolean {
  try {
    new RegExp(pattern, flags);
    return true;
  } catch {
    return false;
  }
}

function isFilled(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0;
}

function areTypes(value: unknown): boolean {
  const types: readonly unknown[] = TYPES;
  if (!Array.isArray(value)) return types.includes(value);
  return (
    isFilled(value) && new Set(value).size === value.length && value.every((type) => types.includes(type))
  );
}

/**
 * The draft of a schema: 2020-12, unless it names another draft or has keywords of an earlier one. Draft 7 writes
 * tuples as `items: [...]`; only 2019-09 has `$recursiveRef`.
 */
export function draftOf(schema: JsonSchema, parts: Iterable<JsonSchema> = allSchemas(schema)): Draft {
  const said = saidDraft(schema);
  if (said !== undefined) return said;
  let draft: Draft = '2020-12';
  for (const { items, $recursiveRef } of parts) {
    if (Array.isArray(items)) return '7';
    if ($recursiveRef !== undefined) draft = '2019-09';
  }
  return draft;
}

/** The earlier draft that the schema names, if any. */
function saidDraft({ $schema }: JsonSchema): Draft | undefined {
  if (typeof $schema !== 'string') return undefined;
  if (/draft-0[3-7]/.test($schema)) return '7';
  return $schema.includes('2019-09') ? '2019-09' : undefined;
}

/** Whether a keyword belongs to a draft before 2020-12. */
function belongsToEarlier(name: string, value: unknown): boolean {
  return name === '$recursiveRef' || (name === 'items' && Array.isArray(value));
}
