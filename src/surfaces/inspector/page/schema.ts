/** A JSON Schema. */
export type Schema = Readonly<Record<string, unknown>>;

/** The kind of form field for a schema; `json` if a form cannot represent the schema. */
export type FieldKind =
  | { readonly kind: 'fixed'; readonly value: unknown }
  | { readonly kind: 'choice'; readonly values: readonly unknown[] }
  | { readonly kind: 'union'; readonly alternatives: readonly Schema[] }
  | {
      readonly kind: 'object';
      readonly properties: readonly (readonly [string, Schema])[];
      readonly required: ReadonlySet<string>;
    }
  | { readonly kind: 'list'; readonly prefix: readonly Schema[]; readonly items: Schema | undefined }
  | { readonly kind: 'text' | 'number' | 'boolean' | 'json' };

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Follows `$ref`, at most 20 times, and merges the keywords beside it. */
export function resolved(schema: Schema, root: Schema): Schema {
  let current = schema;
  for (let step = 0; step < 20 && typeof current.$ref === 'string'; step += 1) {
    const { $ref, ...beside } = current;
    const target = targetOf(String($ref), root);
    if (target === undefined) return beside;
    current = { ...target, ...beside };
  }
  return current;
}

function targetOf(reference: string, root: Schema): Schema | undefined {
  if (!reference.startsWith('#')) return undefined;
  let target: unknown = root;
  for (const part of decodeURIComponent(reference.slice(1)).split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (!(isSchema(target) || Array.isArray(target)) || !Object.hasOwn(target, key)) return undefined;
    target = (target as Schema)[key];
  }
  return isSchema(target) ? target : undefined;
}

function list(value: unknown): readonly Schema[] {
  return Array.isArray(value) ? value.map((member) => (isSchema(member) ? member : {})) : [];
}

/** Keywords that a form cannot represent. */
const ONLY_JSON = ['allOf', 'not', 'if', 'patternProperties', 'dependentSchemas', 'contains', '$dynamicRef'];

/** The form field for a schema. It does not validate; the call does. */
export function fieldKind(given: Schema, root: Schema): FieldKind {
  const schema = resolved(given, root);
  if ('const' in schema) return { kind: 'fixed', value: schema.const };
  if (Array.isArray(schema.enum)) return { kind: 'choice', values: schema.enum };
  const alternatives = list(schema.anyOf ?? schema.oneOf);
  const { anyOf: _1, oneOf: _2, type, ...shared } = schema;
  if (alternatives.length > 0)
    return { kind: 'union', alternatives: alternatives.map((one) => ({ ...beside(shared, type), ...one })) };
  if (Array.isArray(type))
    return type.length === 1
      ? fieldKind({ ...shared, type: type[0] }, root)
      : { kind: 'union', alternatives: type.map((one) => ({ ...shared, type: one })) };
  if (ONLY_JSON.some((keyword) => keyword in schema)) return { kind: 'json' };
  return plainKind(schema, type);
}

/** Keywords beside a union apply to each alternative. */
function beside(shared: Schema, type: unknown): Schema {
  const { title: _1, description: _2, default: _3, $defs: _4, ...others } = shared;
  return type === undefined ? others : { type, ...others };
}

function plainKind(schema: Schema, type: unknown): FieldKind {
  if (type === 'null') return { kind: 'fixed', value: null };
  if (type === 'boolean') return { kind: 'boolean' };
  if (type === 'integer' || type === 'number') return { kind: 'number' };
  if (type === 'string') return { kind: 'text' };
  if (type === 'array') {
    const items = isSchema(schema.items) ? schema.items : undefined;
    return { kind: 'list', prefix: list(schema.prefixItems), items };
  }
  const { properties } = schema;
  if (!isSchema(properties) || Object.keys(properties).length === 0)
    return type === 'object' && schema.additionalProperties === false
      ? { kind: 'object', properties: [], required: new Set() }
      : { kind: 'json' };
  const known = Object.entries(properties).map(([key, part]) => [key, isSchema(part) ? part : {}] as const);
  const required = new Set(Array.isArray(schema.required) ? schema.required.map(String) : []);
  return { kind: 'object', properties: known, required };
}

/** The initial value: required members and defaults. */
export function firstValue(given: Schema, root: Schema, depth = 0): unknown {
  const schema = resolved(given, root);
  if ('default' in schema) return schema.default;
  const field = fieldKind(schema, root);
  if (field.kind === 'fixed') return field.value;
  if (field.kind === 'choice') return field.values[0];
  if (field.kind === 'union') return firstValue(field.alternatives[0] ?? {}, root, depth + 1);
  if (field.kind === 'list') return field.prefix.map((item) => firstValue(item, root, depth + 1));
  if (field.kind === 'text') return '';
  if (field.kind === 'boolean') return false;
  if (field.kind !== 'object') return depth === 0 ? {} : undefined;
  // A schema that requires itself has no finite value.
  if (depth > DEEPEST) return {};
  const members = field.properties
    .filter(([key]) => field.required.has(key))
    .map(([key, part]) => [key, firstValue(part, root, depth + 1)] as const);
  return Object.fromEntries(members.filter(([, member]) => member !== undefined));
}

const DEEPEST = 6;

/** A short name for the type of a schema. */
export function typeName(given: Schema, root: Schema): string {
  const schema = resolved(given, root);
  const reference = typeof given.$ref === 'string' ? String(given.$ref.split('/').at(-1)) : undefined;
  const { title, type, items } = schema;
  if (typeof title === 'string') return title;
  if ('const' in schema) return JSON.stringify(schema.const);
  if (Array.isArray(schema.enum)) return 'enum';
  const alternatives = list(schema.anyOf ?? schema.oneOf);
  if (alternatives.length > 0) return shortened(unionOf(alternatives, root).names.join(' or '));
  if (type === 'array' && isSchema(items)) return `list of ${typeName(items, root)}`;
  if (reference !== undefined && type === 'object') return reference;
  if (Array.isArray(type)) return type.join(' or ');
  return typeof type === 'string' ? type : 'anything';
}

/** How people can tell the alternatives of a union apart. */
interface Union {
  readonly names: readonly string[];
  /** The discriminator, if there is one. */
  readonly key: string | undefined;
}

export function unionOf(alternatives: readonly Schema[], root: Schema): Union {
  const [first = {}, ...others] = alternatives;
  const key = Object.keys(Object(resolved(first, root).properties)).find((candidate) => {
    const values = [first, ...others].map((alternative) => constantOf(alternative, root, candidate));
    return values.every((value) => value !== undefined) && new Set(values).size === values.length;
  });
  const names = alternatives.map((alternative) => alternativeName(alternative, root, key));
  const isOnly = (name: string) => names.filter((other) => other === name).length === 1;
  return { key, names: names.map((name, index) => (isOnly(name) ? name : `${name} ${index + 1}`)) };
}

/** The only value that a property can have. */
function constantOf(alternative: Schema, root: Schema, key: string): unknown {
  const { properties } = resolved(alternative, root);
  if (!isSchema(properties) || !isSchema(properties[key])) return undefined;
  const { const: only, enum: values } = resolved(properties[key], root);
  return Array.isArray(values) && values.length === 1 ? values[0] : only;
}

const LONGEST_NAME = 48;

function alternativeName(alternative: Schema, root: Schema, key: string | undefined): string {
  const schema = resolved(alternative, root);
  if (typeof schema.title === 'string') return schema.title;
  if (key !== undefined) return String(constantOf(alternative, root, key));
  if (Array.isArray(schema.enum)) return shortened(schema.enum.map(String).join(' | '));
  const keys = Object.keys(Object(schema.properties));
  if (typeof alternative.$ref !== 'string' && keys.length > 0) return shortened(`{ ${keys.join(', ')} }`);
  return typeName(alternative, root);
}

function shortened(name: string): string {
  return name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME)}…` : name;
}

/** The initial value of an alternative, with its discriminator. */
export function firstOf(
  alternative: Schema,
  { root, key }: { readonly root: Schema; readonly key: string | undefined },
): unknown {
  const value = firstValue(alternative, root, 1);
  return key === undefined ? value : { [key]: constantOf(alternative, root, key), ...Object(value) };
}

interface Alternatives {
  readonly alternatives: readonly Schema[];
  readonly root: Schema;
  /** The chosen alternative; it stays if no other fits better. */
  readonly at: number | undefined;
}

/** The alternative that fits a value best. */
export function alternativeOf(value: unknown, { alternatives, root, at }: Alternatives): number {
  if (at !== undefined && value === undefined) return at;
  const found = alternatives.map((alternative) => likeness(value, resolved(alternative, root), root));
  const most = Math.max(...found);
  return at !== undefined && found[at] === most ? at : Math.max(0, found.indexOf(most));
}

function likeness(value: unknown, schema: Schema, root: Schema): number {
  if ('const' in schema) return schema.const === value ? 10 : 0;
  if (Array.isArray(schema.enum)) return schema.enum.includes(value) ? 10 : 0;
  const alternatives = list(schema.anyOf ?? schema.oneOf);
  if (alternatives.length > 0)
    return Math.max(...alternatives.map((one) => likeness(value, resolved(one, root), root)));
  const { type, properties } = schema;
  if (value === null) return type === 'null' ? 10 : 0;
  if (Array.isArray(value)) return type === 'array' ? 5 : 0;
  if (typeof value === 'number') return type === 'number' || type === 'integer' ? 5 : 0;
  if (typeof value === 'string' || typeof value === 'boolean') return type === typeof value ? 5 : 0;
  if (!isSchema(value) || !isSchema(properties)) return type === 'object' ? 2 : 0;
  const known = Object.entries(value).filter(([key]) => Object.hasOwn(properties, key));
  const fixed = known.map(([key, member]) => {
    const part = resolved((properties as Readonly<Record<string, Schema>>)[key] ?? {}, root);
    return 'const' in part ? (part.const === member ? 5 : -20) : 1;
  });
  return fixed.reduce((sum, points) => sum + points, 3);
}

/** The children of a schema in a tree. */
export function partsOf(
  given: Schema,
  root: Schema,
): readonly { readonly name: string; readonly schema: Schema; readonly isRequired?: boolean }[] {
  const field = fieldKind(given, root);
  if (field.kind === 'object')
    return field.properties.map(([name, schema]) => ({ name, schema, isRequired: field.required.has(name) }));
  if (field.kind === 'list')
    return [
      ...field.prefix.map((schema, index) => ({ name: `[${index}]`, schema })),
      ...(field.items ? [{ name: '[…]', schema: field.items }] : []),
    ];
  if (field.kind === 'union')
    return field.alternatives.map((schema, index) => ({ name: `alternative ${index + 1}`, schema }));
  return [];
}
