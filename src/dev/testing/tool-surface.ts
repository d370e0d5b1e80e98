import type { JsonSchema } from '../../core/contract/json-schema.js';
import {
  type InvalidOption,
  invalidArguments,
  invalidOptions,
  refuseOptions,
} from '../../core/errors/author-fault.js';
import {
  canonicalJson,
  type Fields,
  filterFields,
  isRecord,
  jsonType,
  parsedJson,
} from '../../core/kernel/json.js';
import { nodeFiles } from '../../core/kernel/node-module.js';
import {
  BOOLEAN,
  FILLED_TEXT,
  listOf,
  type OptionRule,
  oneOf,
  optionTable,
  withMethods,
} from '../../core/kernel/options.js';
import type { ToolRegistry } from '../../run/call/tool-registry.js';
import { findReference, isSchemaNode, schemaPlaces } from '../../tools/schema/keywords.js';
import { writeText } from './write-text.js';

/**
 * The effect of a change on arguments that were valid before: some may be refused now (`breaking`), all are still valid
 * (`non-breaking`), or only texts changed (`wording`).
 */
export type ChangeKind = 'breaking' | 'non-breaking' | 'wording';

/** A change of a schema. */
export interface SchemaChange {
  readonly kind: ChangeKind;
  /** The place: `items[].sku`; empty for the whole schema. */
  readonly path: string;
  readonly what: string;
}

/** Two schemas for the same place; references are resolved. */
interface Place {
  readonly before: JsonSchema;
  readonly after: JsonSchema;
  readonly path: string;
}

/** Compares two keyword values: schemas, booleans, or `undefined`, which accepts everything. */
type CompareWithin = (before: unknown, after: unknown, path: string) => readonly SchemaChange[];

/**
 * The changes between two schemas of arguments. Without changes, or with `wording` only, both accept the same
 * arguments. Without a `breaking` change, arguments that were valid stay valid. Keywords that cannot be compared
 * (`not`, `if`, `contains`, another pattern) are breaking unless they were removed; `oneOf` is compared as `anyOf`.
 */
class Comparison {
  readonly #roots: Pick<Place, 'before' | 'after'>;
  readonly #ids = new Map<JsonSchema, number>();
  readonly #resolved = new Map<JsonSchema, JsonSchema>();
  readonly #covered = new Map<string, boolean>();

  constructor(before: JsonSchema, after: JsonSchema) {
    this.#roots = { before, after };
  }

  all(): readonly SchemaChange[] {
    return this.#changes({ ...this.#roots, path: '' }, new Set());
  }

  /** The changes at one place. `seen` contains compared pairs, because recursive schemas repeat them. */
  #changes(written: Place, seen: Set<string>): readonly SchemaChange[] {
    const { path } = written;
    const place = {
      before: this.#resolve(written.before, this.#roots.before),
      after: this.#resolve(written.after, this.#roots.after),
      path,
    };
    const { before, after } = place;
    // Texts also as written, because a reference may have a description beside it.
    const changes = Array.from(TEXTS)
      .filter(
        (name) => !isSame(written.before[name], written.after[name]) || !isSame(before[name], after[name]),
      )
      .map((name): SchemaChange => ({ kind: 'wording', path, what: `${name} changed` }));
    if (!isSame(before.default, after.default)) {
      const what = `default changed from ${shown(before.default)} to ${shown(after.default)}`;
      changes.push(nonBreaking(path, what));
    }
    const pair = this.#pairOf(before, after);
    if (seen.has(pair)) return changes;
    seen.add(pair);
    const within: CompareWithin = (old, now, at) =>
      this.#changes({ before: schemaOf(old), after: schemaOf(now), path: at }, seen);
    if (hasAlternatives(before) && !hasAlternatives(after)) {
      const { anyOf: _any, oneOf: _one, ...siblings } = before;
      for (const [index, alternative] of alternativesOf(before).entries())
        changes.push(...within({ ...siblings, ...alternative }, after, `${path}(${index + 1})`));
      return [...changes, nonBreaking(path, 'alternatives became one schema')];
    }
    changes.push(...valueChanges(place), ...boundChanges(place), ...ruleChanges(place));
    changes.push(...objectChanges(place, within), ...itemChanges(place, within));
    changes.push(...this.#alternativeChanges(place, within), ...this.#conjunctChanges(place, within));
    return [...changes, ...opaqueChanges(place, within)];
  }

  /** The target of a reference, merged with the keywords beside it. */
  #resolve(schema: JsonSchema, whole: JsonSchema): JsonSchema {
    const { $ref, ...rest } = schema;
    if (typeof $ref !== 'string') return schema;
    const known = this.#resolved.get(schema);
    if (known !== undefined) return known;
    // A reference to itself constrains nothing.
    this.#resolved.set(schema, {});
    const target = schemaOf(findReference($ref, whole, schema));
    const isBare = Object.keys(rest).every((name) => TEXTS.has(name) || IGNORED.has(name));
    const found = isBare
      ? this.#resolve(target, whole)
      : { ...rest, allOf: [...entriesOf(rest.allOf), target] };
    this.#resolved.set(schema, found);
    return found;
  }

  #pairOf(...schemas: readonly JsonSchema[]): string {
    for (const schema of schemas) if (!this.#ids.has(schema)) this.#ids.set(schema, this.#ids.size);
    return schemas.map((schema) => this.#ids.get(schema)).join();
  }

  /** Whether one schema accepts everything that the other accepts. */
  #isCovered(before: JsonSchema, after: JsonSchema): boolean {
    const pair = this.#pairOf(before, after);
    if (!this.#covered.has(pair)) {
      this.#covered.set(pair, true);
      this.#covered.set(pair, !this.#changes({ before, after, path: '' }, new Set()).some(isBreaking));
    }
    return this.#covered.get(pair) ?? true;
  }

  /** Every old alternative must fit a new one. */
  #alternativeChanges({ before, after, path }: Place, within: CompareWithin): readonly SchemaChange[] {
    if (!hasAlternatives(after)) return [];
    const [old, now] = [alternativesOf(before), alternativesOf(after)];
    const changes = old.flatMap((alternative, index) => {
      const twin = old.length === now.length ? now[index] : undefined;
      const fits = now.some((other) => this.#isCovered(alternative, other));
      if (twin !== undefined && (!fits || this.#isCovered(alternative, twin)))
        return within(alternative, twin, `${path}(${index + 1})`);
      return fits ? [] : [breaking(path, `alternative removed: ${shown(alternative)}`)];
    });
    if ('oneOf' in after && !('oneOf' in before) && 'anyOf' in before)
      return [...changes, breaking(path, 'anyOf became oneOf')];
    if (old.length === now.length) return changes;
    return [...changes, nonBreaking(path, `alternatives changed from ${old.length} to ${now.length}`)];
  }

  /** Every new part of `allOf` must follow from an old part, or from the keywords beside the old parts. */
  #conjunctChanges({ before, after, path }: Place, within: CompareWithin): readonly SchemaChange[] {
    const { allOf, ...siblings } = before;
    const [old, now] = [entriesOf(allOf).map(schemaOf), entriesOf(after.allOf).map(schemaOf)];
    const changes = now.flatMap((part, index) => {
      const twin = old[index];
      const follows = [...old, siblings].some((other) => this.#isCovered(other, part));
      if (twin !== undefined && (!follows || this.#isCovered(twin, part))) return within(twin, part, path);
      return follows ? [] : [breaking(path, `part added to allOf: ${shown(part)}`)];
    });
    return now.length < old.length ? [...changes, nonBreaking(path, 'part removed from allOf')] : changes;
  }
}

function breaking(path: string, what: string): SchemaChange {
  return { kind: 'breaking', path, what };
}

function nonBreaking(path: string, what: string): SchemaChange {
  return { kind: 'non-breaking', path, what };
}

function isBreaking({ kind }: SchemaChange): boolean {
  return kind === 'breaking';
}

const MOST_SHOWN = 100;

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}…` : text;
}

const EVERYTHING: JsonSchema = {};
const NO_VALUE: JsonSchema = { enum: [] };

function schemaOf(node: unknown): JsonSchema {
  if (node === false) return NO_VALUE;
  return isSchemaNode(node) ? node : EVERYTHING;
}

function entriesOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function recordOf(value: unknown): Fields {
  return isRecord(value) ? value : {};
}

function hasAlternatives(schema: JsonSchema): boolean {
  return Array.isArray(schema.anyOf) || Array.isArray(schema.oneOf);
}

/** Without `anyOf` and `oneOf`, each type or listed value is an alternative: `["string", "null"]`. */
function alternativesOf(schema: JsonSchema): readonly JsonSchema[] {
  const { anyOf, oneOf, enum: values, ...rest } = schema;
  if (Array.isArray(anyOf ?? oneOf)) return entriesOf(anyOf ?? oneOf).map(schemaOf);
  if (Array.isArray(values)) return values.map((value: unknown) => ({ ...rest, const: value }));
  if (Array.isArray(rest.type)) return rest.type.map((type: string) => ({ ...rest, type }));
  return [schema];
}

/** Keywords that constrain nothing. */
const TEXTS = new Set([
  ...['title', 'description', 'examples', '$comment', 'deprecated', 'readOnly', 'writeOnly'],
  ...['contentEncoding', 'contentMediaType', 'contentSchema'],
]);
const IGNORED = new Set(['$schema', '$id', '$anchor', '$dynamicAnchor', '$defs', 'definitions', 'default']);

function isSame(one: unknown, other: unknown): boolean {
  if (one === undefined || other === undefined) return one === other;
  return canonicalJson(one) === canonicalJson(other);
}

/** The types of values, without overlap: `number` is both `integer` and `fraction`. */
const ALL_TYPES = ['string', 'integer', 'fraction', 'boolean', 'null', 'array', 'object'];
const NUMBERS = ['integer', 'fraction'];

function declaredTypes({ type, nullable }: JsonSchema): readonly string[] {
  if (type === undefined) return ALL_TYPES;
  const types: readonly unknown[] = [type, nullable ? 'null' : []].flat(2);
  return types.flatMap((name) => (name === 'number' ? NUMBERS : [String(name)]));
}

function typeOf(value: unknown): string {
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'fraction';
  return jsonType(value);
}

/** All valid values, if they are listed or their types have few values. */
function valuesOf(schema: JsonSchema): ReadonlyMap<string, unknown> | undefined {
  const types = declaredTypes(schema);
  const lists: (readonly unknown[])[] = Array.isArray(schema.enum) ? [schema.enum] : [];
  if ('const' in schema) lists.push([schema.const]);
  if (types.every((type) => type === 'boolean' || type === 'null')) lists.push([true, false, null]);
  const [first, ...others] = lists.map((list) => new Map(list.map((value) => [canonicalJson(value), value])));
  if (first === undefined) return undefined;
  const fits = (key: string, value: unknown) =>
    types.includes(typeOf(value)) && others.every((list) => list.has(key));
  return new Map([...first].filter(([key, value]) => fits(key, value)));
}

/** Whether the schema accepts values of these types: other keywords for them have no effect. */
function accepts(schema: JsonSchema, types: readonly string[]): boolean {
  const values = valuesOf(schema);
  const accepted = values === undefined ? declaredTypes(schema) : [...values.values()].map(typeOf);
  return types.some((type) => accepted.includes(type));
}

function isListed(schema: JsonSchema): boolean {
  return 'enum' in schema || 'const' in schema;
}

function valueChanges({ before, after, path }: Place): readonly SchemaChange[] {
  const [old, now] = [valuesOf(before), valuesOf(after)];
  const allowed = declaredTypes(after);
  if (old !== undefined && (isListed(before) || isListed(after))) {
    const lost = [...old].filter(
      ([key, value]) => !allowed.includes(typeOf(value)) || now?.has(key) === false,
    );
    if (lost.length > 0) return [breaking(path, `values removed: ${shown(lost.map(([, value]) => value))}`)];
    if (now === undefined) return [nonBreaking(path, 'other values allowed')];
    const gained = [...now].filter(([key]) => !old.has(key)).map(([, value]) => value);
    return gained.length > 0 ? [nonBreaking(path, `values added: ${shown(gained)}`)] : [];
  }
  const from = `from ${shown(before.type ?? 'any')} to ${shown(after.type ?? 'any')}`;
  const refused = ALL_TYPES.filter((type) => !allowed.includes(type));
  if (accepts(before, refused)) return [breaking(path, `type narrowed ${from}`)];
  if (isListed(after)) return [breaking(path, `values limited to ${shown(after.enum ?? [after.const])}`)];
  const isWider = allowed.some((type) => !accepts(before, [type]));
  return isWider ? [nonBreaking(path, `type widened ${from}`)] : [];
}

/** Bounds with the types they concern. A negative sign marks an upper bound, so that the larger value is stricter. */
const BOUNDS = [
  { name: 'minimum', exclusive: 'exclusiveMinimum', sign: 1, types: NUMBERS },
  { name: 'maximum', exclusive: 'exclusiveMaximum', sign: -1, types: NUMBERS },
  ...(['string', 'array', 'object'] as const).flatMap((type) => {
    const counted = { string: 'Length', array: 'Items', object: 'Properties' }[type];
    return [
      { name: `min${counted}`, exclusive: '', sign: 1, types: [type] },
      { name: `max${counted}`, exclusive: '', sign: -1, types: [type] },
    ];
  }),
];

function boundChanges({ before, after, path }: Place): readonly SchemaChange[] {
  return BOUNDS.flatMap(({ name, exclusive, sign, types }) => {
    const boundOf = (schema: JsonSchema) => {
      const strictness = (keyword: string): number => {
        const value = schema[keyword];
        if (typeof value === 'number') return sign * value;
        return keyword.startsWith('min') && exclusive === '' ? 0 : Number.NEGATIVE_INFINITY;
      };
      const [inclusive, outside] = [strictness(name), strictness(exclusive)];
      const isExclusive = outside >= inclusive && Number.isFinite(outside);
      const given =
        exclusive === '' ? schema[name] : { [name]: schema[name], [exclusive]: schema[exclusive] };
      return { value: Math.max(inclusive, outside), isExclusive, given };
    };
    const [old, now] = [boundOf(before), boundOf(after)];
    const isSameValue = old.value === now.value;
    if ((isSameValue && old.isExclusive === now.isExclusive) || !accepts(before, types)) return [];
    const isTighter = isSameValue ? now.isExclusive : now.value > old.value;
    const change = `${isSameValue ? exclusive : name} ${isTighter ? 'tightened' : 'loosened'}`;
    const what = `${change} from ${shown(old.given)} to ${shown(now.given)}`;
    return [isTighter ? breaking(path, what) : nonBreaking(path, what)];
  });
}

/** Keywords whose change may refuse values that the old value accepted. */
const RULES = [
  ['pattern', ['string']],
  ['format', ['string', ...NUMBERS]],
  ['multipleOf', NUMBERS],
  ['uniqueItems', ['array']],
] as const;

function ruleChanges({ before, after, path }: Place): readonly SchemaChange[] {
  return RULES.flatMap(([name, types]) => {
    const [old, now] = [before[name] || undefined, after[name] || undefined];
    if (old === now || !accepts(before, types)) return [];
    const what = `${name} changed from ${shown(old)} to ${shown(now)}`;
    const isDivisor = name === 'multipleOf' && Number.isInteger(Number(old) / Number(now));
    return [now === undefined || isDivisor ? nonBreaking(path, what) : breaking(path, what)];
  });
}

function objectChanges({ before, after, path }: Place, within: CompareWithin): readonly SchemaChange[] {
  if (!accepts(before, ['object'])) return [];
  const at = (name: string): string => (path === '' ? name : `${path}.${name}`);
  const [old, now] = [recordOf(before.properties), recordOf(after.properties)];
  const namesIn = (list: unknown) => new Set(entriesOf(list).map(String));
  const [needed, needs] = [namesIn(before.required), namesIn(after.required)];
  const others = before.additionalProperties;
  // Alternatives and `allOf` parts with properties are compared separately.
  const isElsewhere =
    after.properties === undefined &&
    (after.type === undefined || ['allOf', 'anyOf', 'oneOf'].some((name) => name in after));
  const changes: SchemaChange[] = [];
  for (const name of Object.keys(old)) {
    if (Object.hasOwn(now, name)) changes.push(...within(old[name], now[name], at(name)));
    else if (!isElsewhere) changes.push(breaking(at(name), 'property removed'));
  }
  for (const name of Object.keys(now)) {
    if (Object.hasOwn(old, name) || needs.has(name)) continue;
    // The new property must accept every value that the old schema accepted as an additional property.
    const isOpen = others !== undefined && others !== false;
    if (isOpen) changes.push(...within(others, now[name], at(name)).filter(isBreaking));
    changes.push(nonBreaking(at(name), 'optional property added'));
  }
  for (const name of [...needs].filter((one) => !needed.has(one))) {
    const isNew = !Object.hasOwn(old, name) && Object.hasOwn(now, name);
    changes.push(breaking(at(name), isNew ? 'required property added' : 'newly required'));
  }
  for (const name of [...needed].filter((one) => !needs.has(one)))
    if (!Object.hasOwn(old, name) || Object.hasOwn(now, name))
      changes.push(nonBreaking(at(name), 'no longer required'));
  return [...changes, ...within(others, after.additionalProperties, at('*'))];
}

/** Items by position, then all others. */
function itemChanges({ before, after, path }: Place, within: CompareWithin): readonly SchemaChange[] {
  if (!accepts(before, ['array'])) return [];
  const [old, now] = [before, after].map(({ prefixItems, items, additionalItems }) =>
    Array.isArray(items)
      ? { places: items, rest: additionalItems }
      : { places: entriesOf(prefixItems), rest: items },
  );
  const count = Math.max(old?.places.length ?? 0, now?.places.length ?? 0);
  const places = Array.from({ length: count }, (_, index) =>
    within(old?.places[index] ?? old?.rest, now?.places[index] ?? now?.rest, `${path}[${index}]`),
  );
  return [...places.flat(), ...within(old?.rest, now?.rest, `${path}[]`)];
}

/** Groups of keywords that depend on each other and cannot be compared. */
const OPAQUE: readonly (readonly string[])[] = [
  ['not'],
  ['if', 'then', 'else'],
  ['contains', 'minContains', 'maxContains'],
  ...['dependentRequired', 'dependentSchemas', 'dependencies'].map((name) => [name]),
  ...['unevaluatedProperties', 'unevaluatedItems', '$dynamicRef', '$recursiveRef'].map((name) => [name]),
  ...['patternProperties', 'propertyNames'].map((name) => [name]),
];

function opaqueChanges({ before, after, path }: Place, within: CompareWithin): readonly SchemaChange[] {
  return OPAQUE.flatMap((group) => {
    const [old = {}, now = {}] = [before, after].map(
      (schema): JsonSchema => filterFields(schema, (name) => group.includes(name)),
    );
    const [first = ''] = group;
    if (!isSame(old, now)) {
      // Properties that matched a removed pattern may be refused as additional properties.
      const isLooser = !(first in now) && first !== 'patternProperties';
      return [isLooser ? nonBreaking(path, `${first} removed`) : breaking(path, `${first} changed`)];
    }
    // Equal keywords may contain references to schemas that changed.
    const parts = new Map<string, unknown>();
    for (const { node, name, key } of schemaPlaces(now)) parts.set(`${name} ${key}`, node);
    const changes: SchemaChange[] = [];
    for (const { node, name, key } of schemaPlaces(old))
      changes.push(...within(node, parts.get(`${name} ${key}`), `${path}(${first})`));
    return changes.map((change) =>
      change.kind === 'wording' ? change : breaking(change.path, `${first}: ${change.what}`),
    );
  });
}

/** A tool as models receive it. */
export interface SurfaceTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonSchema;
  /** Estimated tokens of its definition: one per four characters of JSON. */
  readonly tokens: number;
}

/** Everything that models receive from a registry, by name; plain JSON. */
export interface ToolSurface {
  readonly tools: readonly SurfaceTool[];
  readonly tokens: number;
}

/** A change of what models receive. */
export interface SurfaceChange extends SchemaChange {
  readonly tool: string;
}

/** Options of {@link expectToolSurface}: a file, or a surface. */
export interface ToolSurfaceOptions {
  /** File that stores the surface. It is created if it is missing, except in CI. */
  readonly file?: string;
  /** The expected surface, instead of a file. */
  readonly surface?: ToolSurface;
  /** Overwrites the file; default: whether `UPDATE_TOOL_SURFACE` is set. */
  readonly update?: boolean;
  /** Kinds of changes that are allowed; default: none. */
  readonly allow?: readonly ChangeKind[];
}

const KINDS = ['breaking', 'non-breaking', 'wording'] as const;
const SURFACE: OptionRule = { accepts: isSurface, fix: 'the result of toolSurface(registry)' };
const OPTIONS = optionTable<ToolSurfaceOptions>('expectToolSurface', {
  file: FILLED_TEXT,
  surface: SURFACE,
  update: BOOLEAN,
  allow: listOf(oneOf(...KINDS), "['non-breaking', 'wording']"),
});
const ONE_OF_BOTH: InvalidOption = {
  where: 'expectToolSurface',
  option: 'file',
  problem: 'either a file or a surface is needed, not both',
  fix: "{ file: 'test/tools.json' }",
};
const REGISTRY = withMethods(['toProviderDefs'], 'the ToolRegistry');

const CHARACTERS_PER_TOKEN = 4;

/**
 * What models receive from a registry: names, descriptions, schemas, and their size.
 *
 * @example
 * ```ts
 * const { tokens } = toolSurface(registry);
 * expect(tokens).toBeLessThan(2_000);
 * ```
 */
export function toolSurface(registry: ToolRegistry): ToolSurface {
  refuseOptions(invalidArguments({ of: 'toolSurface', given: { registry }, rules: { registry: REGISTRY } }));
  const tools = registry
    .toProviderDefs()
    .map((definition) => {
      const { name, description, parameters } = definition.function;
      const tokens = Math.ceil(JSON.stringify(definition).length / CHARACTERS_PER_TOKEN);
      return { name, description, parameters, tokens };
    })
    .sort((one, other) => (one.name < other.name ? -1 : 1));
  return { tools, tokens: tools.reduce((sum, { tokens }) => sum + tokens, 0) };
}

/**
 * The changes between two surfaces, with their effect on callers: valid calls become invalid (`breaking`), all stay
 * valid (`non-breaking`), or only texts differ (`wording`).
 *
 * @example
 * ```ts
 * const before = toolSurface(registry);
 * registry.register(search);
 * expect(surfaceChanges(before, toolSurface(registry))).toEqual([
 *   { kind: 'non-breaking', tool: 'search', path: '', what: 'tool added' },
 * ]);
 * ```
 */
export function surfaceChanges(before: ToolSurface, after: ToolSurface): readonly SurfaceChange[] {
  refuseOptions(
    invalidArguments({
      of: 'surfaceChanges',
      given: { before, after },
      rules: { before: SURFACE, after: SURFACE },
    }),
  );
  const [old, now] = [before, after].map(({ tools }) => new Map(tools.map((tool) => [tool.name, tool])));
  const names = new Set([...before.tools, ...after.tools].map(({ name }) => name));
  return [...names].sort().flatMap((tool): readonly SurfaceChange[] => {
    const [earlier, later] = [old?.get(tool), now?.get(tool)];
    if (later === undefined) return [{ kind: 'breaking', tool, path: '', what: 'tool removed' }];
    if (earlier === undefined) return [{ kind: 'non-breaking', tool, path: '', what: 'tool added' }];
    const changes = [...new Comparison(earlier.parameters, later.parameters).all()];
    if (earlier.description !== later.description)
      changes.unshift({ kind: 'wording', path: '', what: 'description of the tool changed' });
    return changes.map((change) => ({ ...change, tool }));
  });
}

/**
 * Throws if the tools of a registry differ from the stored surface; the error lists all changes by their kind. Works
 * with every test runner.
 *
 * @throws InvalidOptionsError for invalid options; Error with the changes.
 *
 * @example
 * ```ts
 * expectToolSurface(registry, { file: 'test/tools.json', allow: ['non-breaking', 'wording'] });
 * ```
 */
export function expectToolSurface(registry: ToolRegistry, options: ToolSurfaceOptions): void {
  refuseOptions(invalidOptions(options, OPTIONS));
  const { file, surface, allow = [], update = isSet(process.env.UPDATE_TOOL_SURFACE) } = options;
  if ((file === undefined) === (surface === undefined)) refuseOptions([ONE_OF_BOTH]);
  const now = toolSurface(registry);
  const expected = surface ?? readSurface(file ?? '', update);
  if (expected === undefined) {
    writeText(file ?? '', `${JSON.stringify(now, null, 2)}\n`);
    return;
  }
  const changes = surfaceChanges(expected, now);
  if (changes.every(({ kind }) => allow.includes(kind))) return;
  const groups = KINDS.flatMap((kind) => {
    const lines = changes
      .filter((change) => change.kind === kind)
      .map(({ tool, path, what }) => `  - ${tool}${path === '' ? '' : `, ${path}`}: ${what}`);
    return lines.length === 0 ? [] : [`${kind} (${lines.length}):`, ...lines];
  });
  const message = [
    `The tools that models receive have changed${file === undefined ? '' : ` since ${file}`}:`,
    ...groups,
    `About ${now.tokens} tokens in total, ${expected.tokens} before.`,
    ...(file === undefined ? [] : [`If this is intended, ${HOW_TO_UPDATE}.`]),
  ];
  throw new Error(message.join('\n'));
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && !['', '0', 'false'].includes(value);
}

/** `undefined` if the file must be written. */
function readSurface(file: string, update: boolean): ToolSurface | undefined {
  const { existsSync, readFileSync } = nodeFiles();
  if (update) return undefined;
  if (!existsSync(file)) {
    if (!isSet(process.env.CI)) return undefined;
    throw new Error(
      `${file} does not exist, and is not created in CI: run the test on another machine and commit the file`,
    );
  }
  const stored = parsedJson(readFileSync(file, 'utf8'));
  if (!isSurface(stored)) throw new Error(`${file} contains no tool surface; ${HOW_TO_UPDATE}`);
  return stored;
}

const HOW_TO_UPDATE = 'update the file with UPDATE_TOOL_SURFACE=1';

function isSurface(value: unknown): value is ToolSurface {
  return (
    isRecord(value) &&
    Array.isArray(value.tools) &&
    value.tools.every(
      (tool: unknown) => isRecord(tool) && typeof tool.name === 'string' && isRecord(tool.parameters),
    )
  );
}
