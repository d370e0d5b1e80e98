import {
  INTERNAL_ERROR,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
} from '@modelcontextprotocol/server';

/** The server's options of the same names. */
interface AllowedNames {
  readonly oauth?: { readonly resource: string };
  readonly allowedHosts?: readonly string[] | 'any';
  readonly allowedOrigins?: readonly string[] | 'any';
}

/** Limits memory: clients may send any number of invented names. */
const MAX_REPORTED = 100;

/**
 * Refuses requests with an unknown host or origin. This prevents DNS rebinding, in which a page's host name resolves to
 * this machine. Each name is reported once, with the option that allows it.
 */
export function createGuard(
  options: AllowedNames,
  onError: (error: unknown) => void,
): (request: Request) => Response | undefined {
  const { allowedHosts: given = localhostAllowedHostnames(), allowedOrigins, oauth } = options;
  const allowedHosts = given === 'any' || !oauth ? given : [...given, new URL(oauth.resource).host];
  const hosts = namesOf(allowedHosts, 'allowedHosts');
  const ownOrigins = allowedHosts === 'any' ? localhostAllowedOrigins() : allowedHosts;
  const origins = namesOf(allowedOrigins ?? ownOrigins, 'allowedOrigins');
  const reported = new Set<string>();
  const refuse = (option: NameList, header: string, value: string): Response => {
    if (reported.size < MAX_REPORTED && !reported.has(option + value)) {
      reported.add(option + value);
      onError(new Error(`Requests with ${header}: ${value} are refused. Is it meant? Name it in ${option}.`));
    }
    return refuseRequest(403, `Invalid ${header}: ${value}`);
  };
  return ({ headers, url }) => {
    // A request that no HTTP server created lacks the header; its URL contains the host.
    const host = headers.get('host') ?? new URL(url).host;
    // User names and paths are not part of a host.
    if ('problem' in readName(host, 'allowedHosts')) return refuseRequest(403, `Invalid Host: ${host}`);
    // The client's protocol is unknown here, because a proxy may have terminated TLS.
    if (!['http', 'https'].some((protocol) => isAllowed(hosts, `${protocol}://${host}`)))
      return refuse('allowedHosts', 'Host', host);
    const origin = headers.get('origin');
    return !origin || isAllowed(origins, origin) ? undefined : refuse('allowedOrigins', 'Origin', origin);
  };
}

/** `undefined` if every name is allowed. */
function namesOf(list: readonly string[] | 'any', of: NameList): readonly AllowedName[] | undefined {
  if (list === 'any') return undefined;
  return list.map((entry) => readName(entry, of)).filter((name): name is AllowedName => !('problem' in name));
}

/** Whether a `Host` header, or the origin of a page, matches one of the names. */
function isAllowed(names: readonly AllowedName[] | undefined, address: string): boolean {
  if (names === undefined) return true;
  const url = URL.parse(address);
  return names.some(
    ({ protocol, hostname, port }) =>
      url !== null &&
      (protocol === undefined || protocol === url.protocol) &&
      (hostname === undefined || hostname === url.hostname) &&
      (port === undefined || port === portOf(url)),
  );
}

type NameList = 'allowedHosts' | 'allowedOrigins';

/** An allowed name: a host, a host with one port, or for pages an origin. */
interface AllowedName {
  /** `https:`; undefined for all protocols. */
  readonly protocol?: string | undefined;
  /** Undefined for all hosts of a protocol that only applications use. */
  readonly hostname?: string | undefined;
  readonly port?: string | undefined;
}

const DEFAULT_PORTS: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' };
/** `vscode-webview://*`: applications create such hosts at random, and web pages cannot have them. */
const APPLICATION = /^(?!https?:)([a-z][a-z0-9+.-]*:)\/\/\*$/i;
const ORIGIN = /^([a-z][a-z0-9+.-]*:)\/\//i;

/** Parses an entry: a host, or for pages an origin or its host. */
export function readName(
  entry: unknown,
  list: NameList,
): AllowedName | { readonly problem: string; readonly fix: string } {
  if (typeof entry !== 'string') return { problem: `${String(entry)} is not text`, fix: `'mcp.example.org'` };
  const isOfPage = list === 'allowedOrigins';
  const application = isOfPage ? APPLICATION.exec(entry)?.[1] : undefined;
  if (application !== undefined) return { protocol: application.toLowerCase() };
  if (entry.includes('*')) {
    const fix = `each name by itself, or ${list}: 'any'`;
    return { problem: `'${entry}' has a wildcard, and names are compared whole`, fix };
  }
  const isOrigin = ORIGIN.test(entry);
  const url = URL.parse(isOrigin ? entry : `http://${entry}`);
  if (!url?.hostname) {
    const isAddress = entry.split(':').length > 2 && URL.canParse(`http://[${entry}]`);
    return { problem: `'${entry}' is not a host`, fix: isAddress ? `'[${entry}]'` : `'mcp.example.org'` };
  }
  const { protocol, hostname, host, pathname, search, hash, username, password } = url;
  const isBare = /^\/?$/.test(pathname) && search + hash + username + password === '';
  if (!isOfPage && (isOrigin || !isBare)) return { problem: `'${entry}' is an address`, fix: `'${host}'` };
  if (isOfPage && (!isBare || entry.endsWith('/')))
    return {
      problem: `'${entry}' has more than an origin`,
      fix: `'${isOrigin ? `${protocol}//` : ''}${host}'`,
    };
  if (isOrigin) return { protocol, hostname, port: portOf(url) };
  // `URL` omits the default port.
  const [, port] = /:(\d+)$/.exec(entry) ?? [];
  return { hostname, port: port && String(Number(port)) };
}

function portOf({ port, protocol }: URL): string {
  return port || (DEFAULT_PORTS[protocol] ?? '');
}

/** JSON-RPC reserves this range for servers. */
const SERVER_ERROR = -32_000;

/** The response to an HTTP request that is refused before it is parsed as a message. */
export function refuseRequest(
  status: number,
  message: string,
  {
    headers = {},
    code = status === 500 ? INTERNAL_ERROR : SERVER_ERROR,
    id = null,
  }: { readonly headers?: Record<string, string>; readonly code?: number; readonly id?: unknown } = {},
): Response {
  return Response.json({ jsonrpc: '2.0', error: { code, message }, id }, { status, headers });
}
