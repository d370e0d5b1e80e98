import type { ArgumentFault } from '../contract/argument-fault.js';
import type { JsonSchema } from '../contract/json-schema.js';
import { branchTypes } from './branch-types.js';
import { branchValues } from './branch-values.js';
import { chooserOf } from './choose-branch.js';
import { UNTOLD } from './describe-faults.js';
import { losesDigits } from './exact-json.js';
import { isOfType } from './is-of-type.js';
import { MAX_ERRORS, type SchemaError } from './schema-error.js';
import { schemaOrder } from './schema-order.js';

/** A fault, with what hints can be made of. */
export interface ValueFault extends ArgumentFault {
  /** A required key that was not sent. */
  readonly isMissing?: boolean;
  /** The value was none of these. */
  readonly choice?: { readonly sent: unknown; readonly allowed: readonly unknown[] };
}

interface PlacedFault extends ValueFault {
  readonly steps: readonly string[];
}

/**
 * The validator's errors as faults: one for each place and cause, in the order of the schema. Beyond a
 * few hundred they are only counted.
 */
export function describeErrors(errors: readonly SchemaError[], schema: JsonSchema): readonly ValueFault[] {
  const faults = errors.slice(0, MAX_ERRORS).map((error) => describe(error, schema));
  const distinct = [...new Map(faults.map((fault) => [`${fault.path}\n${fault.message}`, fault])).values()];
  const untold = Array<ValueFault>(errors.length - faults.length).fill(UNTOLD);
  return [...schemaOrder(distinct, schema), ...untold];
}

function describe(error: SchemaError, schema: JsonSchema): PlacedFault {
  const { keyword, params } = error;
  const at = placeOf(error.instancePath);
  switch (keyword) {
    case 'required':
      return { ...at(params.missingProperty, 'is required'), isMissing: true };
    case 'additionalProperties':
      return at(params.additionalProperty, 'is not a known property');
    case 'unevaluatedProperties':
      return at(params.unevaluatedProperty, 'is not a known property');
    case 'enum':
      return choice(at, error.data, params.allowedValues as readonly unknown[]);
    case 'const':
      return at(undefined, `must be ${JSON.stringify(params.allowedValue)}`);
    case 'type':
      return wrongType(at, [params.type].flat(), error.data);
    case 'anyOf':
    case 'oneOf':
      return describeUnion(error, schema);
    case 'format':
    case 'pattern':
      return at(undefined, describeText(error));
    default:
      return at(undefined, error.message ?? `must satisfy ${keyword}`);
  }
}

/** What moments look like: models know the other formats by their names. */
const EXAMPLES: Readonly<Record<string, string>> = {
  'date-time': '2026-01-31T09:30:00Z',
  date: '2026-01-31',
  time: '09:30:00Z',
  duration: 'P1DT2H30M',
};
const FORMATS: ReadonlySet<string> = new Set([
  ...Object.keys(EXAMPLES),
  ...['email', 'uri', 'url', 'uuid', 'ipv4', 'ipv6', 'hostname'],
]);

/** Some libraries write the pattern of a format beside it: hundreds of characters that say the same. */
function describeText({ keyword, message, parentSchema }: SchemaError): string {
  const format = String((parentSchema as JsonSchema | undefined)?.format);
  if (!FORMATS.has(format)) return message ?? `must satisfy ${keyword}`;
  const example = Object.hasOwn(EXAMPLES, format) ? `, e.g. ${EXAMPLES[format]}` : '';
  return `must match format "${format}"${example}`;
}

/** What a union says for itself: the tags or values it knows, the types it takes, or that nothing fits. */
function describeUnion({ instancePath, data, schema: union }: SchemaError, schema: JsonSchema): PlacedFault {
  const branches = union as readonly JsonSchema[];
  const at = placeOf(instancePath);
  const chosen = chooserOf(branches, schema)(data);
  if (chosen.kind === 'tag') {
    const { property, tags } = chosen;
    return choice((_key, message) => at(property, message), (data as JsonSchema)[property], tags);
  }
  const values = branchValues(branches, schema);
  if (values !== undefined && !values.includes(data)) return choice(at, data, values);
  const types = branchTypes(branches, schema);
  return types.length === 0 || types.some((type) => isOfType(data, type))
    ? at(undefined, 'must have one of the forms that the schema allows')
    : wrongType(at, types, data);
}

/** Makes a fault of a place, or of a key in it. */
type At = (key: unknown, message: string) => PlacedFault;

function wrongType(at: At, types: readonly unknown[], sent: unknown): PlacedFault {
  const isNumber = types.includes('integer') || types.includes('number');
  const lost = isNumber && losesDigits(sent) ? digitsLost(sent) : '';
  return at(undefined, `must be ${types.join(' or ')}${lost}`);
}

const MOST_DIGITS = 40;

function digitsLost(sent: string): string {
  const digits = sent.length > MOST_DIGITS ? `${sent.slice(0, MOST_DIGITS)}…` : sent;
  return `, and digits of ${digits} would be lost: at most ${Number.MAX_SAFE_INTEGER}`;
}

function choice(at: At, sent: unknown, allowed: readonly unknown[]): PlacedFault {
  return { ...at(undefined, `must be one of: ${listed(allowed)}`), choice: { sent, allowed } };
}

/** Many faults may be of one long enum. */
const lists = new WeakMap<readonly unknown[], string>();

function listed(values: readonly unknown[]): string {
  const text = lists.get(values) ?? values.map((value) => JSON.stringify(value)).join(', ');
  lists.set(values, text);
  return text;
}

/** A JSON pointer with dots: `/items/0/sku` → `items.0.sku`. */
function placeOf(pointer: string): At {
  const place = pointer === '' ? [] : pointer.slice(1).split('/').map(unescaped);
  return (key, message) => {
    const steps = key === undefined ? place : [...place, String(key)];
    return { path: steps.join('.'), message, steps };
  };
}

function unescaped(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~');
}
