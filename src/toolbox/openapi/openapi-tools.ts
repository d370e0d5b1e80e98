import type { JsonObject, JsonSchema } from '../../core/contract/json-schema.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import type { ToolContext } from '../../core/contract/tool-context.js';
import { ToolResult } from '../../core/contract/tool-result.js';
import { type AuthorFault, checkOptions, ToolDeclarationError } from '../../core/errors/author-fault.js';
import { freeName } from '../../core/kernel/free-name.js';
import { isRecord, keyOfStep, pointerStep } from '../../core/kernel/json.js';
import {
  ADDRESS,
  either,
  FILLED_TEXT,
  FUNCTION,
  HEADERS,
  hidden,
  instanceOf,
  LIST,
  type OptionRule,
  optionTable,
  shown,
  TEXT,
} from '../../core/kernel/options.js';
import { defineTool } from '../../tools/discovery/define-tool.js';
import { WebAccess, type WebRequest, type WebResponse } from '../network/web-access.js';

/** A credential: a token, `user:password` for `basic`, or a function that returns it for a call. */
export type AuthSource = string | ((context: ToolContext) => string | Promise<string>);

/** Options of {@link toolsFromOpenApi}. */
export interface OpenApiOptions {
  /** Base URL; default: the document's first server. A server in a private network must be named here. */
  readonly server?: string;
  /** Credentials by the names of the document's security schemes. */
  readonly auth?: Readonly<Record<string, AuthSource>>;
  /** The operations to include: their ids, or a function. Default: all that are not deprecated. */
  readonly include?: readonly string[] | ((operation: Operation) => boolean);
  /** A prefix for the names of all tools: `shop` makes `shop_list_orders`. */
  readonly prefix?: string;
  /** Headers of every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The client for requests; default: a client that connects only to the server. */
  readonly web?: WebAccess;
}

/** An unset variable must not be sent as the text `undefined`. Errors name the credentials, never their values. */
const CREDENTIALS: OptionRule = {
  accepts: (value) => isRecord(value) && Object.values(value).every(isAuthSource),
  fix: "{ api_key: 'k-1' }",
  isSecret: true,
  explain: (value, option) =>
    Object.entries(isRecord(value) ? value : {})
      .filter(([, source]) => !isAuthSource(source))
      .map(([name, source]) => ({
        option: `${option}.${name}`,
        problem: `${option}.${name} is ${hidden(source)}`,
        fix: `${option}.${name}: a token, or a function that returns it`,
      })),
};

function isAuthSource(source: unknown): boolean {
  return FILLED_TEXT.accepts(source) || FUNCTION.accepts(source);
}

const OPTIONS = optionTable<OpenApiOptions>('toolsFromOpenApi', {
  server: ADDRESS,
  auth: CREDENTIALS,
  include: either(LIST, FUNCTION),
  prefix: TEXT,
  headers: HEADERS,
  web: instanceOf(WebAccess, 'new WebAccess()'),
});

/**
 * Makes tools from the operations of an OpenAPI document, 3.0 or 3.1. Tools are named after operation ids; their
 * arguments are the parameters by name, and the request body as `body`. `GET` is `readOnly`, `DELETE` is `destructive`,
 * `PUT` and `DELETE` are `idempotent`. A status of 400 or more becomes an error result with the server's response; a
 * redirect to another origin is an error, and not followed.
 *
 * @throws ToolDeclarationError (502) with all faults of the included operations; InvalidOptionsError (521).
 *
 * @example
 * ```ts
 * const document = await (await fetch('https://api.example.com/openapi.json')).json();
 * tools.register(...toolsFromOpenApi(document, { auth: { api_key: 'k-1' }, include: ['getPetById'] }));
 * ```
 */
export function toolsFromOpenApi(document: unknown, options: OpenApiOptions = {}): ToolDefinition[] {
  checkOptions(options, OPTIONS);
  if (!isRecord(document) || !/^3\.[01]\./.test(String(document.openapi)))
    throw new ToolDeclarationError([
      faultOf('the document is not an OpenAPI document of version 3.0 or 3.1', 'JSON.parse(…)'),
    ]);
  const { operations, server: named, faults, misplaced } = readDocument(document);
  const { include = ({ isDeprecated }: Operation) => !isDeprecated } = options;
  const included = operations.filter((operation) =>
    typeof include === 'function' ? include(operation) : include.includes(operation.id),
  );
  const places = included.map(({ method, path }) => `${method.toUpperCase()} ${path}`);
  const server = options.server ?? named ?? '';
  const names = toolNames(included, options.prefix);
  const schemas = included.map((operation) => operationSchema(operation, document));
  const noServer = server === '' ? 'the document names no server' : `the server ${server} is not a valid URL`;
  const wrong = [
    ...faults.filter(({ where }) => places.includes(where)),
    ...(options.include === undefined ? misplaced : []),
    ...new Map(schemas.flatMap(({ faults }) => faults).map((fault) => [fault.where, fault])).values(),
    ...missing(included, options),
    ...(ADDRESS.accepts(server) ? [] : [faultOf(noServer, "server: 'https://api.example.com'")]),
    ...places
      .filter((_, index) => (names[index] ?? '').length > 64)
      .map((where) => ({
        where,
        problem: 'its name has more than 64 characters',
        fix: 'a shorter operationId, or no prefix',
      })),
  ];
  if (wrong.length > 0) throw new ToolDeclarationError(wrong);
  const { host } = new URL(server);
  // Only a server from the options may be private: an untrusted document must not reach the application's own network.
  const privateHosts = options.server === undefined ? {} : { privateHosts: [host] };
  const web = options.web ?? new WebAccess({ allow: [host], ...privateHosts });
  return included.map((operation, index) =>
    toolOf(operation, {
      ...(schemas[index] as OperationSchema),
      name: names[index] as string,
      caller: { ...options, server, web },
    }),
  );
}

function faultOf(problem: string, fix: string): AuthorFault {
  return { where: 'toolsFromOpenApi', problem, fix };
}

/** Faults for unknown ids and for schemes without credentials. */
function missing(
  included: readonly Operation[],
  { include, auth = {} }: OpenApiOptions,
): readonly AuthorFault[] {
  const ids = new Set(included.map(({ id }) => id));
  const unknown = typeof include === 'object' ? include.filter((id) => !ids.has(id)) : [];
  return [
    ...unknown.map((id) => ({
      where: `include '${id}'`,
      problem: 'no operation has this id',
      fix: 'an operationId of the document; for an operation without an operationId, its method and path: get /orders',
    })),
    ...included
      .filter(({ security }) => security.length > 0 && schemesFor(security, auth) === undefined)
      .map(({ id, security }) => ({
        where: id,
        problem: 'it needs a credential that auth does not have',
        fix: `auth: { ${security[0]?.map(({ name }) => `${name}: '…'`).join(', ')} }`,
      })),
  ];
}

/** Tool names that every provider accepts; equal names are numbered. */
function toolNames(operations: readonly Operation[], prefix?: string): readonly string[] {
  const names = new Set<string>();
  for (const { id } of operations) {
    const words = id.replace(/[^a-zA-Z0-9_-]+/g, '_').replace(/^_+|_+$/g, '') || 'operation';
    const plain = /^[a-zA-Z_]/.test(words) ? words : `_${words}`;
    names.add(freeName(prefix ? `${prefix}_${plain}` : plain, (name) => names.has(name), '_'));
  }
  return [...names];
}

interface ToolPlan extends OperationSchema {
  readonly name: string;
  readonly caller: OpenApiOptions & { readonly server: string; readonly web: WebAccess };
}

function toolOf(operation: Operation, { name, schema, plan, caller }: ToolPlan): ToolDefinition {
  const { server, headers = {}, auth = {}, web } = caller;
  const { method, path, summary } = operation;
  const texts = [summary, operation.description].filter((text) => text !== undefined);
  // The semantics of HTTP methods (RFC 9110, 9.2).
  const readOnly = method === 'get' || method === 'head' || method === 'options';
  return defineTool({
    name,
    description: texts.length === 0 ? `${method.toUpperCase()} ${path}` : [...new Set(texts)].join('\n\n'),
    parameters: schema,
    annotations: {
      ...(summary !== undefined && { title: summary }),
      readOnly,
      ...(!readOnly && { destructive: method === 'delete' }),
      idempotent: readOnly || method === 'put' || method === 'delete',
      openWorld: true,
    },
    touches: (args) => [
      { action: 'open', url: buildRequest({ operation, plan, args, server, headers, credentials: [] }).url },
    ],
    execute: async (args: JsonObject, context) => {
      const schemes = schemesFor(operation.security, auth) ?? [];
      const credentials = await Promise.all(
        schemes.map(async ({ name, how }) => {
          const source = auth[name] as AuthSource;
          const value = typeof source === 'function' ? await source(context) : source;
          if (!FILLED_TEXT.accepts(value)) throw new Error(`There is no credential for '${name}'.`);
          return { ...how, value };
        }),
      );
      const request = buildRequest({ operation, plan, args, server, credentials, headers });
      return resultOf(await web.request({ ...request, signal: context.signal }));
    },
  });
}

/** The first alternative of security schemes with known credentials. */
function schemesFor(
  security: Operation['security'],
  auth: Readonly<Record<string, AuthSource>>,
): readonly SecurityScheme[] | undefined {
  if (security.length === 0) return [];
  return security.find((schemes) => schemes.every(({ name }) => Object.hasOwn(auth, name)));
}

const MOST_ERROR_CHARACTERS = 4_000;

function resultOf({ status, headers, body, isCut, redirect }: WebResponse): ToolResult {
  // Only the origin: servers repeat the query of a request, which may contain a credential.
  if (redirect !== undefined)
    return new ToolResult({
      forLLM: `HTTP ${status}: the server redirects to ${new URL(redirect).origin}. Redirects to another origin are not followed.`,
      isError: true,
    });
  const type = headers['content-type'] ?? '';
  const isText = type === '' || /^text\/|json|xml|yaml|urlencoded/i.test(type);
  const text = isText ? new TextDecoder().decode(body) : `${type}, ${body.length} bytes`;
  if (status >= 400) {
    const isLong = text.length > MOST_ERROR_CHARACTERS;
    const shown = isLong ? `${text.slice(0, MOST_ERROR_CHARACTERS).toWellFormed()} …` : text;
    return new ToolResult({ forLLM: `HTTP ${status}: ${shown}`.trimEnd(), isError: true });
  }
  const note = isCut ? `${text}\n\n[The response was cut off because it is too large.]` : text;
  return new ToolResult({ forLLM: note === '' ? `HTTP ${status}` : note });
}

/** Maps the arguments of a tool to the parts of a request. */
interface ArgumentPlan {
  readonly parameters: readonly { readonly argument: string; readonly parameter: OperationParameter }[];
  /** The name of the argument for the body. */
  readonly body?: string;
}

/** The schema of a tool's arguments, and where they go in a request. */
interface OperationSchema {
  readonly schema: JsonSchema;
  readonly plan: ArgumentPlan;
  /** Faults of references that lead to no schema. */
  readonly faults: readonly AuthorFault[];
}

/**
 * The arguments of an operation: its parameters by name, and its body as `body`. Two parameters of the same name get
 * their location as a prefix: `id` and `header_id`.
 */
function operationSchema(operation: Operation, document: JsonObject): OperationSchema {
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
  const bodyName = body && nameOf('body', 'request_body');
  if (body !== undefined && bodyName !== undefined) {
    properties[bodyName] = described(definitions.convert(body.schema), body.description);
    if (body.isRequired) required.push(bodyName);
  }
  const { faults, used } = definitions;
  const $defs = used.size === 0 ? {} : { $defs: Object.fromEntries(used) };
  const schema = { type: 'object', properties, required, ...$defs } as const;
  return { schema, plan: { parameters, body: bodyName }, faults };
}

/** Wraps a `$ref` with a description in `allOf`, because readers of the 3.0 dialect ignore keywords beside `$ref`. */
function described(schema: JsonSchema, description: string | undefined): JsonSchema {
  if (description === undefined || schema.description !== undefined) return schema;
  return schema.$ref === undefined ? { ...schema, description } : { allOf: [schema], description };
}

/** Keywords without a meaning for arguments, and those that are not part of JSON Schema. */
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
/** Keywords that contain a map of names to schemas. */
const MAPS = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']);
/** Keywords that contain plain values, not schemas. */
const VALUES = new Set(['enum', 'const', 'default', 'required', 'type', 'dependentRequired']);

/** In 3.0, `exclusiveMinimum` is a boolean beside `minimum`; since 3.1, it is the limit itself. */
const EXCLUSIVE_LIMITS = [
  ['minimum', 'exclusiveMinimum'],
  ['maximum', 'exclusiveMaximum'],
] as const;

/** Converts the schemas of a document to JSON Schema 2020-12; referenced schemas are added once. */
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
    for (const [limit, exclusive] of EXCLUSIVE_LIMITS) {
      if (typeof schema[exclusive] !== 'boolean') continue;
      delete converted[exclusive];
      if (!schema[exclusive] || typeof schema[limit] !== 'number') continue;
      delete converted[limit];
      converted[exclusive] = schema[limit];
    }
    if (schema.nullable !== true) return converted;
    const { enum: values, type } = converted;
    if (Array.isArray(values) && !values.includes(null)) converted.enum = [...values, null];
    if (typeof type === 'string') return { ...converted, type: [type, 'null'] };
    return { anyOf: [converted, { type: 'null' }] };
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
    const target = targetOf(this.document, reference);
    if ('fault' in target) {
      this.faults.push(target.fault);
      return {};
    }
    const last = reference.slice(reference.lastIndexOf('/') + 1).replace(/[^\w-]/g, '_') || 'schema';
    const name = freeName(last, (other) => this.used.has(other), '_');
    this.#names.set(reference, name);
    // Reserve the name first: the schema may refer to itself.
    this.used.set(name, {});
    this.used.set(name, this.convert(lookUp(this.document, reference)));
    return { $ref: `#/$defs/${name}` };
  }
}

/** Removes properties that only responses have. */
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

/** A credential and how it is sent. */
type Credential =
  | { readonly kind: 'header' | 'query' | 'cookie'; readonly name: string; readonly value: string }
  | { readonly kind: 'bearer'; readonly value: string }
  | { readonly kind: 'basic'; readonly value: string };

/** The data of a request. */
interface RequestParts {
  readonly operation: Operation;
  readonly plan: ArgumentPlan;
  readonly args: JsonObject;
  /** Base URL, with or without a final `/`. */
  readonly server: string;
  readonly credentials: readonly Credential[];
  readonly headers: Readonly<Record<string, string>>;
}

const RESERVED = /%(?:3A|2F|3F|40|24|2C|3B)/g;

/** Builds the request of a call. An argument cannot change other parts of the URL, credentials or configured headers. */
function buildRequest(parts: RequestParts): WebRequest {
  const { operation, plan, args, credentials } = parts;
  const sent: Record<'query' | 'cookie', Pair[]> = { query: [], cookie: [] };
  const headers: Record<string, string> = { accept: 'application/json, text/*;q=0.9, */*;q=0.5' };
  let path = operation.path;
  for (const { argument, parameter } of plan.parameters) {
    const value = args[argument];
    if (value === undefined) continue;
    const { name, place } = parameter;
    if (place === 'path') path = path.replaceAll(`{${name}}`, pathPart(value, parameter));
    // One line of Latin-1: other characters could start another header, or Node refuses them.
    else if (place === 'header')
      headers[name.toLowerCase()] = listText(value, parameter).replace(/[^\t -~\x80-\xff]+/g, ' ');
    else {
      for (const [key, item] of pairs(value, parameter)) {
        const encoded = encodeURIComponent(item);
        // Reserved characters stay unencoded, except those that separate pairs.
        const text = parameter.allowReserved ? encoded.replace(RESERVED, decodeURIComponent) : encoded;
        sent[place].push([key, text]);
      }
    }
  }
  for (const [name, value] of Object.entries(parts.headers)) headers[name.toLowerCase()] = value;
  for (const credential of credentials) {
    const { value } = credential;
    if (credential.kind === 'bearer') headers.authorization = `Bearer ${value}`;
    else if (credential.kind === 'basic')
      headers.authorization = `Basic ${Buffer.from(value).toString('base64')}`;
    else if (credential.kind === 'header') headers[credential.name.toLowerCase()] = value;
    else {
      const { kind, name } = credential;
      // Of several values of a name, servers differ in which one they use.
      const others = sent[kind].filter(([key]) => key !== name);
      sent[kind] = [...others, [name, encodeURIComponent(value)]];
    }
  }
  const [query, cookies] = [joined(sent.query, '&'), joined(sent.cookie, '; ')];
  if (cookies !== '') headers.cookie = cookies;
  const search = query === '' ? '' : `?${query}`;
  const url = `${parts.server.replace(/\/$/, '')}${path}${search}`;
  const body = plan.body === undefined ? undefined : args[plan.body];
  const method = operation.method.toUpperCase();
  if (body === undefined || operation.body === undefined) return { url, method, headers };
  headers['content-type'] = operation.body.type;
  return { url, method, headers, body: bodyText(body, operation.body.type) };
}

/** Throws for `..` and `.`, because URL parsers resolve them even if they are encoded. */
function pathPart(value: unknown, parameter: OperationParameter): string {
  const { name, style, explode } = parameter;
  const items = Array.isArray(value) ? value.map((item) => encodeURIComponent(plainText(item))) : undefined;
  const listed = items?.join(',') ?? listText(value, parameter, encodeURIComponent);
  let part = listed;
  if (style === 'label') part = `.${explode && items ? items.join('.') : listed}`;
  if (style === 'matrix')
    part = explode && items ? items.map((item) => `;${name}=${item}`).join('') : `;${name}=${listed}`;
  if (!/^(?:\.|%2e){0,2}$/i.test(part)) return part;
  throw new Error(`${name} must not be '${plainText(value)}': it is part of a URL path.`);
}

type Pair = readonly [name: string, value: string];

/** Pairs with encoded values as text. */
function joined(list: readonly Pair[], separator: string): string {
  return list.map(([name, text]) => `${encodeURIComponent(name)}=${text}`).join(separator);
}

/** A value as name-value pairs for a query or cookies (OpenAPI 3.1, Style Examples). */
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

/** A value in the style `simple`: `a,b` or `key,value`; `key=value` with `explode`. */
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

function bodyText(body: unknown, type: string): string {
  if (/json\b/i.test(type)) return JSON.stringify(body);
  if (!/x-www-form-urlencoded/i.test(type)) return plainText(body);
  const entries = isRecord(body) ? Object.entries(body) : [];
  const fields = entries.flatMap(([name, value]) =>
    [value].flat().map((item): [string, string] => [name, plainText(item)]),
  );
  return new URLSearchParams(fields).toString();
}

/** The location of a parameter. */
export type ParameterPlace = 'path' | 'query' | 'header' | 'cookie';

/** A parameter of an operation. */
export interface OperationParameter {
  readonly name: string;
  readonly place: ParameterPlace;
  readonly isRequired: boolean;
  readonly description?: string;
  /** As it is in the document. */
  readonly schema: unknown;
  /** How lists and objects are serialized; default: that of the location. */
  readonly style: string;
  readonly explode: boolean;
  readonly allowReserved: boolean;
  /** Serialized as JSON. */
  readonly isJson: boolean;
}

/** The request body of an operation. */
export interface OperationBody {
  readonly type: string;
  readonly isRequired: boolean;
  readonly description?: string;
  readonly schema: unknown;
}

/** A security scheme and how it is sent. */
export interface SecurityScheme {
  readonly name: string;
  readonly how:
    | { readonly kind: 'header' | 'query' | 'cookie'; readonly name: string }
    | { readonly kind: 'bearer' | 'basic' };
}

/** An operation of a document. */
export interface Operation {
  readonly id: string;
  readonly method: string;
  /** With `{name}` placeholders. */
  readonly path: string;
  readonly tags: readonly string[];
  readonly summary?: string;
  readonly description?: string;
  readonly isDeprecated: boolean;
  readonly parameters: readonly OperationParameter[];
  readonly body?: OperationBody;
  /** Alternative lists of schemes; an empty list: no authentication is needed. */
  readonly security: readonly (readonly SecurityScheme[])[];
}

/** The content of a document, and what could not be read. */
interface ReadDocument {
  readonly operations: readonly Operation[];
  /** The first server, with the defaults of its variables. */
  readonly server: string | undefined;
  readonly faults: readonly AuthorFault[];
  /** Values that are not an operation or a path where one is expected. */
  readonly misplaced: readonly AuthorFault[];
}

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch'];
const PLACES = new Set<unknown>(['path', 'query', 'header', 'cookie']);
const BODY_TYPES = [
  /^application\/(?:[\w.+-]+\+)?json\b/i,
  /^application\/x-www-form-urlencoded\b/i,
  /^text\/plain\b/i,
];

/** Reads an OpenAPI document of version 3.0 or 3.1. */
function readDocument(document: JsonObject): ReadDocument {
  const faults: AuthorFault[] = [];
  const reader = new DocumentReader(document, faults);
  const paths = isRecord(document.paths) ? document.paths : {};
  const misplaced: AuthorFault[] = [];
  const operations = Object.entries(paths).flatMap(([path, item]) => {
    const shared = reader.follow(item, path, misplaced);
    // A broken reference is already reported, and `x-…` are extensions.
    if (!isRecord(shared)) {
      if (shared !== undefined && !path.startsWith('x-')) misplaced.push(noObject(path, shared));
      return [];
    }
    return METHODS.flatMap((method) => {
      const given = shared[method];
      if (isRecord(given)) return [reader.operation({ method, path, shared, given })];
      if (given !== undefined) misplaced.push(noObject(`${method.toUpperCase()} ${path}`, given));
      return [];
    });
  });
  return { operations, server: serverIn(document), faults, misplaced };
}

function noObject(where: string, given: unknown): AuthorFault {
  return {
    where,
    problem: `it is ${shown(given)}, not an object`,
    fix: 'fix the document, or leave it out',
  };
}

function serverIn({ servers }: JsonObject): string | undefined {
  const first: unknown = Array.isArray(servers) ? servers[0] : undefined;
  if (!isRecord(first) || typeof first.url !== 'string') return undefined;
  const variables = isRecord(first.variables) ? first.variables : {};
  return first.url.replace(/\{([^{}]*)\}/g, (whole, name: string) => {
    const variable = Object.hasOwn(variables, name) ? variables[name] : undefined;
    return isRecord(variable) && typeof variable.default === 'string' ? variable.default : whole;
  });
}

interface GivenOperation {
  readonly method: string;
  readonly path: string;
  readonly shared: JsonObject;
  readonly given: JsonObject;
}

/**
 * The specification ignores the first three, which media types and security schemes define. The others belong to the
 * connection or delimit the message (RFC 9110, 7.6.1), or choose the host.
 */
const IGNORED_HEADERS =
  /^(?:accept|content-type|authorization|host|content-length|transfer-encoding|te|trailer|connection|keep-alive|upgrade|expect|proxy-.*)$/i;

class DocumentReader {
  constructor(
    readonly document: JsonObject,
    readonly faults: AuthorFault[],
  ) {}

  /** The target of a `$ref`; other values unchanged. A broken reference is a fault at `where`. */
  follow(value: unknown, where: string, faults = this.faults): unknown {
    if (!isRecord(value) || typeof value.$ref !== 'string') return value;
    const target = targetOf(this.document, value.$ref);
    if (!('fault' in target)) return target.value;
    const { where: reference, problem, fix } = target.fault;
    faults.push({ where, problem: `it refers to '${reference}': ${problem}`, fix });
    return undefined;
  }

  operation({ method, path, shared, given }: GivenOperation): Operation {
    const id = typeof given.operationId === 'string' ? given.operationId : `${method} ${path}`;
    const where = `${method.toUpperCase()} ${path}`;
    const body = this.#body(given.requestBody, where);
    const parameters = this.#parameters([shared.parameters, given.parameters], where);
    // A placeholder without a parameter would be sent literally.
    for (const name of new Set(Array.from(path.matchAll(/\{([^{}]+)\}/g), ([, name = '']) => name))) {
      if (parameters.some((parameter) => parameter.place === 'path' && parameter.name === name)) continue;
      const fix = `parameters: [{ name: '${name}', in: 'path', required: true, schema: … }]`;
      this.#fault(where, `its path has {${name}}, but no path parameter has this name`, fix);
    }
    const security = given.security ?? this.document.security;
    const choices = Array.isArray(security) ? security.filter(isRecord) : [];
    return {
      id,
      method,
      path,
      tags: Array.isArray(given.tags) ? given.tags.filter((tag) => typeof tag === 'string') : [],
      summary: textOf(given.summary),
      description: textOf(given.description),
      isDeprecated: given.deprecated === true,
      parameters,
      body,
      security: choices.map((choice) => Object.keys(choice).flatMap((name) => this.#scheme(name, where))),
    };
  }

  /** Parameters of the path and the operation; those of the operation replace those of the same location and name. */
  #parameters(lists: readonly unknown[], where: string): readonly OperationParameter[] {
    const parameters = new Map<string, OperationParameter>();
    for (const given of lists.flatMap((list) => (Array.isArray(list) ? list : []))) {
      const parameter = this.follow(given, where);
      if (!isRecord(parameter) || typeof parameter.name !== 'string' || !PLACES.has(parameter.in)) {
        this.#fault(where, 'it has a parameter without `name` and `in`', 'fix the document');
        continue;
      }
      const { name } = parameter;
      const place = parameter.in as ParameterPlace;
      if (place === 'header' && IGNORED_HEADERS.test(name)) continue;
      const content = isRecord(parameter.content) ? Object.values(parameter.content)[0] : undefined;
      const usual = place === 'query' || place === 'cookie' ? 'form' : 'simple';
      const style = typeof parameter.style === 'string' ? parameter.style : usual;
      parameters.set(`${place} ${name}`, {
        name,
        place,
        isRequired: place === 'path' || parameter.required === true,
        description: textOf(parameter.description),
        schema: parameter.schema ?? (isRecord(content) ? content.schema : undefined) ?? {},
        style,
        explode: typeof parameter.explode === 'boolean' ? parameter.explode : style === 'form',
        allowReserved: parameter.allowReserved === true,
        isJson: parameter.schema === undefined && content !== undefined,
      });
    }
    return [...parameters.values()];
  }

  #body(given: unknown, where: string): OperationBody | undefined {
    const body = this.follow(given, where);
    if (!isRecord(body)) return undefined;
    const content = isRecord(body.content) ? body.content : {};
    for (const wanted of BODY_TYPES) {
      const type = Object.keys(content).find((key) => wanted.test(key));
      if (type === undefined) continue;
      const media = this.follow(content[type], where);
      const schema = isRecord(media) ? (media.schema ?? {}) : {};
      return { type, isRequired: body.required === true, description: textOf(body.description), schema };
    }
    const types = Object.keys(content).join(', ') || 'nothing';
    const fix = 'exclude it with `include`, or write your own tool for it';
    this.#fault(where, `its request body accepts ${types}; only JSON, forms and text are supported`, fix);
    return undefined;
  }

  #scheme(name: string, where: string): readonly SecurityScheme[] {
    const part = encodeURIComponent(pointerStep(name));
    const scheme = this.follow(lookUp(this.document, `#/components/securitySchemes/${part}`), where);
    const how = isRecord(scheme) ? howOf(scheme) : undefined;
    if (how !== undefined) return [{ name, how }];
    const fix = 'apiKey, http (bearer, basic), oauth2 or openIdConnect';
    this.#fault(where, `its security scheme '${name}' is not supported`, fix);
    return [];
  }

  #fault(where: string, problem: string, fix: string): void {
    this.faults.push({ where, problem, fix });
  }
}

function howOf({ type, scheme, in: place, name }: JsonObject): SecurityScheme['how'] | undefined {
  if (type === 'oauth2' || type === 'openIdConnect') return { kind: 'bearer' };
  if (type === 'http' && typeof scheme === 'string') {
    const kind = scheme.toLowerCase();
    return kind === 'bearer' || kind === 'basic' ? { kind } : undefined;
  }
  if (type !== 'apiKey' || typeof name !== 'string') return undefined;
  return place === 'header' || place === 'query' || place === 'cookie' ? { kind: place, name } : undefined;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value.trim() || undefined : undefined;
}

/** The target of a reference and of further references; a fault if it is missing, or if the references are circular. */
function targetOf(
  document: JsonObject,
  reference: string,
): { readonly value: unknown } | { readonly fault: AuthorFault } {
  const seen = new Set<string>();
  let next = reference;
  while (!seen.has(next)) {
    seen.add(next);
    const value = lookUp(document, next);
    const problem = 'its target is not in the document';
    if (value === undefined)
      return { fault: { where: reference, problem, fix: 'bundle all parts into one document' } };
    if (!isRecord(value) || typeof value.$ref !== 'string') return { value };
    next = value.$ref;
  }
  const problem = `its references are circular: ${[...seen, next].join(' → ')}`;
  return { fault: { where: reference, problem, fix: 'fix the document' } };
}

/** The target of a reference within the document: a JSON Pointer (RFC 6901) after `#`. */
function lookUp(document: JsonObject, reference: string): unknown {
  if (!reference.startsWith('#/')) return undefined;
  let found: unknown = document;
  for (const part of reference.slice(2).split('/')) {
    const key = keyOfStep(decodePart(part));
    if (Array.isArray(found)) found = found[Number(key)];
    else found = isRecord(found) && Object.hasOwn(found, key) ? found[key] : undefined;
  }
  return found;
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
