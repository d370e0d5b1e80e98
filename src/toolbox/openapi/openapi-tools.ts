import type { ToolAnnotations } from '../../contract/declaration.js';
import type { JsonObject } from '../../contract/json-schema.js';
import type { ToolDefinition } from '../../contract/tool.js';
import type { ToolContext } from '../../contract/tool-context.js';
import { ToolResult } from '../../contract/tool-result.js';
import { defineTool } from '../../discovery/define-tool.js';
import { type AuthorFault, checkOptions, ToolDeclarationError } from '../../errors/author-fault.js';
import { isRecord } from '../../kernel/json.js';
import {
  ADDRESS,
  either,
  FUNCTION,
  HEADERS,
  instanceOf,
  LIST,
  optionTable,
  RECORD,
  secret,
  TEXT,
} from '../../kernel/options.js';
import { WebAccess, type WebResponse } from '../network/web-access.js';
import { buildRequest, type OperationSchema, operationSchema } from './operation.js';
import { type Operation, readDocument, type SecurityScheme } from './read-document.js';

/** What a security scheme needs: a token, `user:password` for `basic`, or a function that gives it for a call. */
export type AuthSource = string | ((context: ToolContext) => string | Promise<string>);

/** Options of {@link toolsFromOpenApi}. */
export interface OpenApiOptions {
  /** Base address; default: the document's first server. Only a server that is named here may be in a private network. */
  readonly server?: string;
  /** By the names of the document's security schemes. */
  readonly auth?: Readonly<Record<string, AuthSource>>;
  /** Which operations: their ids, or a function. Default: all that are not deprecated. */
  readonly include?: readonly string[] | ((operation: Operation) => boolean);
  /** Before the names of all tools: `shop` makes `shop_list_orders`. */
  readonly prefix?: string;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** With which requests are made; default: one that asks the server and nobody else. */
  readonly web?: WebAccess;
}

const OPTIONS = optionTable<OpenApiOptions>('toolsFromOpenApi', {
  server: ADDRESS,
  auth: secret(RECORD),
  include: either(LIST, FUNCTION),
  prefix: TEXT,
  headers: HEADERS,
  web: instanceOf(WebAccess, 'new WebAccess()'),
});

/**
 * The operations of an OpenAPI document, 3.0 or 3.1, as tools: named after their ids, with their parameters by name
 * and their bodies as `body`. What `GET` does is `readOnly`; `DELETE` is `destructive`, and `PUT` and `DELETE` are
 * `idempotent`. A status of 400 and more is an error result with what the server said.
 *
 * @throws ToolDeclarationError (502) for all that cannot be read in what is included, together; InvalidOptionsError
 *   (521).
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
      {
        where: 'toolsFromOpenApi',
        problem: 'that is no OpenAPI document of version 3.0 or 3.1',
        fix: 'JSON.parse(…)',
      },
    ]);
  const { operations, server: named, faults, misplaced } = readDocument(document);
  const included = operations.filter((operation) => isIncluded(operation, options.include));
  const places = new Set(included.map(({ method, path }) => `${method.toUpperCase()} ${path}`));
  const server = options.server ?? named;
  const names = toolNames(included, options.prefix);
  const schemas = included.map((operation) => operationSchema(operation, document));
  const wrong = [
    ...faults.filter(({ where }) => places.has(where) || where.startsWith('#')),
    ...(options.include === undefined ? misplaced : []),
    ...onceEach(schemas.flatMap((schema) => schema.faults)),
    ...missing(included, options),
    ...serverFaults(server),
    ...[...places].filter((place) => (names.get(place)?.length ?? 0) > 64).map(tooLong),
  ];
  if (wrong.length > 0) throw new ToolDeclarationError(wrong);
  const caller = {
    ...options,
    server: server as string,
    web: options.web ?? accessTo(server as string, options),
  };
  return included.map((operation, index) =>
    toolOf(operation, { ...(schemas[index] as OperationSchema), name: nameIn(names, operation), caller }),
  );
}

function onceEach(faults: readonly AuthorFault[]): readonly AuthorFault[] {
  return [...new Map(faults.map((fault) => [fault.where, fault])).values()];
}

function isIncluded(operation: Operation, include: OpenApiOptions['include']): boolean {
  if (include === undefined) return !operation.isDeprecated;
  return typeof include === 'function' ? include(operation) : include.includes(operation.id);
}

/** An id that nothing has, a scheme that nobody fills. */
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
      fix: 'an operationId of the document; for one without, its method and path: get /orders',
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

function serverFaults(server: string | undefined): readonly AuthorFault[] {
  if (ADDRESS.accepts(server)) return [];
  const problem =
    server === undefined ? 'the document names no server' : `the server ${server} is no address`;
  return [{ where: 'toolsFromOpenApi', problem, fix: "server: 'https://api.example.com'" }];
}

function tooLong(where: string): AuthorFault {
  return {
    where,
    problem: 'its name has more than 64 characters',
    fix: 'a shorter operationId, or no prefix',
  };
}

/** Names as every provider takes them; operations that would have the same one are numbered. */
function toolNames(operations: readonly Operation[], prefix?: string): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  const taken = new Set<string>();
  for (const { id, method, path } of operations) {
    const words = id.replace(/[^a-zA-Z0-9_-]+/g, '_').replace(/^_+|_+$/g, '') || 'operation';
    const plain = /^[a-zA-Z_]/.test(words) ? words : `_${words}`;
    const base = prefix === undefined || prefix === '' ? plain : `${prefix}_${plain}`;
    let name = base;
    for (let count = 2; taken.has(name); count += 1) name = `${base}_${count}`;
    taken.add(name);
    names.set(`${method.toUpperCase()} ${path}`, name);
  }
  return names;
}

function nameIn(names: ReadonlyMap<string, string>, { method, path }: Operation): string {
  return names.get(`${method.toUpperCase()} ${path}`) as string;
}

function accessTo(server: string, { server: given }: OpenApiOptions): WebAccess {
  const { host } = new URL(server);
  // A document that somebody else wrote does not lead into the application's own network.
  return new WebAccess({ allow: [host], ...(given === undefined ? {} : { privateHosts: [host] }) });
}

interface Caller extends OpenApiOptions {
  readonly server: string;
  readonly web: WebAccess;
}

interface ToolPlan extends OperationSchema {
  readonly name: string;
  readonly caller: Caller;
}

function toolOf(operation: Operation, { name, schema, plan, caller }: ToolPlan): ToolDefinition {
  const { server, headers = {}, auth = {}, web } = caller;
  return defineTool({
    name,
    description: descriptionOf(operation),
    parameters: schema,
    annotations: annotationsOf(operation),
    touches: (args) => [
      { action: 'open', url: buildRequest({ operation, plan, args, server, headers, credentials: [] }).url },
    ],
    execute: async (args: JsonObject, context) => {
      const credentials = await credentialsFor(schemesFor(operation.security, auth) ?? [], { auth, context });
      const request = buildRequest({ operation, plan, args, server, credentials, headers });
      return resultOf(await web.request({ ...request, signal: context.signal }));
    },
  });
}

function descriptionOf({ summary, description, method, path }: Operation): string {
  const texts = [summary, description].filter((text) => text !== undefined);
  return texts.length === 0 ? `${method.toUpperCase()} ${path}` : [...new Set(texts)].join('\n\n');
}

/** What the methods mean (RFC 9110, 9.2). */
function annotationsOf({ method, summary }: Operation): ToolAnnotations {
  const title = summary === undefined ? {} : { title: summary };
  if (method === 'get' || method === 'head' || method === 'options')
    return { ...title, readOnly: true, idempotent: true, openWorld: true };
  const idempotent = method === 'put' || method === 'delete';
  return { ...title, readOnly: false, destructive: method === 'delete', idempotent, openWorld: true };
}

/** The first choice of schemes that can be filled. */
function schemesFor(
  security: Operation['security'],
  auth: Readonly<Record<string, AuthSource>>,
): readonly SecurityScheme[] | undefined {
  if (security.length === 0) return [];
  return security.find((schemes) => schemes.every(({ name }) => Object.hasOwn(auth, name)));
}

async function credentialsFor(
  schemes: readonly SecurityScheme[],
  { auth, context }: { readonly auth: Readonly<Record<string, AuthSource>>; readonly context: ToolContext },
) {
  return Promise.all(
    schemes.map(async ({ name, how }) => {
      const source = auth[name] as AuthSource;
      const value = typeof source === 'function' ? await source(context) : source;
      return { ...how, value };
    }),
  );
}

const MOST_ERROR_CHARACTERS = 4_000;

function resultOf({ status, headers, body, isCut }: WebResponse): ToolResult {
  const type = headers['content-type'] ?? '';
  const isText = type === '' || /^text\/|json|xml|yaml|urlencoded/i.test(type);
  const text = isText ? new TextDecoder().decode(body) : `${type}, ${body.length} bytes`;
  if (status >= 400)
    return new ToolResult({ forLLM: `HTTP ${status}: ${shortened(text)}`.trimEnd(), isError: true });
  const note = isCut ? `${text}\n\n[The answer was larger than what is read of it.]` : text;
  return new ToolResult({ forLLM: note === '' ? `HTTP ${status}` : note });
}

function shortened(text: string): string {
  return text.length > MOST_ERROR_CHARACTERS
    ? `${text.slice(0, MOST_ERROR_CHARACTERS).toWellFormed()} …`
    : text;
}
