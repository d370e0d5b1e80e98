import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable, Writable } from 'node:stream';
import {
  type AuthInfo,
  type ClientCapabilities,
  type Implementation,
  type McpServer,
  type Transport,
  UriTemplate,
} from '@modelcontextprotocol/server';
import type { CallScope } from '../../../core/contract/call.js';
import type { JsonSchema } from '../../../core/contract/json-schema.js';
import { CHECKPOINT_STORE } from '../../../core/contract/run-checkpoint.js';
import { TELEMETRY } from '../../../core/contract/telemetry.js';
import type { ToolDefinition } from '../../../core/contract/tool.js';
import {
  type AuthorFault,
  type InvalidOption,
  invalidOptions,
  refuseOptions,
  ToolDeclarationError,
  type UnplacedFault,
} from '../../../core/errors/author-fault.js';
import { isRecord } from '../../../core/kernel/json.js';
import {
  COUNT,
  COUNT_LIMIT,
  either,
  exactly,
  FILLED_TEXT,
  FUNCTION,
  listOf,
  MILLISECONDS,
  type OptionRule,
  objectOf,
  oneOf,
  optionTable,
  protecting,
  required,
  SECRET_KEY,
  TEXT,
  WHOLE,
  withMethods,
} from '../../../core/kernel/options.js';
import { NAME_FILTER_RULES, type NameFilter, type ToolRegistry } from '../../../run/call/tool-registry.js';
import { LEASE } from '../../../run/loop/claimed-run.js';
import { toolPlace } from '../../../tools/discovery/bound-method.js';
import { findReference } from '../../../tools/schema/keywords.js';
import { allAppFaults } from './apps.js';
import { servedAs, servedCompletion } from './lists.js';
import { readName } from './request-guard.js';
import type { McpOAuthOptions, McpServerSettings, McpSessionOptions, McpTaskOptions } from './settings.js';

/** Options of `createMcpServer`. */
export interface McpServerOptions extends McpServerSettings {
  /**
   * The scope of a caller's calls: `data`, `owner`, `container`. `data` is a plain object to which `mcp` is added;
   * `owner` then also owns suspended calls. If the function throws, the request is refused.
   */
  scope?(caller: McpCaller): CallScope | Promise<CallScope>;
  /** The tools that a caller sees and may call. If the function throws, the request is refused. */
  visible?(caller: McpCaller): NameFilter | Promise<NameFilter>;
  /**
   * The owner of sessions and suspended calls; default: `clientId` and `extra.sub`, without `sub` `clientId` and the
   * token itself.
   */
  principal?(authInfo: McpCaller['authInfo']): string;
  /** Adds features to each connection's SDK server. */
  configure?(server: McpServer): void;
}

const URL_TEXT: OptionRule = {
  accepts: (value) => typeof value === 'string' && /^https?:\/\/[^?#]+$/.test(value) && URL.canParse(value),
  fix: "a URL without query: 'https://api.example.org/mcp'",
};

const SOME_AUDIENCES = listOf(FILLED_TEXT, "['https://api.example.org/mcp']");
/** No token has an audience of an empty list. */
const AUDIENCES: OptionRule = {
  ...SOME_AUDIENCES,
  accepts: (value) => SOME_AUDIENCES.accepts(value) && (value as readonly unknown[]).length > 0,
};

const OAUTH = objectOf<McpOAuthOptions>(
  {
    resource: protecting(required(URL_TEXT)),
    issuer: protecting(required(URL_TEXT)),
    audience: protecting(either(FILLED_TEXT, AUDIENCES)),
    verify: protecting({ ...FUNCTION, fix: 'jwks(url)' }),
    unauthorised: oneOf('hide', 'show'),
  },
  {
    fix: "{ resource: 'https://api.example.org/mcp', issuer: 'https://auth.example.org', verify: jwks(url) }",
    meant: { unauthorized: "unauthorised: 'hide'", jwksUri: 'verify: jwks(url)' },
  },
);

const SESSIONS = objectOf<McpSessionOptions>(
  {
    idleMs: { accepts: (value) => Number.isFinite(value) && Number(value) >= 1, fix: 'a number, 1 or more' },
    max: COUNT_LIMIT,
    maxPerPrincipal: COUNT_LIMIT,
    replay: WHOLE,
  },
  { fix: '{ max: 1_000 }' },
);

const TASKS = objectOf<McpTaskOptions>(
  { store: required(CHECKPOINT_STORE), required: NAME_FILTER_RULES.deny, leaseMs: LEASE },
  { fix: "{ store, required: ['import_*'] }" },
);

const OPTIONS = optionTable<McpServerOptions>(
  'createMcpServer',
  {
    name: TEXT,
    version: TEXT,
    title: TEXT,
    instructions: TEXT,
    pageSize: COUNT_LIMIT,
    scope: protecting({ ...FUNCTION, fix: '(caller) => ({ data: {} })' }),
    visible: protecting({ ...FUNCTION, fix: '(caller) => ({ deny: [] })' }),
    policy: protecting({ ...FUNCTION, fix: '({ tool, context }) => true' }),
    toolTimeoutMs: MILLISECONDS,
    telemetry: TELEMETRY,
    onAsyncResult: { ...FUNCTION, fix: '(context, result) => {}' },
    allowedHosts: protecting(namesOf('allowedHosts')),
    allowedOrigins: protecting(namesOf('allowedOrigins')),
    sessions: either(SESSIONS, exactly(false)),
    maxRequestBytes: COUNT,
    maxUnreadBytes: COUNT_LIMIT,
    oauth: protecting(OAUTH),
    tasks: either(CHECKPOINT_STORE, TASKS),
    principal: protecting({ ...FUNCTION, fix: "(authInfo) => authInfo?.clientId ?? ''" }),
    stateKey: protecting(SECRET_KEY),
    configure: { ...FUNCTION, fix: '(server) => {}' },
    onError: { ...FUNCTION, fix: '(error) => console.error(error)' },
  },
  { allow: 'visible: () => ({ allow: […] })', deny: 'visible: () => ({ deny: […] })' },
);

/** The methods of a registry that are used; it may come from another copy of this package. */
const REGISTRY = withMethods(['invoke', 'tools', 'view', 'onChange', 'offered'], 'a ToolRegistry');

const NO_REGISTRY: InvalidOption = {
  where: OPTIONS.of,
  option: 'registry',
  problem: 'the first argument is not a ToolRegistry',
  fix: 'createMcpServer(new ToolRegistry().register(…), { … })',
};

/** Throws all faults of the arguments together, or all faults of what the registry serves. */
export function checkServer(registry: ToolRegistry, options: McpServerOptions): void {
  refuseOptions([...(REGISTRY.accepts(registry) ? [] : [NO_REGISTRY]), ...invalidOptions(options, OPTIONS)]);
  const prompts = registry.part('prompt').tools();
  const resources = registry.part('resource').tools();
  const completions = registry.part('completion').tools();
  // Names of variables do not change what a URI template matches.
  const shapeOf = (resource: ToolDefinition): string => {
    const { uri } = servedAs(resource);
    return isUri(uri) ? uri.replace(/\{([+#./]?)[^{}?&]+\}/g, '{$1}') : uri;
  };
  const targets = new Map([
    ...prompts.map(({ name, parameters }) => [name, Object.keys(parameters.properties ?? {})] as const),
    ...resources.map((resource) => [servedAs(resource).uri, variablesOf(servedAs(resource).uri)] as const),
  ]);
  const faults = [
    ...prompts.flatMap((prompt) => {
      const { parameters } = prompt;
      const structured = Object.entries(parameters.properties ?? {}).filter(
        ([, schema]) => !takesText(schema, parameters),
      );
      return placed(
        prompt,
        structured.map(([parameter]) => ({ parameter, ...NO_TEXT })),
      );
    }),
    ...resources.flatMap((resource) => placed(resource, resourceFaults(resource))),
    ...sameFaults(resources, shapeOf, {
      problem: 'its URI or URI template is equivalent to that of',
      fix: 'another URI, or a single method',
    }),
    ...completions.flatMap((completion) => placed(completion, completionFaults(completion, targets))),
    ...sameFaults(completions, (completion) => JSON.stringify(servedCompletion(completion)), {
      problem: 'it completes the same argument as',
      fix: 'a single method',
    }),
    ...allAppFaults(registry),
  ];
  if (faults.length > 0) throw new ToolDeclarationError(faults);
}

function namesOf(list: 'allowedHosts' | 'allowedOrigins'): OptionRule {
  const problems = (names: readonly unknown[]) =>
    names.map((name) => readName(name, list)).filter((name) => 'problem' in name);
  return {
    accepts: (value) => value === 'any' || (Array.isArray(value) && problems(value).length === 0),
    fix: "['mcp.example.org'], or 'any'",
    explain: (value, option) => {
      if (Array.isArray(value)) return problems(value).map((problem) => ({ option, ...problem }));
      const entry = typeof value === 'string' ? `'${value}'` : `'mcp.example.org'`;
      const fix = `${option}: [${entry}], or ${option}: 'any'`;
      return [{ option, problem: `${option} is not a list`, fix }];
    },
  };
}

/** Information about a request from the application that mounts the server. */
export interface McpRequestInfo {
  /**
   * The verified content of the request's token. `null`: your own check refused the request; the response is 401 with
   * instructions to sign in.
   */
  readonly authInfo?: AuthInfo | null;
  /** The parsed body, if it was already read. */
  readonly parsedBody?: unknown;
}

/** Streams of a client; default: standard input and output of this process. */
export interface StdioStreams {
  readonly input?: Readable;
  /** Nothing else may write to it. */
  readonly output?: Writable;
}

/** A connection over stdio or another lasting transport. */
export interface McpConnection {
  /** Resolves when the client has left or the connection was closed. */
  readonly closed: Promise<void>;
  /** Closes this connection in the same way as the server's `close`. */
  close(): Promise<void>;
}

/** A registry served over MCP: any number of connections, over HTTP and lasting transports. */
export interface McpToolServer {
  /** Streamable HTTP as a Web-standard handler; it is bound. */
  readonly fetch: (request: Request, info?: McpRequestInfo) => Promise<Response>;
  /**
   * The same for Node's `http` and Express. `request.auth` is the verified token; `body` is a parsed body, by default
   * the `request.body` of a parser.
   */
  readonly node: (
    request: IncomingMessage & { auth?: AuthInfo },
    response: ServerResponse,
    body?: unknown,
  ) => Promise<void>;
  /** Serves one client over standard input and output. */
  stdio(streams?: StdioStreams): McpConnection;
  /** Serves one client over a lasting transport of the SDK. */
  connect(transport: Transport): McpConnection;
  /** Number of HTTP sessions of 2025-11-25 clients. */
  readonly sessionCount: number;
  /** Notifies the clients that have subscribed to a resource of its change. */
  resourceChanged(uri: string): void;
  /**
   * Accepts no new requests, aborts running calls, sends all responses including theirs, and then closes all
   * connections. Takes a second at most, and may be called again.
   */
  close(): Promise<void>;
}

/**
 * The sender of an MCP request, and what its connection supports. Tools and policies find it as `context.data.mcp`,
 * which is typed once `toolwright/mcp` is imported somewhere.
 *
 * @example
 * ```ts
 * const policy: ToolPolicy = ({ tool, context }) =>
 *   tool.annotations?.readOnly === true || context.data.mcp?.authInfo?.scopes.includes('write') === true;
 * ```
 */
export interface McpCaller {
  /** The verified content of the token; comes from the server's application, never from the client. */
  readonly authInfo?: AuthInfo;
  /** Headers of the HTTP request; absent over stdio. */
  readonly headers?: Headers;
  /** For 2025-11-25 clients over HTTP. */
  readonly sessionId?: string;
  readonly protocolVersion?: string;
  /** The client's own description. */
  readonly client?: Implementation;
  readonly capabilities: ClientCapabilities;
  /** Closes the stream of this call, so that a 2025-11-25 client reconnects for the result later. */
  closeStream?(): void;
}

// Uses the package name, as applications do: TypeScript does not merge declarations of two module names.
declare module 'toolwright' {
  interface ToolContextData {
    /** The sender of the call, if it arrived over MCP. */
    readonly mcp?: McpCaller;
  }
}

function placed(tool: ToolDefinition, faults: readonly UnplacedFault[]): readonly AuthorFault[] {
  return faults.map((fault) => ({ where: toolPlace(tool), ...fault }));
}

/** Definitions that only one of them can answer for. */
function sameFaults(
  tools: readonly ToolDefinition[],
  keyOf: (tool: ToolDefinition) => string,
  { problem, fix }: UnplacedFault,
): readonly AuthorFault[] {
  return [...Map.groupBy(tools, keyOf).values()].flatMap(([first, ...others]) =>
    others.map((other) => ({
      where: toolPlace(other),
      problem: `${problem} ${first && toolPlace(first)}`,
      fix,
    })),
  );
}

/** Clients send the arguments of prompts as texts. */
const NO_TEXT: UnplacedFault = {
  problem: 'it is an object or a list, but arguments of prompts are strings',
  fix: 'a string, a number, a boolean or an enum',
};

const MAX_DEPTH = 16;

/** Whether a text, or a value that a text is converted to, may fit a schema. */
function takesText(schema: unknown, root: JsonSchema, depth = 0): boolean {
  if (!isRecord(schema) || depth > MAX_DEPTH) return true;
  if (typeof schema.$ref === 'string') return takesText(findReference(schema.$ref, root), root, depth + 1);
  const branches = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(branches)) return branches.some((branch) => takesText(branch, root, depth + 1));
  return [schema.type].flat().some((type) => !['object', 'array', 'null'].includes(String(type)));
}

/** An expression of a URI template that has a variable. */
const EXPRESSION = /\{[+#./?&]?[^{}\s+#./?&,*][^{}\s]*\}/g;

function isUri(uri: string): boolean {
  return /^[a-z][a-z\d+.-]*:/i.test(uri) && !/[{}]/.test(uri.replace(EXPRESSION, ''));
}

function variablesOf(uri: string): readonly string[] {
  return isUri(uri) ? new UriTemplate(uri).variableNames : [];
}

function resourceFaults(resource: ToolDefinition): readonly UnplacedFault[] {
  const { uri } = servedAs(resource);
  if (!isUri(uri))
    return [
      {
        problem: `${JSON.stringify(uri)} is neither a URI nor a URI template`,
        fix: "a URI with a scheme, and with variables in braces: 'orders://{orderId}'",
      },
    ];
  const { properties, required = [] } = resource.parameters;
  const variables = variablesOf(uri);
  const unread = variables.filter((name) => properties !== undefined && !Object.hasOwn(properties, name));
  return [
    ...unread.map((name) => ({
      problem: `${uri} has {${name}}, but the method has no parameter with this name`,
      fix: `${name}: string`,
    })),
    ...required
      .filter((name) => !variables.includes(name))
      .map((parameter) => ({
        parameter,
        problem: `it is required, but ${uri} has no {${parameter}}`,
        fix: `{${parameter}} in the URI template; or a parameter that is optional or has a default`,
      })),
  ];
}

function completionFaults(
  completion: ToolDefinition,
  targets: ReadonlyMap<string, readonly string[]>,
): readonly UnplacedFault[] {
  const { of, argument } = servedCompletion(completion);
  const { properties = {}, required = [] } = completion.parameters;
  const faults: UnplacedFault[] = [];
  const value: unknown = properties.value;
  const takesString =
    value === true ||
    (isRecord(value) && (value.type === undefined || [value.type].flat().includes('string')));
  if (!takesString)
    faults.push({
      problem: 'it has no parameter `value` of type string, for the text typed so far',
      fix: 'value: string',
    });
  const known = targets.get(of);
  if (known === undefined)
    return [
      ...faults,
      {
        problem: `it completes an argument of '${of}', but there is no prompt with this name and no resource with this URI template`,
        fix: 'the name of a prompt as clients see it, or the URI template of a resource',
      },
    ];
  const one = known.length === 0 ? 'no completion: it has no arguments' : `one of ${known.join(', ')}`;
  if (!known.includes(argument)) faults.push({ problem: `'${of}' has no argument '${argument}'`, fix: one });
  for (const parameter of required)
    if (parameter !== 'value' && !known.includes(parameter))
      faults.push({ parameter, problem: `it is required, but '${of}' has no such argument`, fix: one });
  return faults;
}
