/** A name that requests may come by: a host, one of its ports alone, or for pages a whole origin. */
export interface AllowedName {
  /** `https:`; nothing for all of them. */
  readonly protocol?: string;
  /** Nothing for every host of a protocol that only applications have. */
  readonly hostname?: string;
  readonly port?: string;
}

/** What is wrong with a name, and what to write. */
export interface NameProblem {
  readonly problem: string;
  readonly fix: string;
}

const DEFAULT_PORTS: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' };
/** `vscode-webview://*`: such hosts are made up anew each time, and no web page has them. */
const APPLICATION = /^(?!https?:)([a-z][a-z0-9+.-]*:)\/\/\*$/i;
const ORIGIN = /^([a-z][a-z0-9+.-]*:)\/\//i;

/** Reads an entry of `allowedHosts`. */
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
export function isAllowed(names: readonly AllowedName[], { protocol, hostname, port }: URL): boolean {
  return names.some(
    (name) =>
      (name.protocol === undefined || name.protocol === protocol) &&
      (name.hostname === undefined || name.hostname === hostname) &&
      (name.port === undefined || name.port === (port || portOf(protocol))),
  );
}

/** The address that a header names; nothing where it names none. */
export function parse(text: string): URL | undefined {
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
