import type { JsonSchema } from '../contract/json-schema.js';
import { canonicalJson, isRecord } from '../kernel/json.js';

/**
 * What a change does to who calls: arguments that were right may no longer be (`breaking`), all of them still are
 * (`non-breaking`), or only the words differ (`wording`).
 */
export type ChangeKind = 'breaking' | 'non-breaking' | 'wording';

/** One change of a schema. */
export interface SchemaChange {
  readonly kind: ChangeKind;
  /** Where: `items[].sku`; empty for the whole. */
  readonly path: string;
  readonly what: string;
}

/** Two schemas for the same place; references are resolved. */
export interface Place {
  readonly before: JsonSchema;
  readonly after: JsonSchema;
  readonly path: string;
}

/** Compares what stands within: schemas, booleans, or nothing, which all values fit. */
export type CompareWithin = (before: unknown, after: unknown, path: string) => readonly SchemaChange[];

export function breaking(path: string, what: string): SchemaChange {
  return { kind: 'breaking', path, what };
}

export function nonBreaking(path: string, what: string): SchemaChange {
  return { kind: 'non-breaking', path, what };
}

const MOST_SHOWN = 100;

/** A part of a schema in a line. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}…` : text;
}

/** The path of a property. */
function propertyPath(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`;
}

/** What changed of the keywords that judge a value by themselves and of those of objects and lists. */
export function keywordChanges(place: Place, within: CompareWithin): readonly SchemaChange[] {
  return [
    ...valueChanges(place),
    ...boundChanges(place),
    ...ruleChanges(place),
    ...propertyChanges(place, within),
    ...requiredChanges(place),
    ...restChanges(place, within),
    ...itemChanges(place, within),
  ];
}

/** The types of values, without overlap: `number` is both of `integer` and `fraction`. */
const ALL_TYPES = ['string', 'integer', 'fraction', 'boolean', 'null', 'array', 'object'];
const FEW_VALUES = new Set(['boolean', 'null']);

function declaredTypes({ type, nullable }: JsonSchema): ReadonlySet<string> {
  if (type === undefined) return new Set(ALL_TYPES);
  const types: readonly unknown[] = [...(Array.isArray(type) ? type : [type]), ...(nullable ? ['null'] : [])];
  return new Set(types.flatMap((name) => (name === 'number' ? ['integer', 'fraction'] : [String(name)])));
}

function isWithin(some: ReadonlySet<string>, all: ReadonlySet<string>): boolean {
  return [...some].every((name) => all.has(name));
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'fraction';
  return typeof value;
}

/** All values that fit, where they are listed or their types have few. */
function valuesOf(schema: JsonSchema): ReadonlyMap<string, unknown> | undefined {
  const types = declaredTypes(schema);
  const lists: (readonly unknown[])[] = [];
  if (Array.isArray(schema.enum)) lists.push(schema.enum);
  if ('const' in schema) lists.push([schema.const]);
  if (isWithin(types, FEW_VALUES)) lists.push([true, false, null]);
  const [first, ...others] = lists.map((list) => new Map(list.map((value) => [canonicalJson(value), value])));
  if (first === undefined) return undefined;
  return new Map(
    [...first].filter(([key, value]) => types.has(typeOf(value)) && others.every((list) => list.has(key))),
  );
}

/** The types of the values that a schema lets through. */
function typesOf(schema: JsonSchema): ReadonlySet<string> {
  const values = valuesOf(schema);
  return values === undefined ? declaredTypes(schema) : new Set([...values.values()].map(typeOf));
}

function isListed(schema: JsonSchema): boolean {
  return 'enum' in schema || 'const' in schema;
}

function valueChanges({ before, after, path }: Place): readonly SchemaChange[] {
  const [old, now] = [valuesOf(before), valuesOf(after)];
  if (old === undefined || !(isListed(before) || isListed(after)))
    return typeChanges({ before, after, path });
  const allowed = declaredTypes(after);
  const lost = [...old].filter(([key, value]) => !allowed.has(typeOf(value)) || now?.has(key) === false);
  if (lost.length > 0) return [breaking(path, `values removed: ${shown(lost.map(([, value]) => value))}`)];
  if (now === undefined) return [nonBreaking(path, 'other values allowed')];
  const gained = [...now].filter(([key]) => !old.has(key)).map(([, value]) => value);
  return gained.length > 0 ? [nonBreaking(path, `values added: ${shown(gained)}`)] : [];
}

function typeChanges({ before, after, path }: Place): readonly SchemaChange[] {
  const [types, allowed] = [typesOf(before), declaredTypes(after)];
  const from = `from ${shown(before.type ?? 'any')} to ${shown(after.type ?? 'any')}`;
  if (!isWithin(types, allowed)) return [breaking(path, `type narrowed ${from}`)];
  if (isListed(after))
    return [breaking(path, `only these values now: ${shown(after.enum ?? [after.const])}`)];
  return types.size < allowed.size ? [nonBreaking(path, `type widened ${from}`)] : [];
}

/** A keyword that bounds values; of two of its values the larger one is stricter. */
interface Bound {
  readonly name: string;
  readonly types: readonly string[];
  readonly strictness: (schema: JsonSchema) => number;
  /** What it says, for people. */
  readonly said: (schema: JsonSchema) => unknown;
}

const NUMBERS = ['integer', 'fraction'];
const NONE = Number.NEGATIVE_INFINITY;

function numberOr(value: unknown, sign: number): number {
  return typeof value === 'number' ? sign * value : NONE;
}

/** How many: nothing said of the fewest is 0. */
function howMany(name: string, type: string): Bound {
  const sign = name.startsWith('min') ? 1 : -1;
  const strictness = (schema: JsonSchema) => Math.max(numberOr(schema[name], sign), sign === 1 ? 0 : NONE);
  return { name, types: [type], strictness, said: (schema) => schema[name] };
}

/** Of a limit two bounds are made: how far it reaches, and whether it is itself outside. */
function limitOf(name: string, exclusive: string, sign: number): readonly Bound[] {
  const reach = (schema: JsonSchema) =>
    Math.max(numberOr(schema[name], sign), numberOr(schema[exclusive], sign));
  const said = (schema: JsonSchema) => ({ [name]: schema[name], [exclusive]: schema[exclusive] });
  const isOutside = (schema: JsonSchema) => {
    const at = numberOr(schema[exclusive], sign);
    return at !== NONE && at >= numberOr(schema[name], sign) ? 1 : 0;
  };
  return [
    { name, types: NUMBERS, strictness: reach, said },
    { name: exclusive, types: NUMBERS, strictness: isOutside, said },
  ];
}

const MINIMUM = limitOf('minimum', 'exclusiveMinimum', 1);
const MAXIMUM = limitOf('maximum', 'exclusiveMaximum', -1);
const COUNTS: readonly Bound[] = [
  ...['minLength', 'maxLength'].map((name) => howMany(name, 'string')),
  ...['minItems', 'maxItems'].map((name) => howMany(name, 'array')),
  ...['minProperties', 'maxProperties'].map((name) => howMany(name, 'object')),
];

function boundChanges(place: Place): readonly SchemaChange[] {
  const limits = [MINIMUM, MAXIMUM].flatMap(([reach, outside]) => {
    const changes = reach === undefined ? [] : boundChange(place, reach);
    // Whether a limit is itself outside counts between equal limits only.
    return changes.length > 0 || outside === undefined ? changes : boundChange(place, outside);
  });
  return [...limits, ...COUNTS.flatMap((bound) => boundChange(place, bound))];
}

function boundChange({ before, after, path }: Place, bound: Bound): readonly SchemaChange[] {
  const [old, now] = [bound.strictness(before), bound.strictness(after)];
  if (old === now || !concerns(before, bound.types)) return [];
  const from = `from ${shown(bound.said(before))} to ${shown(bound.said(after))}`;
  return now > old
    ? [breaking(path, `${bound.name} tightened ${from}`)]
    : [nonBreaking(path, `${bound.name} loosened ${from}`)];
}

/** A keyword of other types than those that were let through takes nothing away. */
function concerns(before: JsonSchema, types: readonly string[]): boolean {
  const through = typesOf(before);
  return types.some((type) => through.has(type));
}

/** Keywords of which any other value may refuse what the old one let through. */
const RULES: readonly (readonly [name: string, types: readonly string[]])[] = [
  ['pattern', ['string']],
  ['format', ['string', ...NUMBERS]],
  ['multipleOf', NUMBERS],
  ['uniqueItems', ['array']],
];

function ruleChanges({ before, after, path }: Place): readonly SchemaChange[] {
  return RULES.flatMap(([name, types]) => {
    const [old, now] = [before[name] || undefined, after[name] || undefined];
    if (old === now || !concerns(before, types)) return [];
    const what = `${name} changed from ${shown(old)} to ${shown(now)}`;
    const isLooser = now === undefined || (name === 'multipleOf' && isMultiple(old, now));
    return [isLooser ? nonBreaking(path, what) : breaking(path, what)];
  });
}

function isMultiple(old: unknown, now: unknown): boolean {
  const ratio = Number(old) / Number(now);
  return Number.isInteger(ratio);
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

function namesOf(value: unknown): ReadonlySet<unknown> {
  return new Set(Array.isArray(value) ? value : []);
}

const PARTS = ['allOf', 'anyOf', 'oneOf'];

function propertyChanges({ before, after, path }: Place, within: CompareWithin): readonly SchemaChange[] {
  const [old, now] = [recordOf(before.properties), recordOf(after.properties)];
  if (!concerns(before, ['object'])) return [];
  // Parts that have the properties are compared by themselves; and where anything fits, they fit too.
  const isElsewhere =
    after.properties === undefined && (after.type === undefined || PARTS.some((name) => name in after));
  const kept = Object.keys(old).flatMap((name) => {
    const at = propertyPath(path, name);
    if (Object.hasOwn(now, name)) return within(old[name], now[name], at);
    return isElsewhere ? [] : [breaking(at, 'property removed')];
  });
  const isNeeded = namesOf(after.required);
  const added = Object.keys(now)
    .filter((name) => !Object.hasOwn(old, name) && !isNeeded.has(name))
    .flatMap((name) => {
      const at = propertyPath(path, name);
      // Where others were let in, what they could be before must still fit.
      const others = before.additionalProperties;
      const narrowed = others === undefined || others === false ? [] : within(others, now[name], at);
      return [
        ...narrowed.filter(({ kind }) => kind === 'breaking'),
        nonBreaking(at, 'optional property added'),
      ];
    });
  return [...kept, ...added];
}

function requiredChanges({ before, after, path }: Place): readonly SchemaChange[] {
  const [old, now] = [namesOf(before.required), namesOf(after.required)];
  const [had, has] = [recordOf(before.properties), recordOf(after.properties)];
  if (!concerns(before, ['object'])) return [];
  const newly = [...now]
    .filter((name) => !old.has(name))
    .map((name) => {
      const isNew = !Object.hasOwn(had, String(name)) && Object.hasOwn(has, String(name));
      return breaking(propertyPath(path, String(name)), isNew ? 'required property added' : 'newly required');
    });
  const noLonger = [...old]
    .filter((name) => !now.has(name))
    .filter((name) => Object.hasOwn(has, String(name)) || !Object.hasOwn(had, String(name)))
    .map((name) => nonBreaking(propertyPath(path, String(name)), 'no longer required'));
  return [...newly, ...noLonger];
}

/** Properties that are not named, by what they are called or are. */
function restChanges({ before, after, path }: Place, within: CompareWithin): readonly SchemaChange[] {
  if (!concerns(before, ['object'])) return [];
  const [old, now] = [recordOf(before.patternProperties), recordOf(after.patternProperties)];
  const at = (pattern: string) => propertyPath(path, `/${pattern}/`);
  const patterns = [
    ...Object.keys(old).flatMap((pattern) =>
      within(
        old[pattern],
        Object.hasOwn(now, pattern) ? now[pattern] : after.additionalProperties,
        at(pattern),
      ),
    ),
    ...Object.keys(now)
      .filter((pattern) => !Object.hasOwn(old, pattern))
      .map((pattern) => breaking(at(pattern), 'rule for properties added')),
  ];
  return [
    ...patterns,
    ...within(before.additionalProperties, after.additionalProperties, propertyPath(path, '*')),
    ...within(before.propertyNames, after.propertyNames, propertyPath(path, '(names)')),
  ];
}

/** Items by their place, then all others. */
function itemChanges({ before, after, path }: Place, within: CompareWithin): readonly SchemaChange[] {
  if (!concerns(before, ['array'])) return [];
  const [old, now] = [placesOf(before), placesOf(after)];
  const count = Math.max(old.places.length, now.places.length);
  const places = Array.from({ length: count }, (_, index) =>
    within(old.places[index] ?? old.rest, now.places[index] ?? now.rest, `${path}[${index}]`),
  );
  return [...places.flat(), ...within(old.rest, now.rest, `${path}[]`)];
}

function placesOf({ prefixItems, items, additionalItems }: JsonSchema): {
  readonly places: readonly unknown[];
  readonly rest: unknown;
} {
  if (Array.isArray(items)) return { places: items, rest: additionalItems };
  return { places: Array.isArray(prefixItems) ? prefixItems : [], rest: items };
}
