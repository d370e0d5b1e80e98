import { lookup as systemLookup } from 'node:dns/promises';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { isIP, type LookupFunction } from 'node:net';
import type { Readable, Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import ipaddr from 'ipaddr.js';
import { checkOptions } from '../../core/errors/author-fault.js';
import { anySignal, MAX_TIMER_MS } from '../../core/kernel/async.js';
import { nodeHttp, nodeHttps } from '../../core/kernel/node-module.js';
import { COUNT, FILLED_TEXT, FUNCTION, MILLISECONDS, optionTable, WHOLE } from '../../core/kernel/options.js';
import { fitsHost, HOSTS, type HostPattern } from './host-pattern.js';

/** Options of {@link WebAccess}. */
export interface WebAccessOptions {
  /** Allowed hosts: `example.com`, `*.example.com`, `example.com:8443`. Default: all. */
  readonly allow?: readonly HostPattern[];
  /** Denied hosts, even if `allow` contains them. */
  readonly deny?: readonly HostPattern[];
  /** Hosts that may be in a private network or on this machine. Default: none. */
  readonly privateHosts?: readonly HostPattern[];
  /** The most bytes of a decompressed response. Default 5,000,000. */
  readonly maxBytes?: number;
  /** Milliseconds for a request with all its redirects; default 30,000. */
  readonly timeoutMs?: number;
  /** The most redirects to follow; default 5. */
  readonly maxRedirects?: number;
  /** The header `User-Agent` of each request; default `toolwright`. */
  readonly userAgent?: string;
  /** Resolves a host to its addresses; default: the system's resolver. */
  readonly resolve?: (host: string) => Promise<readonly string[]>;
}

/** A request to the web. */
export interface WebRequest {
  readonly url: string;
  /** Default `GET`. */
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal;
}

/** The response to a request, whatever its status. */
export interface WebResponse {
  /** The URL after redirects. */
  readonly url: string;
  readonly status: number;
  /** The URL of a redirect to another origin, which is not followed. */
  readonly redirect?: string;
  readonly headers: Readonly<IncomingHttpHeaders>;
  /** Decompressed. */
  readonly body: Uint8Array;
  /** The response was longer than `maxBytes`. */
  readonly isCut: boolean;
}

/** A request that was refused or failed; the message is for the caller. */
export class WebFault extends Error {
  override readonly name = 'WebFault';
}

const OPTIONS = optionTable<WebAccessOptions>('WebAccess', {
  allow: { ...HOSTS, isProtecting: true },
  deny: { ...HOSTS, isProtecting: true },
  privateHosts: HOSTS,
  maxBytes: COUNT,
  timeoutMs: MILLISECONDS,
  maxRedirects: WHOLE,
  userAgent: FILLED_TEXT,
  resolve: FUNCTION,
});

const DEFAULT_BYTES = 5_000_000;
const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_REDIRECTS = 5;

/**
 * Sends requests to the public web over HTTP and HTTPS. All addresses of a host are checked before anything is sent,
 * and the connection uses a checked address; this applies to each redirect, too. So names that lead into a private
 * network are refused, even if their DNS record changes between check and connection. Redirects to another origin are
 * not followed, because permissions decided about the host of the request.
 *
 * @example
 * ```ts
 * const web = new WebAccess({ deny: ['*.internal.example.com'] });
 * const { status, body } = await web.request({ url: 'https://example.com/' });
 * ```
 *
 * @throws InvalidOptionsError (521) for invalid options.
 */
export class WebAccess {
  readonly #options: WebAccessOptions;

  constructor(options: WebAccessOptions = {}) {
    checkOptions(options, OPTIONS);
    this.#options = options;
  }

  /**
   * Sends a request and follows its redirects within the origin; one to another origin is returned (`redirect`).
   *
   * @throws WebFault for a forbidden address, too many redirects, no connection, or a time-out; the reason of `signal`
   * if it is aborted.
   */
  async request(request: WebRequest): Promise<WebResponse> {
    const { timeoutMs = DEFAULT_TIMEOUT_MS, maxRedirects = DEFAULT_REDIRECTS } = this.#options;
    const timeout = AbortSignal.timeout(Math.min(timeoutMs, MAX_TIMER_MS));
    const signal = anySignal(request.signal, timeout);
    try {
      let next: WebRequest = { ...request, signal };
      for (let redirects = 0; ; redirects += 1) {
        const response = await this.#exchange(next);
        const { status, headers, url } = response;
        const { location } = headers;
        if (!REDIRECTS.has(status) || location === undefined) return response;
        const target = URL.parse(location, url);
        if (target === null) throw new WebFault('The redirect has no valid URL.');
        if (target.origin !== new URL(url).origin) return { ...response, redirect: target.href };
        if (redirects >= maxRedirects)
          throw new WebFault(`The request was redirected more than ${maxRedirects} times.`);
        next = redirected(next, target.href, status);
      }
    } catch (error) {
      request.signal?.throwIfAborted();
      if (error instanceof WebFault) throw error;
      if (timeout.aborted) throw new WebFault(`The request timed out after ${timeoutMs} ms.`);
      throw new WebFault(`The request failed: ${(error as Error).message}`, { cause: error });
    }
  }

  /** The URL of an address, if it is allowed before its name is resolved. */
  check(address: string): URL {
    const url = URL.canParse(address) ? new URL(address) : undefined;
    if (url === undefined)
      throw new WebFault('The URL is invalid: it must be absolute, e.g. https://example.com/.');
    if (url.protocol !== 'http:' && url.protocol !== 'https:')
      throw new WebFault(`Only http and https are allowed, not ${url.protocol.slice(0, -1)}.`);
    if (url.username !== '' || url.password !== '')
      throw new WebFault('A URL with a user name or a password is not allowed.');
    const { allow, deny = [] } = this.#options;
    if (fitsHost(deny, url) || (allow !== undefined && !fitsHost(allow, url)))
      throw new WebFault(`Requests to ${url.host} are not allowed.`);
    return url;
  }

  /** Sends a request, if all addresses of its host are public. */
  async #exchange(request: WebRequest): Promise<WebResponse> {
    const url = this.check(request.url);
    const { userAgent = 'toolwright', maxBytes = DEFAULT_BYTES } = this.#options;
    const { privateHosts = [], resolve: resolveHost = resolveBySystem } = this.#options;
    // The URL standard has normalized the notation of an IP address.
    const given = url.hostname.replace(/^\[(.*)\]$/, '$1');
    const addresses = isIP(given) === 0 ? await resolveHost(url.hostname) : [given];
    if (addresses.length === 0) throw new WebFault(`${url.hostname} has no IP address.`);
    if (!fitsHost(privateHosts, url) && !addresses.every(isPublicAddress))
      throw new WebFault(
        `${url.hostname} is in a private network or on this machine: requests to it are not allowed.`,
      );
    request.signal?.throwIfAborted();
    // Connects to the checked addresses, without another DNS lookup.
    const found = addresses.map((address) => ({ address, family: isIP(address) }));
    const lookup: LookupFunction = (_host, { all }, done) => {
      const [first = { address: '', family: 0 }] = found;
      if (all) done(null, found);
      else done(null, first.address, first.family);
    };
    const { method = 'GET', body, signal } = request;
    const headers = { 'user-agent': userAgent, 'accept-encoding': 'gzip, deflate, br', ...request.headers };
    const options = { method, headers, signal, lookup, agent: false } as const;
    const { request: send } = url.protocol === 'https:' ? nodeHttps() : nodeHttp();
    const incoming = await new Promise<IncomingMessage>((resolve, reject) => {
      send(url, options).once('response', resolve).on('error', reject).end(body);
    });
    const { statusCode: status = 0, headers: received } = incoming;
    return { url: url.href, status, headers: received, ...(await readBody(incoming, maxBytes)) };
  }
}

async function resolveBySystem(host: string): Promise<readonly string[]> {
  try {
    return (await systemLookup(host, { all: true })).map(({ address }) => address);
  } catch (cause) {
    throw new WebFault(`The host ${host} was not found.`, { cause });
  }
}

async function readBody(incoming: IncomingMessage, maxBytes: number) {
  const chunks: Uint8Array[] = [];
  let left = maxBytes;
  try {
    for await (const chunk of unpacked(incoming) as AsyncIterable<Uint8Array>) {
      chunks.push(chunk.subarray(0, left));
      left -= chunk.length;
      if (left < 0) break;
    }
  } finally {
    incoming.destroy();
  }
  return { body: Buffer.concat(chunks), isCut: left < 0 };
}

/** Decompresses a response; forwards its errors, which `pipe` does not do. */
function unpacked(incoming: IncomingMessage): Readable {
  const { 'content-encoding': encoding = 'identity' } = incoming.headers;
  const name = encoding.trim().toLowerCase();
  if (name === 'identity') return incoming;
  const create = UNPACKERS.get(name);
  if (create === undefined)
    throw new WebFault(`The response is compressed with ${encoding}, which is not supported.`);
  const unpacker = create();
  incoming.on('error', (error) => unpacker.destroy(error));
  return incoming.pipe(unpacker);
}

const UNPACKERS = new Map<string, () => Transform>([
  ['gzip', createGunzip],
  ['x-gzip', createGunzip],
  ['deflate', createInflate],
  ['br', createBrotliDecompress],
]);

const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/** Follows a redirect within an origin as browsers do (Fetch standard, HTTP-redirect fetch). */
function redirected(request: WebRequest, url: string, status: number): WebRequest {
  const { method = 'GET', headers = {}, signal } = request;
  const becomesGet = status === 303 ? method !== 'HEAD' : status < 303 && method === 'POST';
  if (!becomesGet) return { ...request, url };
  const kept = Object.entries(headers).filter(([name]) => !/^content-/i.test(name));
  return { url, headers: Object.fromEntries(kept), signal };
}

/** The only IPv6 range for the public Internet (IANA, IPv6 Address Space); the rest is reserved. */
const GLOBAL_IPV6 = ipaddr.IPv6.parseCIDR('2000::/3');
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');

/**
 * Whether an address belongs to the public Internet: not to a private network, this machine, a link or a multicast
 * group, and not reserved (special-purpose registries of IANA, RFC 6890). An IPv6 address that embeds an IPv4 address
 * counts as that address.
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  if (parsed instanceof ipaddr.IPv4) return parsed.range() === 'unicast';
  // NAT64 (RFC 6052) has the IPv4 address at its end. The local prefix of RFC 8215 may have it elsewhere.
  if (parsed.match(NAT64)) return isPublicAddress(parsed.toByteArray().slice(12).join('.'));
  return parsed.range() === 'unicast' && parsed.match(GLOBAL_IPV6);
}
