import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/**
 * Hosts, as options name them: `example.com`, `*.example.com` for all below it, an address such as `10.0.0.7` or
 * `[::1]`; each may end with a port.
 */
export type HostPattern = string;

/** Whether a pattern can fit a host at all. */
export function isHostPattern(pattern: unknown): boolean {
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
export function addressIn({ hostname }: URL): string | undefined {
  const address = hostname.replace(/^\[(.*)\]$/, '$1');
  return isIP(address) === 0 ? undefined : address;
}

/**
 * Whether an address is one of the public Internet: not of a private network, this machine, a link, a group, nor
 * reserved (the special-purpose registries of IANA, RFC 6890). An IPv6 address that stands for one of IPv4 is judged
 * as that.
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  if (parsed instanceof ipaddr.IPv4) return parsed.range() === 'unicast';
  const bytes = parsed.toByteArray();
  // NAT64 (RFC 6052) has the IPv4 address at its end.
  if (parsed.range() === 'rfc6052') return isPublicAddress(bytes.slice(12).join('.'));
  return parsed.range() === 'unicast';
}
