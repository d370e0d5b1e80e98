import {
  INTERNAL_ERROR,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
} from '@modelcontextprotocol/server';

/** As in the server’s options, which says what they mean. */
interface AllowedNames {
  readonly allowedHosts?: readonly string[] | 'any';
  readonly allowedOrigins?: readonly string[] | 'any';
}

export type RequestGuard = (request: Request) => Response | undefined;

/** Whoever sends made-up names must not fill the memory. */
const MOST_TOLD = 100;

/**
 * Refuses requests under a foreign name: a page whose host name was pointed at this machine (DNS rebinding)
 * sends its own. The server's owner hears once of each name, and what to do if it is no foreign one.
 */
export function createGuard(options: AllowedNames, onError: (error: unknown) => void): RequestGuard {
  const { allowedHosts = localhostAllowedHostnames(), allowedOrigins } = options;
  const hosts = namesOf(allowedHosts, readHost);
  const ownOrigins = allowedHosts === 'any' ? localhostAllowedOrigins() : allowedHosts;
  const origins = namesOf(allowedOrigins ?? ownOrigins, readOrigin);
  const told = new Set<string>();
  const refuse = (option: string, header: string, value: string): Response => {
    if (told.size < MOST_TOLD && !told.has(option + value)) {
      told.add(option + value);
      onError(new Error(`Requests with ${header}: ${value} are refused. Is it meant? Name it in ${option}.`));
    }
    return refuseRequest(403, `Invalid ${header}: ${value}`);
  };
  return ({ headers, url }) => {
    // A request that no server made has no such header; its address says the same.
    const host = headers.get('host') ?? new URL(url).host;
    if (hosts !== undefined && !isHost(hosts, host)) return refuse('allowedHosts', 'Host', host);
    const origin = headers.get('origin');
    if (origins === undefined || !origin) return undefined;
    const page = parse(origin);
    return page !== undefined && isAllowed(origins, page)
      ? undefined
      : refuse('allowedOrigins', 'Origin', origin);
  };
}

/** Which of the two the client speaks is not known here: a proxy may have decrypted it. */
function isHost(hosts: readonly AllowedName[], host: string): boolean {
  return ['http', 'https'].some((protocol) => {
    const url = parse(`${protocol}://${host}`);
    return url !== undefined && isAllowed(hosts, url);
  });
}

/** Nothing for any name. */
function namesOf(
  list: readonly string[] | 'any',
  read: (entry: unknown) => AllowedName | NameProblem,
): readonly AllowedName[] | undefined {
  if (list === 'any') return undefined;
  return list.map(read).filter((name): name is AllowedName => !('problem' in name));
}

/** A name that requests may come by: a host, one of its ports alone, or for pages a whole origin. */
interface AllowedName {
  /** `https:`; nothing for all of them. */
  readonly protocol?: string;
  /** Nothing for every host of a protocol that only applications have. */
  readonly hostname?: string;
  readonly port?: string;
}

interface NameProblem {
  readonly problem: string;
  readonly fix: string;
}

const DEFAULT_PORTS: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' };
/** `vscode-webview://*`: such hosts are made up anew each time, and no web page has them. */
const APPLICATION = /^(?!https?:)([a-z][a-z0-9+.-]*:)\/\/\*$/i;
const ORIGIN = /^([a-z][a-z0-9+.-]*:)\/\//i;

export function readHost(entry: unknown): AllowedName | NameProblem {
  const shared = problemOf(entry, 'allowedHosts');
  if (shared !== undefined) return shared;
  const text = entry as string;
  const url = parse(ORIGIN.test(text) ? text : `http://${text}`);
  if (url === undefined) return notAHost(text);
  if (ORIGIN.test(text) || !isBare(url)) return { problem: `'${text}' is an address`, fix: `'${url.host}'` };
  return nameOf(url, text);
}

/** Reads an entry of `allowedOrigins`: what a page's `Origin` says, or its host alone. */
export function readOrigin(entry: unknown): AllowedName | NameProblem {
  const protocol = typeof entry === 'string' ? APPLICATION.exec(entry)?.[1] : undefined;
  if (protocol !== undefined) return { protocol: protocol.toLowerCase() };
  const shared = problemOf(entry, 'allowedOrigins');
  if (shared !== undefined) return shared;
  const text = entry as string;
  const isOrigin = ORIGIN.test(text);
  const url = parse(isOrigin ? text : `http://${text}`);
  if (url === undefined || url.hostname === '') return notAHost(text);
  const origin = isOrigin ? `${url.protocol}//${url.host}` : url.host;
  if (!isBare(url) || text.endsWith('/'))
    return { problem: `'${text}' has more than an origin`, fix: `'${origin}'` };
  if (!isOrigin) return nameOf(url, text);
  return { protocol: url.protocol, hostname: url.hostname, port: url.port || portOf(url.protocol) };
}

/** Whether one of the names is the host of a `Host` header, or the origin of a page. */
function isAllowed(names: readonly AllowedName[], { protocol, hostname, port }: URL): boolean {
  return names.some(
    (name) =>
      (name.protocol === undefined || name.protocol === protocol) &&
      (name.hostname === undefined || name.hostname === hostname) &&
      (name.port === undefined || name.port === (port || portOf(protocol))),
  );
}

/** The address that a header names; nothing where it names none. */
function parse(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}

function problemOf(entry: unknown, list: string): NameProblem | undefined {
  if (typeof entry !== 'string') return { problem: `${String(entry)} is no text`, fix: `'mcp.example.org'` };
  if (!entry.includes('*')) return undefined;
  const fix = `each name by itself, or ${list}: 'any'`;
  return { problem: `'${entry}' has a wildcard, and names are compared whole`, fix };
}

function notAHost(text: string): NameProblem {
  const isAddress = text.split(':').length > 2 && parse(`http://[${text}]`) !== undefined;
  return { problem: `'${text}' is no host`, fix: isAddress ? `'[${text}]'` : `'mcp.example.org'` };
}

/** A URL leaves out the default port. */
function nameOf({ hostname }: URL, text: string): AllowedName {
  const port = /:(\d+)$/.exec(text)?.[1];
  return port === undefined ? { hostname } : { hostname, port: String(Number(port)) };
}

function isBare({ pathname, search, hash, username, password }: URL): boolean {
  return (pathname === '/' || pathname === '') && search + hash + username + password === '';
}

function portOf(protocol: string): string {
  return DEFAULT_PORTS[protocol] ?? '';
}

/** JSON-RPC leaves these numbers to servers. */
const SERVER_ERROR = -32_000;

/** The answer to an HTTP request that never becomes a message. */
export function refuseRequest(
  status: number,
  message: string,
  headers: Record<string, string> = {},
): Response {
  const code = status === 500 ? INTERNAL_ERROR : SERVER_ERROR;
  return Response.json({ jsonrpc: '2.0', error: { code, message }, id: null }, { status, headers });
}
