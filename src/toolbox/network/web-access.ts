import { lookup as systemLookup } from 'node:dns/promises';
import {
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestOptions,
  request as sendHttp,
} from 'node:http';
import { request as sendHttps } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import type { Readable, Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import ipaddr from 'ipaddr.js';
import { checkOptions } from '../../core/errors/author-fault.js';
import { COUNT, FILLED_TEXT, FUNCTION, MILLISECONDS, optionTable, WHOLE } from '../../core/kernel/options.js';

/** Where requests may go, and how far they go. */
export interface WebAccessOptions {
  /** Only these hosts, by name: `example.com`, `*.example.com`, `example.com:8443`. Default: all. */
  readonly allow?: readonly HostPattern[];
  /** Never these, whatever `allow` says. */
  readonly deny?: readonly HostPattern[];
  /** Hosts that may be in a private network or on this machine, such as a service of your own. Default: none. */
  readonly privateHosts?: readonly HostPattern[];
  /** Bytes of a response, unpacked; the rest is left. Default 5,000,000. */
  readonly maxBytes?: number;
  /** Milliseconds for a request with all its redirects; default 30,000. */
  readonly timeoutMs?: number;
  /** Redirects that are followed; default 5. */
  readonly maxRedirects?: number;
  readonly userAgent?: string;
  /** The addresses of a host; default: what the system says. */
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

/** What came of a request, whatever its status. */
export interface WebResponse {
  /** After redirects. */
  readonly url: string;
  readonly status: number;
  readonly headers: Readonly<IncomingHttpHeaders>;
  /** Unpacked. */
  readonly body: Uint8Array;
  /** There was more than `maxBytes`. */
  readonly isCut: boolean;
}

/** A request that was not made, or to which nothing came; the message is for whoever asked. */
export class WebFault extends Error {
  override readonly name = 'WebFault';
}

/** What a list of hosts may be. */
export const HOSTS = {
  accepts: (value: unknown) => Array.isArray(value) && value.every(isHostPattern),
  fix: "names of hosts: ['example.com', '*.example.com']",
};

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
 * Requests to the public web over HTTP and HTTPS. Every address of a host is looked at before anything is sent, and
 * the connection goes to the very address that was looked at, also after each redirect: a name that leads into a
 * private network, or that changes its mind in between, is not asked.
 *
 * @example
 * ```ts
 * const web = new WebAccess({ deny: ['*.internal.example.com'] });
 * const { status, body } = await web.request({ url: 'https://example.com/' });
 * ```
 *
 * @throws InvalidOptionsError (521) for options that are wrong.
 */
export class WebAccess {
  readonly #options: WebAccessOptions;

  constructor(options: WebAccessOptions = {}) {
    checkOptions(options, OPTIONS);
    this.#options = options;
  }

  /**
   * Makes a request and follows its redirects.
   *
   * @throws WebFault for an address that may not be asked, too many redirects, no connection, or no answer in time;
   *   the reason of `signal` where that aborts.
   */
  async request(request: WebRequest): Promise<WebResponse> {
    const { timeoutMs = DEFAULT_TIMEOUT_MS, maxRedirects = DEFAULT_REDIRECTS } = this.#options;
    const timeout = AbortSignal.timeout(Math.min(timeoutMs, 2 ** 31 - 1));
    const signal = request.signal === undefined ? timeout : AbortSignal.any([request.signal, timeout]);
    try {
      let next: WebRequest = { ...request, signal };
      for (let redirects = 0; ; redirects += 1) {
        const response = await this.#exchange(next);
        const target = redirectOf(response);
        if (target === undefined) return response;
        if (redirects >= maxRedirects) throw new WebFault(`There were more than ${maxRedirects} redirects.`);
        next = redirected(next, target, response.status);
      }
    } catch (error) {
      request.signal?.throwIfAborted();
      if (error instanceof WebFault) throw error;
      if (timeout.aborted) throw new WebFault(`Nothing came within ${timeoutMs} ms.`);
      throw new WebFault(`The request failed: ${(error as Error).message}`, { cause: error });
    }
  }

  /** The URL of an allowed address, as far as that is known before its name is resolved. */
  check(address: string): URL {
    const url = URL.canParse(address) ? new URL(address) : undefined;
    if (url === undefined) throw new WebFault('That is no address: write it with https://.');
    if (url.protocol !== 'http:' && url.protocol !== 'https:')
      throw new WebFault(`Only http and https can be asked, not ${url.protocol.slice(0, -1)}.`);
    if (url.username !== '' || url.password !== '')
      throw new WebFault('An address with a user or a password in it is not asked.');
    const { allow, deny = [] } = this.#options;
    if (fitsHost(deny, url) || (allow !== undefined && !fitsHost(allow, url)))
      throw new WebFault(`${url.host} is not among the hosts that may be asked.`);
    return url;
  }

  async #exchange(request: WebRequest): Promise<WebResponse> {
    const url = this.check(request.url);
    const addresses = await this.#addresses(url);
    request.signal?.throwIfAborted();
    const { userAgent = 'toolwright', maxBytes = DEFAULT_BYTES } = this.#options;
    const { method = 'GET', body, signal } = request;
    const headers = { 'user-agent': userAgent, 'accept-encoding': 'gzip, deflate, br', ...request.headers };
    const options = { method, headers, signal, lookup: lookupOf(addresses), agent: false } as const;
    const incoming = await sent(url, options, body);
    const { bytes, isCut } = await readBody(incoming, maxBytes);
    return { url: url.href, status: incoming.statusCode ?? 0, headers: incoming.headers, body: bytes, isCut };
  }

  /** All addresses of the host. Where one of them is not public, none of them is asked. */
  async #addresses(url: URL): Promise<readonly string[]> {
    const { privateHosts = [], resolve = resolveBySystem } = this.#options;
    const given = addressIn(url);
    const addresses = given === undefined ? await resolve(url.hostname) : [given];
    if (addresses.length === 0) throw new WebFault(`${url.hostname} has no address.`);
    if (!fitsHost(privateHosts, url) && !addresses.every(isPublicAddress))
      throw new WebFault(`${url.hostname} is in a private network, or on this machine: it is not asked.`);
    return addresses;
  }
}

async function resolveBySystem(host: string): Promise<readonly string[]> {
  try {
    return (await systemLookup(host, { all: true })).map(({ address }) => address);
  } catch (cause) {
    throw new WebFault(`There is no host ${host}.`, { cause });
  }
}

/** Connects to the addresses that were checked, without a second look-up. */
function lookupOf(addresses: readonly string[]): LookupFunction {
  const found = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_host, { all }, done) => {
    const [first = { address: '', family: 0 }] = found;
    if (all) done(null, found);
    else done(null, first.address, first.family);
  };
}

function sent(url: URL, options: RequestOptions, body: string | undefined): Promise<IncomingMessage> {
  const send = url.protocol === 'https:' ? sendHttps : sendHttp;
  return new Promise((resolve, reject) => {
    send(url, options).once('response', resolve).on('error', reject).end(body);
  });
}

async function readBody(
  incoming: IncomingMessage,
  maxBytes: number,
): Promise<{ readonly bytes: Uint8Array; readonly isCut: boolean }> {
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
  return { bytes: Buffer.concat(chunks), isCut: left < 0 };
}

/** A stream that fails where the response does: `pipe` hands no errors on. */
function unpacked(incoming: IncomingMessage): Readable {
  const create = UNPACKERS.get(incoming.headers['content-encoding']?.trim().toLowerCase() ?? 'identity');
  if (create === undefined)
    throw new WebFault(
      `The answer is packed as ${incoming.headers['content-encoding']}, which is not known.`,
    );
  const unpacker = create();
  if (unpacker === undefined) return incoming;
  incoming.on('error', (error) => unpacker.destroy(error));
  return incoming.pipe(unpacker);
}

const UNPACKERS: ReadonlyMap<string, () => Transform | undefined> = new Map<
  string,
  () => Transform | undefined
>([
  ['identity', () => undefined],
  ['gzip', createGunzip],
  ['x-gzip', createGunzip],
  ['deflate', createInflate],
  ['br', createBrotliDecompress],
]);

const REDIRECTS = new Set([301, 302, 303, 307, 308]);

function redirectOf({ status, headers: { location }, url }: WebResponse): string | undefined {
  if (!REDIRECTS.has(status) || location === undefined) return undefined;
  if (!URL.canParse(location, url)) throw new WebFault('The redirect leads to no address.');
  return new URL(location, url).href;
}

/** As browsers do it (Fetch standard, HTTP-redirect fetch); secrets stay with the origin that they were meant for. */
function redirected(
  { url, method = 'GET', headers = {}, body, signal }: WebRequest,
  target: string,
  status: number,
) {
  const becomesGet = status === 303 ? method !== 'HEAD' : status < 303 && method === 'POST';
  const isSameOrigin = new URL(url).origin === new URL(target).origin;
  const kept = Object.entries(headers).filter(
    ([name]) =>
      (isSameOrigin || !/^(?:authorization|cookie|proxy-authorization|x-.*)$/i.test(name)) &&
      (!becomesGet || !/^content-/i.test(name)),
  );
  return {
    url: target,
    method: becomesGet ? 'GET' : method,
    headers: Object.fromEntries(kept),
    ...(becomesGet || body === undefined ? {} : { body }),
    ...(signal === undefined ? {} : { signal }),
  };
}

/**
 * Hosts, as options name them: `example.com`, `*.example.com` for all below it, an address such as `10.0.0.7` or
 * `[::1]`; each may end with a port.
 */
export type HostPattern = string;

/** Whether a pattern can fit a host at all. */
function isHostPattern(pattern: unknown): boolean {
  if (typeof pattern !== 'string') return false;
  const plain = pattern.startsWith('*.') ? pattern.slice(2) : pattern;
  if (!URL.canParse(`http://${plain}/`)) return false;
  const { pathname, username, search, hash, hostname } = new URL(`http://${plain}/`);
  return pathname === '/' && username === '' && search === '' && hash === '' && !hostname.includes('*');
}

/** Whether one of the patterns names the host of a URL. */
export function fitsHost(patterns: readonly HostPattern[], url: URL): boolean {
  return patterns.some((pattern) => fits(pattern, url));
}

function fits(pattern: HostPattern, url: URL): boolean {
  const isBelow = pattern.startsWith('*.');
  const named = new URL(`${url.protocol}//${isBelow ? pattern.slice(2) : pattern}/`);
  if (/:\d+$/.test(pattern) && named.port !== url.port) return false;
  const [wanted, given] = [plainHost(named), plainHost(url)];
  return isBelow ? given.endsWith(`.${wanted}`) : given === wanted;
}

/** In small letters and without the dot of the root: `Example.com.` is `example.com`. */
function plainHost({ hostname }: URL): string {
  return hostname.replace(/\.$/, '');
}

/** The address that a host is, where it is one; the URL standard has brought all its notations into one form. */
function addressIn({ hostname }: URL): string | undefined {
  const address = hostname.replace(/^\[(.*)\]$/, '$1');
  return isIP(address) === 0 ? undefined : address;
}

/** Only these are given out for the public Internet (IANA, IPv6 Address Space); the rest is reserved. */
const GLOBAL_IPV6 = ipaddr.IPv6.parseCIDR('2000::/3');
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');

/**
 * Whether an address is one of the public Internet: not of a private network, this machine, a link, a group, nor
 * reserved (the special-purpose registries of IANA, RFC 6890). An IPv6 address that stands for one of IPv4 is treated
 * as that.
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  if (parsed instanceof ipaddr.IPv4) return parsed.range() === 'unicast';
  // NAT64 (RFC 6052) has the IPv4 address at its end. The local prefix of RFC 8215 may have it elsewhere.
  if (parsed.match(NAT64)) return isPublicAddress(parsed.toByteArray().slice(12).join('.'));
  return parsed.range() === 'unicast' && parsed.match(GLOBAL_IPV6);
}
