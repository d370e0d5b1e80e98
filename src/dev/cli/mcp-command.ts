import { readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { Writable } from 'node:stream';
import type { JsonObject } from '../../core/contract/json-schema.js';
import { counted } from '../../core/kernel/counted.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { isRecord, parsedJson, withoutUndefined } from '../../core/kernel/json.js';
import { isLoopbackHost } from '../../core/kernel/server-address.js';
import type { NameFilter, ToolRegistry } from '../../run/call/tool-registry.js';
import { APP_MIME_TYPE, allAppFaults } from '../../surfaces/mcp/server/apps.js';
import { listedTool } from '../../surfaces/mcp/server/call-result.js';
import {
  advice,
  type Command,
  type CommandEnvironment,
  type Diagnosis,
  FLAG,
  ok,
  onEnd,
  parseOptions,
  printFindings,
  problem,
  readLine,
  STRING,
  UserFault,
} from './command.js';
import { modulePath, requiredRegistry, withModule } from './open-module.js';
import { writeOut } from './write-out.js';

/**
 * `toolwright mcp <module>`: serves the tools of a module over standard input and output, until the client disconnects.
 */
export const command: Command = async (args, environment) => {
  const [first, ...rest] = args;
  if (first === 'check') return checkMcp(rest, environment);
  if (first === 'server-json') return writeServerJson(rest, environment);
  const { name, values } = readLine(
    args,
    { name: STRING, allow: { ...STRING, multiple: true }, deny: { ...STRING, multiple: true } },
    'mcp takes one module: toolwright mcp dist/tools.js',
  );
  // A disconnected client is noticed at the end of its input.
  process.stdout.on('error', () => {});
  const output = new Writable({
    write: (chunk, _encoding, done) => void writeOut(chunk, (error) => done(error)),
  });
  // Each waiting message adds a listener; their number is not limited.
  output.setMaxListeners(0);
  return withModule(name, environment, async (module) => {
    // After the module, so that a missing module is reported before a missing package.
    const { createMcpServer } = await import('../../surfaces/mcp/index.js');
    const registry = visibleTools(requiredRegistry(name, module), values);
    const mcp = createMcpServer(registry, {
      ...identityOf(modulePath(name, environment.folder), values.name),
      onError: (error) => environment.error(`toolwright: ${String(error)}\n`),
    });
    const connection = mcp.stdio({ output });
    environment.error(`toolwright: ${counted(registry.count(), 'tool')} of ${name} over stdio\n`);
    onEnd(environment, () => void connection.close());
    await connection.closed;
    await mcp.close();
    return 0;
  });
};

/** The name and version that clients see: those of the package that the module belongs to. */
function identityOf(
  path: string,
  given: string | undefined,
): { readonly name: string; readonly version?: string } {
  for (let folder = dirname(path); folder !== dirname(folder); folder = dirname(folder)) {
    const { name, version } = manifestIn(folder) ?? {};
    // A build may write manifests of its own, which have only a type.
    if (typeof name === 'string')
      return { name: given ?? name, ...(typeof version === 'string' && { version }) };
  }
  return { name: given ?? basename(path).replace(/\.[cm]?[jt]s$/, '') };
}

/** A pattern without a match is refused: with a typo in `--deny`, the tool would be served. */
function visibleTools(registry: ToolRegistry, { allow, deny }: NameFilter): ToolRegistry {
  const unmet = Object.entries({ allow, deny }).flatMap(([option, names = []]) =>
    names
      .filter((name) => registry.view({ allow: [name] }).count() === 0)
      .map((name) => `--${option} '${name}'`),
  );
  if (unmet.length === 0) return registry.view(withoutUndefined({ allow, deny }));
  const verb = unmet.length === 1 ? 'matches' : 'match';
  throw new UserFault(`${unmet.join(' and ')} ${verb} no tool; the tools are ${registry.list().join(', ')}`);
}

const SCHEMA = 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json';
const REGISTRY_NAME = /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/;

/**
 * `toolwright mcp server-json`: writes the data for the official MCP registry, from the folder's package.json. The
 * registry verifies the name with `mcpName` of the published package.
 */
async function writeServerJson(args: readonly string[], environment: CommandEnvironment): Promise<number> {
  const values = parseOptions(args, { name: STRING, url: STRING });
  const manifest = manifestIn(environment.folder);
  if (manifest === undefined) throw new UserFault('this folder has no readable package.json', 1);
  const name = values.name ?? manifest.mcpName;
  if (typeof name !== 'string' || !REGISTRY_NAME.test(name))
    throw new UserFault(
      'the registry requires a name: set "mcpName": "io.github.<user>/<server>" in package.json, or --name',
      1,
    );
  if (manifest.mcpName !== name)
    environment.error(
      `toolwright: the registry verifies the name: the published package.json must contain "mcpName": "${name}"\n`,
    );
  const { name: packageName, version = '0.0.0', description, repository } = manifest;
  if (typeof description !== 'string' || description.trim() === '')
    throw new UserFault('the registry requires a "description" in package.json', 1);
  const isPublished = manifest.private !== true && typeof packageName === 'string';
  const { url } = values;
  if (!isPublished && url === undefined)
    throw new UserFault(
      'the package is private or has no name, so no package registry contains it: give the address of the remote server with --url https://…',
      1,
    );
  const repositoryUrl = repositoryOf(repository);
  const server = withoutUndefined({
    $schema: SCHEMA,
    name,
    description,
    version,
    repository: repositoryUrl && {
      url: repositoryUrl,
      source: repositoryUrl.includes('github.com') ? 'github' : 'git',
    },
    packages: isPublished
      ? [{ registryType: 'npm', identifier: packageName, version, transport: { type: 'stdio' } }]
      : undefined,
    remotes: url === undefined ? undefined : [{ type: 'streamable-http', url }],
  });
  environment.out(`${JSON.stringify(server, null, 2)}\n`);
  return 0;
}

function manifestIn(folder: string): JsonObject | undefined {
  try {
    const manifest: unknown = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    return isRecord(manifest) ? manifest : undefined;
  } catch {
    return undefined;
  }
}

function repositoryOf(repository: unknown): string | undefined {
  const given = isRecord(repository) ? repository.url : repository;
  if (typeof given !== 'string') return undefined;
  const [, short] = /^(?:github:)?([\w.-]+\/[\w.-]+)$/.exec(given) ?? [];
  return short === undefined
    ? given.replace(/^git\+/, '').replace(/\.git$/, '')
    : `https://github.com/${short}`;
}

/**
 * `toolwright mcp check <url | module>`: checks what hosts find when they connect, and what the directories of Claude
 * and ChatGPT would refuse.
 */
async function checkMcp(args: readonly string[], environment: CommandEnvironment): Promise<number> {
  const { name: target, values } = readLine(
    args,
    { token: STRING, json: FLAG },
    'mcp check takes one address or module: toolwright mcp check https://api.example.org/mcp',
  );
  const isAddress = /^https?:\/\//i.test(target);
  if (isAddress && !URL.canParse(target))
    throw new UserFault(`${target} is not a valid URL: toolwright mcp check https://api.example.org/mcp`);
  const findings: Diagnosis[] = [];
  if (isAddress) for await (const found of checkServer(new URL(target), values.token)) findings.push(found);
  else
    await withModule(target, environment, (module) => {
      const registry = requiredRegistry(target, module);
      findings.push(...toolFindings(registry.tools().map((tool) => listedTool(tool, false))));
      for (const fault of allAppFaults(registry))
        findings.push(problem(`${fault.where}: ${fault.problem} (${fault.fix})`));
    });
  return printFindings(findings, environment, values.json);
}

const MAX_NAME = 64;
/** Characters of the instructions that ChatGPT reads. */
const MAX_INSTRUCTIONS = 512;

/** Requirements of the directories for every tool (Claude: connector review; ChatGPT: apps and plugins). */
function toolFindings(tools: readonly unknown[]): readonly Diagnosis[] {
  const findings = tools.filter(isRecord).flatMap(({ name, title, description, annotations }) => {
    const { title: inner, readOnlyHint, destructiveHint, openWorldHint } = recordOf(annotations);
    const found: Diagnosis[] = [];
    const must = (holds: boolean, text: string, create = problem) =>
      holds || found.push(create(`the tool ${String(name)} ${text}`));
    must(String(name).length <= MAX_NAME, `has a name of more than ${MAX_NAME} characters: shorten it`);
    must(Boolean(description), 'has no description: describe what it does and when to use it');
    const words = String(name).replaceAll(/[_-]+/g, ' ');
    must(
      Boolean(title ?? inner),
      `has no title: annotations: { title: '${words.charAt(0).toUpperCase()}${words.slice(1)}' }`,
    );
    must(
      readOnlyHint === true || destructiveHint !== undefined,
      'does not declare whether it changes anything: annotations: { readOnly: true }, or { destructive: true or false }',
    );
    must(
      [readOnlyHint, destructiveHint, openWorldHint].every((hint) => hint !== undefined),
      'lacks one of the hints that ChatGPT requires: annotations: { readOnly, destructive, openWorld }',
      advice,
    );
    return found;
  });
  return findings.length > 0
    ? findings
    : [ok(`${counted(tools.length, 'tool')}: all requirements of the directories are met`)];
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly message: JsonObject;
}

/** A 2025-11-25 client, like most hosts. */
class Probe {
  readonly #url: URL;
  readonly #token: string | undefined;
  #session: string | undefined;

  constructor(url: URL, token: string | undefined) {
    this.#url = url;
    this.#token = token;
  }

  async initialize(): Promise<Answer> {
    return this.send('initialize', {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'toolwright', version: '1' },
    });
  }

  async send(method: string, params: JsonObject = {}): Promise<Answer> {
    const isNotification = method.startsWith('notifications/');
    const response = await fetch(this.#url, {
      signal: timeLimit(),
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...(this.#token !== undefined && { authorization: `Bearer ${this.#token}` }),
        ...(this.#session !== undefined && { 'mcp-session-id': this.#session }),
      },
      body: JSON.stringify({ jsonrpc: '2.0', method, params, ...(!isNotification && { id: 1 }) }),
    });
    this.#session = response.headers.get('mcp-session-id') ?? this.#session;
    const { status, headers } = response;
    const text = await response.text();
    // The last message of a body, which may be an event stream.
    const lines = text.match(/^data: ?(.+)$/gm);
    return { status, headers, message: recordOf(parsedJson(lines?.at(-1)?.replace(/^data: ?/, '') ?? text)) };
  }
}

const MAX_SECONDS = 10;

/** The time limit of a request, until the end of its answer. */
function timeLimit(): AbortSignal {
  return AbortSignal.timeout(MAX_SECONDS * 1000);
}

async function* checkServer(url: URL, token: string | undefined): AsyncGenerator<Diagnosis> {
  if (url.protocol !== 'https:' && !isLoopbackHost(url.hostname))
    yield problem(`${url} is not an HTTPS address; Claude and ChatGPT require HTTPS`);
  const probe = new Probe(url, token);
  let first: Answer;
  // An accepted token hides how hosts find the sign-in.
  let withoutToken: Answer;
  try {
    first = await probe.initialize();
    withoutToken =
      token === undefined || first.status === 401 ? first : await new Probe(url, undefined).initialize();
  } catch (error) {
    return yield problem(`${url} cannot be reached: ${reasonOf(error)}`);
  }
  const { status, message } = first;
  const challenge = withoutToken.headers.get('www-authenticate');
  if (status === 401) {
    if (token !== undefined)
      yield problem(`the server refuses the token: 401 ${challenge ?? problemIn(message)}`);
  } else if (isRecord(message.result)) {
    yield ok(`connects ${token === undefined ? 'without a token' : 'with the token'}`);
    try {
      yield* checkConnected(probe, message.result);
    } catch (error) {
      yield problem(`${url} stopped answering: ${reasonOf(error)}`);
    }
  } else yield problem(`${url} answered initialize with status ${status}: ${problemIn(message)}`);
  if (withoutToken.status !== 401) yield* checkSignIn(url, undefined);
  else {
    if (challenge === null)
      yield problem(
        'the 401 response has no WWW-Authenticate header: send Bearer resource_metadata="<URL>", which hosts use to find the sign-in',
      );
    yield* checkSignIn(url, challenge ?? '');
  }
}

/** Checks the tools, and the views of MCP Apps as a host reads them. */
async function* checkConnected(probe: Probe, { instructions }: JsonObject): AsyncGenerator<Diagnosis> {
  if (typeof instructions === 'string' && instructions.length > MAX_INSTRUCTIONS)
    yield advice(
      `the instructions have ${instructions.length} characters; ChatGPT reads only the first ${MAX_INSTRUCTIONS}`,
    );
  await probe.send('notifications/initialized');
  const tools: unknown[] = [];
  let cursor: unknown;
  do {
    const { status, message } = await probe.send('tools/list', { cursor });
    const { result } = message;
    if (!isRecord(result) || !Array.isArray(result.tools))
      return yield problem(`the server answered tools/list with status ${status}: ${problemIn(message)}`);
    tools.push(...result.tools);
    cursor = result.nextCursor;
  } while (cursor !== undefined);
  yield* toolFindings(tools);
  const uris = new Set(tools.map((tool) => recordOf(recordOf(recordOf(tool)._meta).ui).resourceUri));
  for (const uri of uris) {
    if (typeof uri !== 'string') continue;
    const { message } = await probe.send('resources/read', { uri });
    const { contents } = recordOf(message.result);
    const { mimeType, text, blob } = recordOf(Array.isArray(contents) ? contents[0] : undefined);
    const html = typeof blob === 'string' ? Buffer.from(blob, 'base64').toString() : String(text);
    if (!Array.isArray(contents)) yield problem(`the view ${uri} cannot be read: ${problemIn(message)}`);
    else if (mimeType !== APP_MIME_TYPE)
      yield problem(`the view ${uri} has the type ${String(mimeType)}; hosts only show ${APP_MIME_TYPE}`);
    else if (/^\s*<!doctype html>/i.test(html)) yield ok(`the view ${uri} can be read`);
    else yield advice(`the view ${uri} does not begin with <!doctype html>, as MCP Apps require`);
  }
}

/** `fetch` reports the reason as the cause of its error. */
function reasonOf(error: unknown): string {
  const { name, cause } = error as Error;
  return name === 'TimeoutError'
    ? `no complete answer within ${MAX_SECONDS} seconds`
    : errorMessage(cause ?? error);
}

function recordOf(value: unknown): JsonObject {
  return isRecord(value) ? value : {};
}

function problemIn({ error }: JsonObject): string {
  return isRecord(error) ? String(error.message) : 'no MCP message';
}

/**
 * The JSON object at the first address that has one, or the addresses without one, and why; `isUnreachable` if a request
 * failed without an answer.
 */
async function readJson(...addresses: readonly (URL | string)[]) {
  const failures: string[] = [];
  let isUnreachable = false;
  for (const address of addresses)
    try {
      const response = await fetch(address, {
        headers: { accept: 'application/json' },
        signal: timeLimit(),
      });
      const value: unknown = parsedJson(await response.text());
      if (response.ok && isRecord(value)) return { value, failures: '', isUnreachable };
      failures.push(`${address} (${response.ok ? 'not a JSON object' : response.status})`);
    } catch (error) {
      isUnreachable = true;
      failures.push(`${address} (${reasonOf(error)})`);
    }
  return { value: undefined, failures: failures.join(' and '), isUnreachable };
}

/**
 * Follows the sign-in of hosts from 401 towards a token, as far as possible without an account. Without a challenge
 * the server may have no sign-in.
 */
async function* checkSignIn(url: URL, challenge: string | undefined): AsyncGenerator<Diagnosis> {
  if (challenge && !/^Bearer\b/i.test(challenge))
    yield problem('WWW-Authenticate does not begin with Bearer');
  const [, named] = /resource_metadata="([^"]+)"/.exec(challenge ?? '') ?? [];
  if (challenge && named === undefined)
    yield problem('WWW-Authenticate has no resource_metadata, so hosts have to guess its address');
  const isOptional = challenge === undefined;
  // At the path of the server, and at the root (RFC 9728, section 3.1).
  const path = '/.well-known/oauth-protected-resource';
  const places = [`${path}${url.pathname === '/' ? '' : url.pathname}`, path].map((one) => new URL(one, url));
  const addresses = named === undefined ? places.slice(0, isOptional ? 1 : 2) : [named];
  const { value: resource, failures, isUnreachable } = await readJson(...addresses);
  if (resource === undefined) {
    if (!isOptional || isUnreachable)
      yield problem(`no metadata of the protected resource (RFC 9728) was found at ${failures}`);
    return;
  }
  if (String(resource.resource).replace(/\/$/, '') !== url.href.replace(/\/$/, ''))
    yield problem(
      `the metadata describes ${String(resource.resource)}: \`oauth.resource\` must be ${url.href}`,
    );
  const [issuer] = Array.isArray(resource.authorization_servers) ? resource.authorization_servers : [];
  if (typeof issuer !== 'string' || !URL.canParse(issuer))
    return yield problem('the metadata contains no URL of an authorization server');
  yield ok(`the metadata of the protected resource names ${issuer}`);
  yield* checkAuthorizationServer(issuer);
}

async function* checkAuthorizationServer(issuer: string): AsyncGenerator<Diagnosis> {
  const { origin, pathname } = new URL(issuer);
  const path = pathname === '/' ? '' : pathname.replace(/\/$/, '');
  const addresses = [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ];
  const { value: metadata, failures } = await readJson(...addresses);
  if (metadata === undefined)
    return yield problem(`no metadata of the authorization server was found at ${failures}`);
  if (metadata.issuer !== issuer)
    yield problem(`the authorization server states the issuer ${String(metadata.issuer)}, not ${issuer}`);
  if (!includes(metadata.code_challenge_methods_supported, 'S256'))
    yield problem('the authorization server does not list PKCE with S256, which every host requires');
  const hasDocuments = metadata.client_id_metadata_document_supported === true;
  // The documents of hosts are those of public clients. RFC 8414: without a list, only `client_secret_basic`.
  const hasPublicClients = includes(metadata.token_endpoint_auth_methods_supported, 'none');
  const documentWay = hasDocuments && hasPublicClients ? ['a client metadata document'] : [];
  const registrationWay = typeof metadata.registration_endpoint === 'string' ? ['dynamic registration'] : [];
  for (const [host, documents] of HOSTS) {
    const [way] = [...(documents ? documentWay : []), ...registrationWay];
    const reason =
      documents && hasDocuments
        ? '. It uses client metadata documents only if the authorization server lists "none" in token_endpoint_auth_methods_supported'
        : '';
    yield way === undefined
      ? advice(`${host} needs a client ID: register one by hand and enter it there${reason}`)
      : ok(`${host} registers with ${way}`);
  }
}

/** Hosts, and whether they support client ID metadata documents. */
const HOSTS = [
  ['Claude', true],
  ['ChatGPT', true],
  ['VS Code', false],
  ['Cursor', false],
] as const;

function includes(list: unknown, wanted: string): boolean {
  return Array.isArray(list) && list.includes(wanted);
}
