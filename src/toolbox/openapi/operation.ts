import type { JsonObject, JsonSchema } from '../../contract/json-schema.js';
import type { AuthorFault } from '../../errors/author-fault.js';
import { isRecord } from '../../kernel/json.js';
import type { WebRequest } from '../network/web-access.js';
import { deadEnd, lookUp, type Operation, type OperationParameter } from './read-document.js';

/** Which argument of a tool is which part of a request. */
interface ArgumentPlan {
  readonly parameters: readonly { readonly argument: string; readonly parameter: OperationParameter }[];
  /** The argument that is the body. */
  readonly body?: string;
}

/** What a tool takes, and where it goes. */
export interface OperationSchema {
  readonly schema: JsonSchema;
  readonly plan: ArgumentPlan;
  /** Of references that lead to no schema. */
  readonly faults: readonly AuthorFault[];
}

/**
 * The arguments of an operation: its parameters by their names, and its body as `body`. Two of one name get their
 * places as well: `id` and `header_id`.
 */
export function operationSchema(operation: Operation, document: JsonObject): OperationSchema {
  const taken = new Set<string>();
  const nameOf = (wanted: string, otherwise: string): string => {
    let name = taken.has(wanted) ? otherwise : wanted;
    while (taken.has(name)) name = `${name}_`;
    taken.add(name);
    return name;
  };
  const parameters = operation.parameters.map((parameter) => ({
    parameter,
    argument: nameOf(parameter.name, `${parameter.place}_${parameter.name}`),
  }));
  const definitions = new Definitions(document);
  const properties: Record<string, JsonSchema> = {};
  for (const { parameter, argument } of parameters)
    properties[argument] = described(definitions.convert(parameter.schema), parameter.description);
  const required = parameters.filter(({ parameter }) => parameter.isRequired).map(({ argument }) => argument);
  const { body } = operation;
  const { faults } = definitions;
  if (body === undefined)
    return { schema: schemaOf(properties, required, definitions), plan: { parameters }, faults };
  const argument = nameOf('body', 'request_body');
  properties[argument] = described(definitions.convert(body.schema), body.description);
  if (body.isRequired) required.push(argument);
  return {
    schema: schemaOf(properties, required, definitions),
    plan: { parameters, body: argument },
    faults,
  };
}

function schemaOf(
  properties: Readonly<Record<string, JsonSchema>>,
  required: readonly string[],
  { used }: Definitions,
): JsonSchema {
  const $defs = used.size === 0 ? {} : { $defs: Object.fromEntries(used) };
  return { type: 'object', properties, required, ...$defs };
}

/** A description beside a `$ref` would be lost to those who read the dialect of 3.0. */
function described(schema: JsonSchema, description: string | undefined): JsonSchema {
  if (description === undefined || schema.description !== undefined) return schema;
  return schema.$ref === undefined ? { ...schema, description } : { allOf: [schema], description };
}

/** What is said for people and tools, or only of answers; and what is not JSON Schema. */
const LEFT_OUT = new Set([
  'example',
  'examples',
  'xml',
  'externalDocs',
  'discriminator',
  'nullable',
  '$schema',
  '$id',
]);
/** Keywords whose values are maps from any name to a schema. */
const MAPS = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']);
/** Keywords whose values are values, not schemas. */
const VALUES = new Set(['enum', 'const', 'default', 'required', 'type', 'dependentRequired']);

/** The schemas of a document as JSON Schema 2020-12; what they refer to is brought along once. */
class Definitions {
  /** By their names in `$defs`. */
  readonly used = new Map<string, JsonSchema>();
  readonly faults: AuthorFault[] = [];
  readonly #names = new Map<string, string>();

  constructor(readonly document: JsonObject) {}

  convert(schema: unknown): JsonSchema {
    if (schema === false) return { not: {} };
    if (!isRecord(schema)) return {};
    if (typeof schema.$ref === 'string') return this.#reference(schema.$ref);
    const converted: Record<string, unknown> = {};
    for (const [key, value] of Object.entries(schema)) {
      if (LEFT_OUT.has(key) || key.startsWith('x-')) continue;
      converted[key] = this.#keyword(key, value);
    }
    withoutReadOnly(converted, schema);
    exclusiveLimits(converted, schema);
    return schema.nullable === true ? orNull(converted) : converted;
  }

  #keyword(key: string, value: unknown): unknown {
    if (VALUES.has(key)) return value;
    if (MAPS.has(key) && isRecord(value))
      return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, this.convert(part)]));
    if (Array.isArray(value)) return value.map((part) => (isRecord(part) ? this.convert(part) : part));
    return isRecord(value) ? this.convert(value) : value;
  }

  #reference(reference: string): JsonSchema {
    const known = this.#names.get(reference);
    if (known !== undefined) return { $ref: `#/$defs/${known}` };
    const fault = deadEnd(this.document, reference);
    if (fault !== undefined) {
      this.faults.push(fault);
      return {};
    }
    const name = this.#nameOf(reference);
    this.#names.set(reference, name);
    // Its place is taken first: it may refer to itself.
    this.used.set(name, {});
    this.used.set(name, this.convert(lookUp(this.document, reference)));
    return { $ref: `#/$defs/${name}` };
  }

  #nameOf(reference: string): string {
    const last = reference.slice(reference.lastIndexOf('/') + 1).replace(/[^\w-]/g, '_') || 'schema';
    let name = last;
    for (let count = 2; this.used.has(name); count += 1) name = `${last}_${count}`;
    return name;
  }
}

/** What only answers have is not asked for. */
function withoutReadOnly(converted: Record<string, unknown>, { properties, required }: JsonObject): void {
  if (!isRecord(properties) || !isRecord(converted.properties)) return;
  const answered = new Set(
    Object.keys(properties).filter(
      (name) => isRecord(properties[name]) && properties[name].readOnly === true,
    ),
  );
  if (answered.size === 0) return;
  converted.properties = Object.fromEntries(
    Object.entries(converted.properties).filter(([name]) => !answered.has(name)),
  );
  if (Array.isArray(required)) converted.required = required.filter((name) => !answered.has(name));
}

/** In 3.0 a limit is said to be exclusive beside it; since 3.1 the exclusive limit is the number. */
function exclusiveLimits(converted: Record<string, unknown>, schema: JsonObject): void {
  for (const [limit, exclusive] of [
    ['minimum', 'exclusiveMinimum'],
    ['maximum', 'exclusiveMaximum'],
  ] as const) {
    if (typeof schema[exclusive] !== 'boolean') continue;
    delete converted[exclusive];
    if (schema[exclusive] !== true || typeof schema[limit] !== 'number') continue;
    delete converted[limit];
    converted[exclusive] = schema[limit];
  }
}

function orNull(schema: Record<string, unknown>): JsonSchema {
  if (Array.isArray(schema.enum) && !schema.enum.includes(null)) schema.enum = [...schema.enum, null];
  if (typeof schema.type === 'string') return { ...schema, type: [schema.type, 'null'] };
  return { anyOf: [schema, { type: 'null' }] };
}

/** A credential and how it is sent. */
type Credential =
  | { readonly kind: 'header' | 'query' | 'cookie'; readonly name: string; readonly value: string }
  | { readonly kind: 'bearer' | 'basic'; readonly value: string };

/** What a request is made of. */
interface RequestParts {
  readonly operation: Operation;
  readonly plan: ArgumentPlan;
  readonly args: JsonObject;
  /** Base address, with or without `/` at its end. */
  readonly server: string;
  readonly credentials: readonly Credential[];
  readonly headers: Readonly<Record<string, string>>;
}

/** The request of a call. Arguments stay in their places: none reaches another part of the address. */
export function buildRequest(parts: RequestParts): WebRequest {
  const { operation, plan, args, credentials } = parts;
  const query: string[] = [];
  const cookies: string[] = [];
  const headers: Record<string, string> = {
    accept: 'application/json, text/*;q=0.9, */*;q=0.5',
    ...parts.headers,
  };
  let path = operation.path;
  for (const { argument, parameter } of plan.parameters) {
    const value = args[argument];
    if (value === undefined) continue;
    const { name, place } = parameter;
    if (place === 'path') path = path.replaceAll(`{${name}}`, pathPart(value, parameter));
    if (place === 'query') query.push(...pairs(value, parameter).map((pair) => pairText(pair, parameter)));
    if (place === 'header') headers[name.toLowerCase()] = oneLine(listText(value, parameter));
    if (place === 'cookie') cookies.push(...pairs(value, parameter).map((pair) => pairText(pair, parameter)));
  }
  for (const credential of credentials) addCredential(credential, { headers, query, cookies });
  if (cookies.length > 0) headers.cookie = cookies.join('; ');
  const search = query.length === 0 ? '' : `?${query.join('&')}`;
  const url = `${parts.server.replace(/\/$/, '')}${path}${search}`;
  const body = plan.body === undefined ? undefined : args[plan.body];
  const method = operation.method.toUpperCase();
  if (body === undefined || operation.body === undefined) return { url, method, headers };
  headers['content-type'] = operation.body.type;
  return { url, method, headers, body: bodyText(body, operation.body.type) };
}

/** `..` and `.` are resolved by whoever reads an address, however they are written: they are no parts of a path. */
function pathPart(value: unknown, parameter: OperationParameter): string {
  const { name, style, explode } = parameter;
  const items = Array.isArray(value) ? value.map((item) => encodeURIComponent(plainText(item))) : undefined;
  const listed = items?.join(',') ?? listText(value, parameter, encodeURIComponent);
  let part = listed;
  if (style === 'label') part = `.${explode && items ? items.join('.') : listed}`;
  if (style === 'matrix')
    part = explode && items ? items.map((item) => `;${name}=${item}`).join('') : `;${name}=${listed}`;
  if (!/^(?:\.|%2e){0,2}$/i.test(part)) return part;
  throw new Error(`${name} must not be '${plainText(value)}': it is a part of a path.`);
}

type Pair = readonly [name: string, value: string];

/** A value as the pairs of a query or of cookies (OpenAPI 3.1, Style Examples). */
function pairs(value: unknown, parameter: OperationParameter): readonly Pair[] {
  const { name, style, explode, isJson } = parameter;
  if (isJson) return [[name, JSON.stringify(value)]];
  if (Array.isArray(value)) {
    if (style === 'form' && explode) return value.map((item) => [name, plainText(item)]);
    return [[name, value.map(plainText).join(SEPARATORS[style] ?? ',')]];
  }
  if (!isRecord(value)) return [[name, plainText(value)]];
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  if (style === 'deepObject') return entries.map(([key, item]) => [`${name}[${key}]`, plainText(item)]);
  if (explode) return entries.map(([key, item]) => [key, plainText(item)]);
  return [[name, entries.flatMap(([key, item]) => [key, plainText(item)]).join(SEPARATORS[style] ?? ',')]];
}

const SEPARATORS: Readonly<Record<string, string>> = { spaceDelimited: ' ', pipeDelimited: '|' };

function pairText([name, value]: Pair, { allowReserved }: OperationParameter): string {
  const encoded = encodeURIComponent(value);
  // What is reserved but not a separator of pairs may stay as it is.
  const text = allowReserved ? encoded.replace(/%(?:3A|2F|3F|40|24|2C|3B)/g, decodeURIComponent) : encoded;
  return `${encodeURIComponent(name)}=${text}`;
}

/** A value of the style `simple`: `a,b` or `key,value`, or with `explode` `key=value`. */
function listText(
  value: unknown,
  { explode, isJson }: OperationParameter,
  encode: (text: string) => string = (text) => text,
): string {
  if (isJson) return encode(JSON.stringify(value));
  if (Array.isArray(value)) return value.map((item) => encode(plainText(item))).join(',');
  if (!isRecord(value)) return encode(plainText(value));
  return Object.entries(value)
    .map(([key, item]) => `${encode(key)}${explode ? '=' : ','}${encode(plainText(item))}`)
    .join(',');
}

function plainText(value: unknown): string {
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value);
}

/** A header has one line of Latin-1; anything else would begin another header, or be refused by Node. */
function oneLine(text: string): string {
  return text.replace(/[^\t -~\x80-\xff]+/g, ' ');
}

function bodyText(body: unknown, type: string): string {
  if (/json\b/i.test(type)) return JSON.stringify(body);
  if (!/x-www-form-urlencoded/i.test(type)) return plainText(body);
  const entries = isRecord(body) ? Object.entries(body) : [];
  const fields = entries.flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((item): Pair => [name, plainText(item)]),
  );
  const form = new URLSearchParams();
  for (const [name, value] of fields) form.append(name, value);
  return form.toString();
}

interface Parts {
  readonly headers: Record<string, string>;
  readonly query: string[];
  readonly cookies: string[];
}

function addCredential(credential: Credential, { headers, query, cookies }: Parts): void {
  const { value } = credential;
  switch (credential.kind) {
    case 'bearer':
      headers.authorization = `Bearer ${value}`;
      return;
    case 'basic':
      headers.authorization = `Basic ${Buffer.from(value).toString('base64')}`;
      return;
    case 'header':
      headers[credential.name.toLowerCase()] = value;
      return;
    case 'query':
      query.push(`${encodeURIComponent(credential.name)}=${encodeURIComponent(value)}`);
      return;
    case 'cookie':
      cookies.push(`${encodeURIComponent(credential.name)}=${encodeURIComponent(value)}`);
  }
}
