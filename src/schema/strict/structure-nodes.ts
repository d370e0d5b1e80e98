import type { JsonSchema } from '../../contract/json-schema.js';
import { isRecord } from '../../kernel/json.js';
import { isExpressible, keywordsFor, regularExpression, remarkOn, withRemarks } from './keyword-remarks.js';
import {
  asSchema,
  type EditKind,
  type Field,
  isNever,
  NEVER,
  type Node,
  type NodeReader,
  nodeOf,
  placeName,
  target,
  VALUE,
} from './node.js';

/** An object with named properties, with arbitrary keys, or with both. */
export function objectNode(
  parts: readonly JsonSchema[],
  { reader, isRoot }: { readonly reader: NodeReader; readonly isRoot: boolean },
): Node {
  const names = propertyNames(parts);
  const fields: Field[] = [];
  for (const name of names) {
    const isRequired = parts.some(({ required }) => Array.isArray(required) && required.includes(name));
    const node = reader.read(schemasOf(name, parts));
    if (!isNever(node)) fields.push({ name, node, isRequired });
    else if (isRequired) return NEVER;
  }
  const { remarks } = keywordsFor(parts, 'object');
  const counts = parts.flatMap((part) =>
    ['minProperties', 'maxProperties', 'propertyNames'].flatMap((keyword) =>
      remarkOn(keyword, part[keyword]),
    ),
  );
  const others = othersOf(parts, { hasNames: names.length > 0, isRoot, takesOthers: reader.takesOthers });
  if (others !== 'record') {
    const edits = others === undefined ? [] : [{ kind: others }];
    return withRemarks(nodeOf({ type: 'object' }, { edits, fields }), [...remarks, ...counts]);
  }
  const hasFields = fields.length > 0;
  if (!hasFields && !isRoot) return withRemarks(recordNode(parts, reader), remarks);
  const record = recordNode(hasFields ? parts.map(withoutCounts) : parts, reader);
  const description = hasFields ? 'Properties beside these.' : 'The properties.';
  let name = hasFields ? 'other_properties' : 'entries';
  while (names.includes(name)) name += '_';
  const rest = {
    name,
    node: nodeOf({}, { description, branches: [record] }),
    isRequired: true,
    isRest: true,
  };
  const node = nodeOf({ type: 'object' }, { edits: [{ kind: 'rest' }], fields: [...fields, rest] });
  return withRemarks(node, hasFields ? [...remarks, ...counts] : remarks);
}

function withoutCounts({ minProperties: _, maxProperties: __, ...part }: JsonSchema): JsonSchema {
  return part;
}

/** All names that are mentioned; in conditions too, unless there is another place for such properties. */
function propertyNames(parts: readonly JsonSchema[]): readonly string[] {
  const named = parts.flatMap(({ properties, required }) => [
    ...Object.keys(properties ?? {}),
    ...(Array.isArray(required) ? required.filter((name) => typeof name === 'string') : []),
  ]);
  const isOpen = parts.some((part) => schemasOfOthers(part).length > 0);
  const conditional = isOpen ? [] : conditionalParts(parts);
  return [...new Set([...named, ...conditional.flatMap(({ properties }) => Object.keys(properties ?? {}))])];
}

function conditionalParts(parts: readonly JsonSchema[]): readonly JsonSchema[] {
  return parts.flatMap(({ then, else: otherwise, dependentSchemas, dependencies }) =>
    [then, otherwise, Object.values(Object(dependentSchemas)), Object.values(Object(dependencies))]
      .flat()
      .filter(isRecord),
  );
}

/** Every schema that a property has to fit. A schema in a condition counts only if it is the only one. */
function schemasOf(name: string, parts: readonly JsonSchema[]): readonly JsonSchema[] {
  const certain = parts.flatMap((part) => {
    const { properties, patternProperties, additionalProperties } = part;
    const own = ownSchema(properties, name);
    const matching = Object.entries(Object(patternProperties)).flatMap(
      ([pattern, schema]: readonly [string, unknown]) =>
        regularExpression(pattern)?.test(name) ? [asSchema(schema)] : [],
    );
    const found = [...own, ...matching];
    return found.length > 0 || additionalProperties === undefined ? found : [asSchema(additionalProperties)];
  });
  const isNamed = parts.some(({ required }) => Array.isArray(required) && required.includes(name));
  if (certain.length > 0 || isNamed) return certain;
  const conditional = conditionalParts(parts).flatMap(({ properties }) => ownSchema(properties, name));
  return conditional.length === 1 ? conditional : [];
}

function ownSchema(properties: JsonSchema['properties'] = {}, name: string): readonly JsonSchema[] {
  return Object.hasOwn(properties, name) ? [asSchema(properties[name])] : [];
}

/** What becomes of properties without a field: a record, or nothing, which is an edit unless the schema states it. */
function othersOf(
  parts: readonly JsonSchema[],
  given: { readonly hasNames: boolean; readonly isRoot: boolean; readonly takesOthers: boolean },
): 'record' | EditKind | undefined {
  const isClosed = parts.some(
    ({ additionalProperties, patternProperties, unevaluatedProperties }) =>
      unevaluatedProperties === false ||
      (additionalProperties === false && Object.keys(Object(patternProperties)).length === 0),
  );
  if (isClosed) return undefined;
  const schemas = parts.flatMap(schemasOfOthers);
  if (schemas.length > 0) {
    const areDescribed = schemas.some((schema) => Object.keys(schema).length > 0);
    return given.takesOthers || !given.hasNames || areDescribed ? 'record' : 'narrowed';
  }
  // An object of which nothing is known may hold anything; a root of which nothing is known takes nothing.
  const isUnknown = parts.every(({ properties }) => properties === undefined);
  return !given.hasNames && !given.isRoot && isUnknown ? 'record' : 'closed';
}

/** An object with arbitrary keys. */
function recordNode(parts: readonly JsonSchema[], reader: NodeReader): Node {
  const stated = parts.map(schemasOfOthers).filter((schemas) => schemas.length > 0);
  const areSingle = stated.every((schemas) => schemas.length === 1);
  const values = areSingle
    ? reader.read(stated.flat())
    : reader.union(stated.flat().map((schema) => reader.read([schema])));
  const counts = parts.map(({ minProperties: minItems, maxProperties: maxItems }) => ({
    minItems,
    maxItems,
  }));
  const { keywords } = keywordsFor(counts, 'array');
  const key = keyNode(parts, reader);
  const patterns = parts.flatMap(({ patternProperties }) => remarkOn('patternProperties', patternProperties));
  const remarks = 'pattern' in key.keywords ? [] : patterns;
  const isAny = values === reader.read([]) && Object.keys({ ...keywords, ...key.keywords }).length < 2;
  if (isAny && key.description === '')
    return withRemarks(
      nodeOf({}, { edits: [{ kind: 'pairs' }, { kind: 'anything' }], branches: [reader.entries] }),
      remarks,
    );
  const pair = [
    { name: 'key', node: key, isRequired: true },
    { name: VALUE, node: values, isRequired: true },
  ];
  const items = nodeOf({ type: 'object' }, { fields: pair });
  const edits = [{ kind: 'pairs' }] as const;
  return withRemarks(nodeOf({ type: 'array', ...keywords }, { edits, standsFor: 'record', items }), remarks);
}

/** The schemas for properties without a name; empty if there are no such properties. */
function schemasOfOthers(part: JsonSchema): readonly JsonSchema[] {
  const byPattern = Object.values(Object(part.patternProperties)).map(asSchema);
  const other = part.additionalProperties ?? part.unevaluatedProperties;
  if (other === undefined) return byPattern.length > 0 ? [...byPattern, {}] : [];
  return other === false ? byPattern : [...byPattern, asSchema(other)];
}

/** The node of keys, as far as a strict schema can express it. */
function keyNode(parts: readonly JsonSchema[], reader: NodeReader): Node {
  const text = nodeOf({ type: 'string' });
  const names = parts.flatMap(({ propertyNames: schema }) =>
    schema === undefined ? [] : [asSchema(schema)],
  );
  if (names.length > 0) {
    const node = target(reader.read([{ type: 'string' }, ...names]));
    return node.keywords.type === 'string' ? node : text;
  }
  const [only, ...others] = parts.filter(({ patternProperties }) => patternProperties !== undefined);
  if (only?.additionalProperties !== false || others.length > 0) return text;
  const patterns = Object.keys(Object(only.patternProperties));
  const pattern = patterns.length === 1 ? patterns[0] : patterns.map((each) => `(?:${each})`).join('|');
  return isExpressible('pattern', pattern) ? nodeOf({ type: 'string', pattern }) : text;
}

/** A list: of items that are all alike, or of places that differ. */
export function listNode(parts: readonly JsonSchema[], reader: NodeReader): Node {
  const { keywords, remarks } = keywordsFor(parts, 'array');
  const least = Number(keywords.minItems ?? 0);
  const most = Number(keywords.maxItems ?? Number.POSITIVE_INFINITY);
  if (least > most) return NEVER;
  const places = Math.min(most, Math.max(0, ...parts.map((part) => placesOf(part).length)));
  if (places > 0) return withRemarks(tupleNode(parts, { reader, places, least, most }), remarks);
  const items = reader.read(parts.flatMap(schemasOfItems));
  if (!isNever(items)) return withRemarks(nodeOf({ type: 'array', ...keywords }, { items }), remarks);
  if (least > 0) return NEVER;
  const empty = nodeOf({ type: 'array', maxItems: 0 }, { items: nodeOf({ type: 'null' }) });
  return withRemarks(empty, remarks);
}

/** The schemas of the first places: `prefixItems`, or a list in `items` as in draft 7. */
function placesOf({ prefixItems, items }: JsonSchema): readonly JsonSchema[] {
  const list = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : [];
  return list.map(asSchema);
}

/** The schema of the items that have no place of their own, if there is one. */
function schemasOfItems({ items, additionalItems, unevaluatedItems }: JsonSchema): readonly JsonSchema[] {
  const given = (Array.isArray(items) ? additionalItems : items) ?? unevaluatedItems;
  return given === undefined ? [] : [asSchema(given)];
}

function tupleNode(
  parts: readonly JsonSchema[],
  {
    reader,
    places,
    least,
    most,
  }: { readonly reader: NodeReader; readonly places: number; readonly least: number; readonly most: number },
): Node {
  const fields: Field[] = [];
  for (let index = 0; index < places; index++) {
    const node = reader.read(parts.flatMap((part) => placesOf(part)[index] ?? schemasOfItems(part)));
    // No value may stand here, and so none after it.
    if (isNever(node)) break;
    fields.push({ name: placeName(index), node, isRequired: index < least });
  }
  const isCut = fields.length < places;
  const given = isCut || most <= fields.length ? [] : parts.flatMap(schemasOfItems);
  const items = given.length > 0 ? reader.read(given) : NEVER;
  const missing = least - fields.length;
  const tuple = nodeOf({ type: 'object' }, { edits: [{ kind: 'tuple' }], standsFor: 'tuple', fields });
  if (isNever(items)) {
    if (missing > 0 && (isCut || given.length > 0)) return NEVER;
    return withRemarks(tuple, missing > 0 ? remarkOn('minItems', least) : []);
  }
  const minItems = missing > 0 ? { minItems: missing } : {};
  const maxItems = Number.isFinite(most) ? { maxItems: most - fields.length } : {};
  const description = 'The items after these.';
  const list = nodeOf({ type: 'array', ...minItems, ...maxItems }, { description, items });
  return {
    ...tuple,
    fields: [...fields, { name: 'more_items', node: list, isRequired: true, isRest: true }],
  };
}
