import type { JsonSchema } from '../../contract/json-schema.js';
import { isRecord } from '../../kernel/json.js';
import { asSchema } from './conjunction.js';
import {
  type EditKind,
  type Field,
  type ListPlan,
  NEVER,
  type ObjectPlan,
  type PartReader,
  type Plan,
  type RecordPlan,
  type Remark,
  type ScalarPlan,
  UNWORDED,
  type Use,
  useOf,
} from './plan.js';
import { boundsOf, isAskable, placeName, remarkOn, remarksOnGroup } from './scalar-plans.js';

/** Whether objects with named properties keep others of which nothing is said. */
export type Extras = 'kept' | 'closed';

interface ObjectSurroundings {
  readonly extras: Extras;
  readonly reader: PartReader;
  readonly isRoot: boolean;
}

/** An object: of properties with names, of names that nobody knows before, or of both. */
export function objectPlan(
  parts: readonly JsonSchema[],
  { reader, isRoot, extras }: ObjectSurroundings,
): Plan {
  const remarks = remarksOnGroup(parts, 'object');
  const names = namesOf(parts);
  const fields: Field[] = [];
  for (const name of names) {
    const isRequired = parts.some(({ required }) => Array.isArray(required) && required.includes(name));
    const use = reader.use(schemasOf(name, parts));
    if (!use.slot.isFilled || use.slot.plan.kind !== 'never') fields.push({ name, use, isRequired });
    else if (isRequired) return NEVER;
  }
  const openness = opennessOf(parts, { hasNames: names.length > 0, isRoot, extras });
  if (openness !== 'open') {
    const edits: readonly EditKind[] = openness === 'said' ? [] : [openness];
    return { kind: 'object', ...UNWORDED, edits, fields, remarks: [...remarks, ...countRemarks(parts)] };
  }
  const record = recordPlan(parts, reader);
  if (fields.length === 0 && !isRoot) return { ...record, remarks: [...record.remarks, ...remarks] };
  return withRest(fields, record, [...remarks, ...(fields.length > 0 ? countRemarks(parts) : [])]);
}

function withRest(fields: readonly Field[], record: RecordPlan, remarks: readonly Remark[]): ObjectPlan {
  const taken = new Set(fields.map(({ name }) => name));
  let name = fields.length > 0 ? 'other_properties' : 'entries';
  while (taken.has(name)) name += '_';
  const description = fields.length > 0 ? 'Properties beside these.' : 'The properties.';
  const isCounted = fields.length > 0;
  const use: Use = { ...useOf(isCounted ? { ...record, keywords: {} } : record), description };
  return { kind: 'object', ...UNWORDED, edits: ['rest'], fields, rest: { name, use }, remarks };
}

/** All names that are spoken of; those that only a condition brings in too, where there is no other place for them. */
function namesOf(parts: readonly JsonSchema[]): readonly string[] {
  const named = parts.flatMap(({ properties, required }) => [
    ...Object.keys(properties ?? {}),
    ...(Array.isArray(required) ? required.filter((name) => typeof name === 'string') : []),
  ]);
  const isOpen = parts.some(saysOpen);
  const conditional = isOpen
    ? []
    : conditionalParts(parts).flatMap(({ properties }) => Object.keys(properties ?? {}));
  return [...new Set([...named, ...conditional])];
}

function conditionalParts(parts: readonly JsonSchema[]): readonly JsonSchema[] {
  return parts.flatMap((part) => {
    const dependent = [part.dependentSchemas, part.dependencies].flatMap((schemas) =>
      Object.values(Object(schemas)).filter((schema) => !Array.isArray(schema)),
    );
    return [part.then, part.else, ...dependent].filter(isRecord);
  });
}

/** All that is said of one property. */
function schemasOf(name: string, parts: readonly JsonSchema[]): readonly JsonSchema[] {
  const certain = parts.flatMap((part) => schemasInPart(name, part));
  if (certain.length > 0 || parts.some((part) => names(part, name))) return certain;
  const perhaps = conditionalParts(parts).flatMap(({ properties = {} }) =>
    Object.hasOwn(properties, name) ? [asSchema(properties[name])] : [],
  );
  const [only, ...others] = perhaps;
  return only !== undefined && others.length === 0 ? [only] : [];
}

function names({ properties = {}, required }: JsonSchema, name: string): boolean {
  return Object.hasOwn(properties, name) || (Array.isArray(required) && required.includes(name));
}

function schemasInPart(name: string, part: JsonSchema): readonly JsonSchema[] {
  const { properties = {}, patternProperties, additionalProperties } = part;
  const own = Object.hasOwn(properties, name) ? [asSchema(properties[name])] : [];
  const matching = Object.entries(Object(patternProperties) as Readonly<Record<string, unknown>>)
    .filter(([pattern]) => matches(pattern, name))
    .map(([, schema]) => asSchema(schema));
  const found = [...own, ...matching];
  if (found.length > 0 || additionalProperties === undefined) return found;
  return [asSchema(additionalProperties)];
}

function matches(pattern: string, name: string): boolean {
  try {
    return new RegExp(pattern, 'u').test(name);
  } catch {
    return false;
  }
}

/** Whether there are other properties; if not, whether the schema says so, says nothing, or says otherwise. */
type Openness = 'open' | 'said' | 'closed' | 'narrowed';

function opennessOf(
  parts: readonly JsonSchema[],
  {
    hasNames,
    isRoot,
    extras,
  }: { readonly hasNames: boolean; readonly isRoot: boolean; readonly extras: Extras },
): Openness {
  const closes = (part: JsonSchema): boolean =>
    part.additionalProperties === false && Object.keys(Object(part.patternProperties)).length === 0;
  if (parts.some((part) => closes(part) || part.unevaluatedProperties === false)) return 'said';
  const isDropped = extras === 'closed' && hasNames && !parts.some(saysWhatElse);
  if (parts.some(saysOpen)) return isDropped ? 'narrowed' : 'open';
  // Of an object without properties nothing is known but that it has some; a root without them takes none.
  const isFree = !hasNames && !isRoot && parts.every(({ properties }) => properties === undefined);
  return isFree ? 'open' : 'closed';
}

function saysOpen({ additionalProperties, patternProperties, unevaluatedProperties }: JsonSchema): boolean {
  const isGiven = (schema: unknown): boolean => schema !== undefined && schema !== false;
  const patterns = Object.keys(Object(patternProperties)).length;
  return patterns > 0 || isGiven(additionalProperties) || isGiven(unevaluatedProperties);
}

/** Whether something is said of the properties that have no name. */
function saysWhatElse({
  additionalProperties,
  patternProperties,
  unevaluatedProperties,
}: JsonSchema): boolean {
  const isSaid = (schema: unknown): boolean => isRecord(schema) && Object.keys(schema).length > 0;
  return [additionalProperties, patternProperties, unevaluatedProperties].some(isSaid);
}

function recordPlan(parts: readonly JsonSchema[], reader: PartReader): RecordPlan {
  const saying = parts.map(valuesOf).filter((schemas) => schemas.length > 0);
  const [first = []] = saying;
  const isSimple = saying.length < 2 || saying.every((schemas) => schemas.length === 1);
  const values =
    isSimple && saying.length > 1
      ? reader.use(saying.flat())
      : first.length === 0
        ? reader.use([])
        : reader.useOneOf(first.map((schema) => reader.use([schema])));
  return {
    kind: 'record',
    ...UNWORDED,
    edits: ['pairs'],
    key: keyPlan(parts, reader),
    values,
    keywords: countKeywords(parts),
    remarks: [...(isSimple ? [] : remarkOn('additionalProperties', saying.slice(1))), ...unaskedKeys(parts)],
  };
}

/** What the properties without a name may be: one of these. */
function valuesOf({
  patternProperties,
  additionalProperties,
  unevaluatedProperties,
}: JsonSchema): readonly JsonSchema[] {
  const byPattern = Object.values(Object(patternProperties) as Readonly<Record<string, unknown>>).map(
    asSchema,
  );
  const other = additionalProperties ?? unevaluatedProperties;
  if (other === undefined && byPattern.length > 0) return [...byPattern, {}];
  return other === undefined || other === false ? byPattern : [...byPattern, asSchema(other)];
}

/** What keys may be, where that can be asked for. */
function keyPlan(parts: readonly JsonSchema[], reader: PartReader): ScalarPlan {
  const plain: ScalarPlan = { kind: 'scalar', ...UNWORDED, type: 'string', keywords: {} };
  const given = parts.flatMap(({ propertyNames }) =>
    propertyNames === undefined ? [] : [asSchema(propertyNames)],
  );
  if (given.length > 0) {
    const { plan } = reader.use([{ type: 'string' }, ...given]).slot;
    return plan.kind === 'scalar' && plan.type === 'string' ? plan : plain;
  }
  const [only, ...others] = parts.filter(({ patternProperties }) => patternProperties !== undefined);
  if (only?.additionalProperties !== false || others.length > 0) return plain;
  const patterns = Object.keys(Object(only.patternProperties));
  const pattern =
    patterns.length === 1 ? (patterns[0] ?? '') : patterns.map((each) => `(?:${each})`).join('|');
  return isAskable('pattern', pattern) ? { ...plain, keywords: { pattern } } : plain;
}

/** What is said of keys where their form cannot be asked for. */
function unaskedKeys(parts: readonly JsonSchema[]): readonly Remark[] {
  return parts.flatMap(({ patternProperties, additionalProperties }) => {
    const patterns = Object.keys(Object(patternProperties));
    const isAsked = additionalProperties === false && patterns.every((each) => isAskable('pattern', each));
    return patterns.length === 0 || isAsked ? [] : remarkOn('patternProperties', patternProperties);
  });
}

function counts(parts: readonly JsonSchema[], keyword: string): readonly number[] {
  return parts
    .map((part) => part[keyword])
    .filter((value): value is number => Number.isInteger(value) && Number(value) >= 0);
}

function countKeywords(parts: readonly JsonSchema[]): JsonSchema {
  const least = counts(parts, 'minProperties');
  const most = counts(parts, 'maxProperties');
  return {
    ...(least.length > 0 ? { minItems: Math.max(...least) } : {}),
    ...(most.length > 0 ? { maxItems: Math.min(...most) } : {}),
  };
}

function countRemarks(parts: readonly JsonSchema[]): readonly Remark[] {
  return parts.flatMap((part) =>
    ['minProperties', 'maxProperties', 'propertyNames'].flatMap((keyword) =>
      part[keyword] === undefined ? [] : remarkOn(keyword, part[keyword]),
    ),
  );
}

/** A list: of items that are all alike, or of places that differ. */
export function listPlan(parts: readonly JsonSchema[], reader: PartReader): Plan {
  const { keywords, remarks: unsaid } = boundsOf(parts, 'array');
  const remarks = [...remarksOnGroup(parts, 'array'), ...unsaid];
  const least = countOf(keywords.minItems) ?? 0;
  const most = countOf(keywords.maxItems) ?? Number.POSITIVE_INFINITY;
  if (least > most) return NEVER;
  const places = Math.min(most, Math.max(0, ...parts.map((part) => placesOf(part).length)));
  if (places > 0) return tuplePlan(parts, { reader, places, least, most, remarks });
  const items = reader.use(parts.flatMap(restOf));
  const isEmpty = items.slot.isFilled && items.slot.plan.kind === 'never';
  if (isEmpty && least > 0) return NEVER;
  const list: ListPlan = { kind: 'list', ...UNWORDED, items, keywords, remarks };
  return isEmpty ? { ...list, items: useOf(NOTHING_AT_ALL), keywords: { maxItems: 0 } } : list;
}

const NOTHING_AT_ALL: Plan = { kind: 'scalar', ...UNWORDED, type: 'null', keywords: {} };

/** The largest count that is one. */
function countOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined;
}

/** The schemas of the first places: `prefixItems`, or `items` as a list, as draft 7 has it. */
function placesOf({ prefixItems, items }: JsonSchema): readonly JsonSchema[] {
  const list = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : [];
  return list.map(asSchema);
}

/** The schema of the items that have no place of their own, where one is given: one or none. */
function restOf({ items, additionalItems, unevaluatedItems }: JsonSchema): readonly JsonSchema[] {
  const rest = Array.isArray(items) ? additionalItems : items;
  const given = rest === undefined ? unevaluatedItems : rest;
  return given === undefined ? [] : [asSchema(given)];
}

interface TupleParts {
  readonly reader: PartReader;
  readonly places: number;
  readonly least: number;
  readonly most: number;
  readonly remarks: readonly Remark[];
}

function tuplePlan(parts: readonly JsonSchema[], tuple: TupleParts): Plan {
  const { reader, least, most } = tuple;
  const fields: Field[] = [];
  for (let index = 0; index < tuple.places; index++) {
    const schemas = parts.flatMap((part) => placesOf(part)[index] ?? restOf(part));
    const use = reader.use(schemas);
    // Nothing may stand here, and so nothing after it.
    if (use.slot.isFilled && use.slot.plan.kind === 'never') break;
    fields.push({ name: placeName(index), use, isRequired: index < least });
  }
  const isCut = fields.length < tuple.places;
  const given = parts.flatMap(restOf);
  const rest = given.length === 0 || isCut || most <= fields.length ? undefined : reader.use(given);
  const isOpen = rest !== undefined && !(rest.slot.isFilled && rest.slot.plan.kind === 'never');
  if (!isOpen && least > fields.length) return isCut || given.length > 0 ? NEVER : closedTuple(fields, tuple);
  if (rest === undefined || !isOpen) return closedTuple(fields, tuple);
  const keywords = {
    ...(least > fields.length ? { minItems: least - fields.length } : {}),
    ...(Number.isFinite(most) ? { maxItems: most - fields.length } : {}),
  };
  const list: ListPlan = { kind: 'list', ...UNWORDED, items: rest, keywords };
  const use = { ...useOf(list), description: 'The items after these.' };
  return { ...closedTuple(fields, tuple), rest: { name: 'more_items', use } };
}

function closedTuple(fields: readonly Field[], { least, remarks }: TupleParts): Plan & { kind: 'tuple' } {
  const unsaid = least > fields.length ? remarkOn('minItems', least) : [];
  return { kind: 'tuple', ...UNWORDED, edits: ['tuple'], fields, remarks: [...remarks, ...unsaid] };
}
