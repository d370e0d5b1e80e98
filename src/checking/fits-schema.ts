import type { JsonSchema } from '../contract/json-schema.js';
import { isRecord } from '../kernel/is-record.js';
import { canonicalJson } from './canonical-json.js';
import { isOfType } from './is-of-type.js';
import { fitsFormat, patternOf } from './json-formats.js';
import { resolveReference } from './resolve-reference.js';

/** A schema, and the whole that its references are relative to. */
interface SchemaPlace {
  readonly schema: JsonSchema | boolean;
  readonly root: JsonSchema;
}

interface Place {
  readonly schema: JsonSchema;
  readonly root: JsonSchema;
  /** How many schemas stand around this one, references followed. */
  readonly level: number;
}

/** Whoever refers to itself without end says nothing. */
const MOST_LEVELS = 300;

/**
 * Whether a value fits a schema, without compiling it: for values that are judged once, such as defaults.
 * `unevaluatedProperties`, `unevaluatedItems` and dynamic references are left to the compiled schema.
 */
export function fitsSchema(value: unknown, { schema, root }: SchemaPlace): boolean {
  return fits(value, schema, { schema: root, root, level: 0 });
}

function fits(value: unknown, schema: unknown, around: Place): boolean {
  if (typeof schema === 'boolean') return schema;
  if (!isRecord(schema) || around.level > MOST_LEVELS) return true;
  const place: Place = { schema, root: around.root, level: around.level + 1 };
  if (schema.nullable === true && value === null) return true;
  return JUDGES.every((judge) => judge(value, place));
}

type Judge = (value: unknown, place: Place) => boolean;

const JUDGES: readonly Judge[] = [fitsItself, fitsTogether, fitsBounds, fitsText, fitsArray, fitsObject];

function fitsItself(value: unknown, { schema }: Place): boolean {
  const { type, const: only, enum: values } = schema;
  if (type !== undefined && !(isFinal(value) && isOfOneType(value, type))) return false;
  if (only !== undefined && !areEqual(value, only)) return false;
  return !Array.isArray(values) || values.some((one) => areEqual(value, one));
}

function isOfOneType(value: unknown, type: string | readonly string[]): boolean {
  return typeof type === 'string' ? isOfType(value, type) : type.some((one) => isOfType(value, one));
}

function isFinal(value: unknown): boolean {
  return typeof value !== 'number' || Number.isFinite(value);
}

function areEqual(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  return canonicalJson(one) === canonicalJson(other);
}

function fitsTogether(value: unknown, place: Place): boolean {
  const { $ref, allOf, anyOf, oneOf, not, if: condition } = place.schema;
  const holds = (part: unknown): boolean => fits(value, part, place);
  if (typeof $ref === 'string' && !holds(resolveReference({ $ref }, place.root))) return false;
  if (Array.isArray(allOf) && !allOf.every(holds)) return false;
  if (Array.isArray(anyOf) && !anyOf.some(holds)) return false;
  if (Array.isArray(oneOf) && oneOf.filter(holds).length !== 1) return false;
  if (not !== undefined && holds(not)) return false;
  if (condition === undefined) return true;
  return holds(holds(condition) ? (place.schema.then ?? true) : (place.schema.else ?? true));
}

function fitsBounds(value: unknown, { schema }: Place): boolean {
  if (typeof value !== 'number') return true;
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
  return (
    value >= numberOr(minimum, Number.NEGATIVE_INFINITY) &&
    value <= numberOr(maximum, Number.POSITIVE_INFINITY) &&
    (typeof exclusiveMinimum !== 'number' || value > exclusiveMinimum) &&
    (typeof exclusiveMaximum !== 'number' || value < exclusiveMaximum) &&
    (typeof multipleOf !== 'number' || Number.isInteger(value / multipleOf))
  );
}

function numberOr(value: unknown, otherwise: number): number {
  return typeof value === 'number' ? value : otherwise;
}

function fitsText(value: unknown, { schema }: Place): boolean {
  if (typeof value !== 'string') return true;
  const { minLength, maxLength, pattern, format } = schema;
  const isBound = minLength !== undefined || maxLength !== undefined;
  if (isBound && !isWithin(lengthOf(value), minLength, maxLength)) return false;
  if (typeof pattern === 'string' && !patternOf(pattern).test(value)) return false;
  return typeof format !== 'string' || fitsFormat(value, format);
}

/** In characters, of which some take two units. */
function lengthOf(text: string): number {
  let length = 0;
  for (const _ of text) length += 1;
  return length;
}

function isWithin(count: number, least: unknown, most: unknown): boolean {
  return count >= numberOr(least, 0) && count <= numberOr(most, Number.POSITIVE_INFINITY);
}

function fitsArray(value: unknown, place: Place): boolean {
  if (!Array.isArray(value)) return true;
  const { items, prefixItems, additionalItems, minItems, maxItems, uniqueItems, contains } = place.schema;
  if (!isWithin(value.length, minItems, maxItems)) return false;
  if (uniqueItems === true && new Set(value.map(canonicalJson)).size < value.length) return false;
  const fixed: readonly unknown[] = Array.isArray(items)
    ? items
    : Array.isArray(prefixItems)
      ? prefixItems
      : [];
  const rest = Array.isArray(items) ? additionalItems : items;
  const each = value.every((item, index) =>
    fits(item, index < fixed.length ? fixed[index] : (rest ?? true), place),
  );
  if (!each || contains === undefined) return each;
  const { minContains = 1, maxContains } = place.schema;
  return isWithin(value.filter((item) => fits(item, contains, place)).length, minContains, maxContains);
}

function fitsObject(value: unknown, place: Place): boolean {
  if (!isRecord(value)) return true;
  const { required = [], minProperties, maxProperties, propertyNames } = place.schema;
  const keys = Object.keys(value);
  if (!isWithin(keys.length, minProperties, maxProperties)) return false;
  if (!required.every((name) => Object.hasOwn(value, name))) return false;
  if (propertyNames !== undefined && !keys.every((key) => fits(key, propertyNames, place))) return false;
  return keys.every((key) => fitsMember(value[key], key, place)) && fitsDependents(value, place);
}

function fitsMember(value: unknown, key: string, place: Place): boolean {
  const { properties = {}, patternProperties, additionalProperties = true } = place.schema;
  const own = Object.hasOwn(properties, key) ? [properties[key]] : [];
  const matching = Object.entries(isRecord(patternProperties) ? patternProperties : {})
    .filter(([pattern]) => patternOf(pattern).test(key))
    .map(([, schema]) => schema);
  const judged: readonly unknown[] = [...own, ...matching];
  return (judged.length > 0 ? judged : [additionalProperties]).every((schema) => fits(value, schema, place));
}

function fitsDependents(value: Readonly<Record<string, unknown>>, place: Place): boolean {
  const { dependentRequired, dependentSchemas, dependencies } = place.schema;
  const all = [dependentRequired, dependentSchemas, dependencies].filter(isRecord).flatMap(Object.entries);
  return all.every(([key, needed]) => {
    if (!Object.hasOwn(value, key)) return true;
    if (Array.isArray(needed)) return needed.every((name) => Object.hasOwn(value, String(name)));
    return fits(value, needed, place);
  });
}
