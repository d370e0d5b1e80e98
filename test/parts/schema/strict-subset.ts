import type { JsonSchema } from 'toolwright';

// The subset of JSON Schema that OpenAI documents for `strict: true`, as a list of allowed keywords and the
// limits of a schema. It is independent of the compiler and used by tests and by the evaluation of real tools.

type Place = readonly (string | number)[];
type Tell = (place: Place, problem: string) => void;

const TEXT = { pattern: isRegular, format: isFormat };
const NUMBER = {
  multipleOf: isNumber,
  minimum: isNumber,
  maximum: isNumber,
  exclusiveMinimum: isNumber,
  exclusiveMaximum: isNumber,
};
type Rules = Readonly<Record<string, (value: unknown) => boolean>>;

const KEYWORDS_OF: Readonly<Record<string, Rules>> = {
  string: TEXT,
  number: NUMBER,
  integer: NUMBER,
  boolean: {},
  null: {},
  array: { minItems: isCount, maxItems: isCount },
  object: {},
};
const FORMATS = ['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid'];

/** All parts of a schema outside of the subset, with their places. */
export function outsideSubset(root: JsonSchema): readonly string[] {
  const faults: string[] = [];
  const tell: Tell = (place, problem) => faults.push(`${place.join('.') || '(root)'}: ${problem}`);
  if (root.type !== 'object') tell([], 'the root is not an object');
  for (const union of ['anyOf', 'oneOf', 'allOf']) if (union in root) tell([], `${union} at the root`);
  const { $defs = {}, ...whole } = root;
  for (const [name, schema] of Object.entries($defs)) visit(schema, ['$defs', name]);
  visit(whole, []);
  limits(root, tell);
  return faults;

  function visit(schema: unknown, place: Place): void {
    if (!isSchema(schema)) {
      tell(place, 'is not a schema');
      return;
    }
    if ('description' in schema && typeof schema.description !== 'string')
      tell(place, 'description is not text');
    if ('$ref' in schema) reference(schema, place);
    else if ('anyOf' in schema) union(schema, place);
    else typed(schema, place);
  }

  function reference(schema: JsonSchema, place: Place): void {
    if (Object.keys(schema).length > 1) tell(place, '$ref has something beside it');
    if (targetOf(schema.$ref, root) === undefined) tell(place, `${schema.$ref} leads nowhere`);
  }

  function union({ anyOf, description: _, ...others }: JsonSchema, place: Place): void {
    for (const keyword of Object.keys(others)) tell(place, `${keyword} beside anyOf`);
    if (!Array.isArray(anyOf) || anyOf.length === 0) tell(place, 'anyOf is not a list of branches');
    else for (const [index, branch] of anyOf.entries()) visit(branch, [...place, index]);
  }

  function typed({ type, description: _, ...keywords }: JsonSchema, place: Place): void {
    const types = [type].flat();
    const [main, second, ...more] = types.filter((each, index) => each !== 'null' || index === 0);
    if (!Object.hasOwn(KEYWORDS_OF, String(main))) tell(place, `has the type ${JSON.stringify(type)}`);
    else if (second !== undefined || more.length > 0) tell(place, 'has several types');
    const allowed = KEYWORDS_OF[main ?? ''] ?? {};
    for (const [keyword, value] of Object.entries(keywords)) {
      if (keyword === 'enum') constants(value, types, place);
      else if (main === 'array' && keyword === 'items') visit(value, [...place, 'items']);
      else if (main === 'object' && ['properties', 'required', 'additionalProperties'].includes(keyword))
        continue;
      else if (!Object.hasOwn(allowed, keyword)) tell(place, `${keyword} is not permitted`);
      else if (!allowed[keyword]?.(value)) tell(place, `${keyword} is ${JSON.stringify(value)}`);
    }
    if (main === 'array' && !('items' in keywords)) tell(place, 'has no items');
    if (main === 'object') object(keywords, place);
  }

  function object({ properties, required, additionalProperties }: JsonSchema, place: Place): void {
    if (additionalProperties !== false) tell(place, 'additionalProperties is not false');
    if (typeof properties !== 'object' || properties === null) {
      tell(place, 'has no properties');
      return;
    }
    const names = Object.keys(properties);
    const isComplete = Array.isArray(required) && names.every((name) => required.includes(name));
    if (!isComplete || required?.length !== names.length) tell(place, 'not every property is required');
    for (const name of names) visit(properties[name], [...place, name]);
  }

  function constants(values: unknown, types: readonly unknown[], place: Place): void {
    const isOfType = (value: unknown): boolean => types.some((type) => fitsType(value, type));
    if (!Array.isArray(values) || values.length === 0) tell(place, 'enum is empty');
    else if (!values.every(isOfType)) tell(place, 'enum has values of another type');
    else if (new Set(values).size < values.length) tell(place, 'enum has a value twice');
  }
}

function isSchema(schema: unknown): schema is JsonSchema {
  return typeof schema === 'object' && schema !== null && !Array.isArray(schema);
}

function fitsType(value: unknown, type: unknown): boolean {
  if (type === 'null') return value === null;
  return type === 'integer' ? Number.isInteger(value) : typeof value === type;
}

function isRegular(pattern: unknown): boolean {
  return typeof pattern === 'string' && !/\(\?[=!<]|\\[1-9]|\\k</.test(pattern);
}

function isFormat(format: unknown): boolean {
  return FORMATS.includes(String(format));
}

function isNumber(value: unknown): boolean {
  return typeof value === 'number';
}

function isCount(value: unknown): boolean {
  return Number.isInteger(value) && Number(value) >= 0;
}

function targetOf(reference: string | undefined, root: JsonSchema): JsonSchema | undefined {
  if (reference === '#') return root;
  const name = /^#\/\$defs\/([\w-]+)$/.exec(reference ?? '')?.[1];
  return name !== undefined && Object.hasOwn(root.$defs ?? {}, name) ? root.$defs?.[name] : undefined;
}

const MOST_LEVELS = 10;

/** The documented limits; levels count nested objects and arrays, which is the stricter interpretation. */
function limits(root: JsonSchema, tell: Tell): void {
  let properties = 0;
  let characters = Object.keys(root.$defs ?? {}).join('').length;
  let values = 0;
  const all = [root, ...Object.values(root.$defs ?? {})];
  for (const schema of all) {
    const names = Object.keys(schema.properties ?? {});
    properties += names.length;
    const texts = (schema.enum ?? []).map(String);
    values += texts.length;
    characters += [...names, ...texts].join('').length;
    if (texts.length > 250 && texts.join('').length > 15_000) tell([], 'an enum is too long');
    all.push(...partsOf(schema));
  }
  if (properties > 5_000) tell([], `${properties} properties`);
  if (values > 1_000) tell([], `${values} constants`);
  if (characters > 120_000) tell([], `${characters} characters`);
  if (isDeeper(root, root, { levels: MOST_LEVELS, within: [] })) tell([], `more than ${MOST_LEVELS} levels`);
}

function partsOf({ properties = {}, items, anyOf = [] }: JsonSchema): readonly JsonSchema[] {
  return [...Object.values(properties), ...(isSchema(items) ? [items] : []), ...anyOf];
}

interface Above {
  readonly levels: number;
  /** The definitions on this path; a recursive one has no finite depth and is measured separately. */
  readonly within: readonly string[];
}

function isDeeper(schema: JsonSchema, root: JsonSchema, { levels, within }: Above): boolean {
  const left = schema.type === 'object' || schema.type === 'array' ? levels - 1 : levels;
  if (left < 0) return true;
  if (partsOf(schema).some((part) => isDeeper(part, root, { levels: left, within }))) return true;
  const { $ref } = schema;
  if ($ref === undefined || within.includes($ref)) return false;
  const target = targetOf($ref, root);
  const start = isEndless($ref, root) ? MOST_LEVELS : left;
  return target !== undefined && isDeeper(target, root, { levels: start, within: [...within, $ref] });
}

function isEndless(reference: string, root: JsonSchema): boolean {
  const reached = new Set<string>();
  const enter = (schema: JsonSchema | undefined): void => {
    if (schema?.$ref !== undefined && !reached.has(schema.$ref)) {
      reached.add(schema.$ref);
      enter(targetOf(schema.$ref, root));
    }
    for (const part of schema === undefined ? [] : partsOf(schema)) enter(part);
  };
  enter(targetOf(reference, root));
  return reached.has(reference);
}
