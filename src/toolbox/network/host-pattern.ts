/**
 * A host in options: `example.com`, `*.example.com` for all its subdomains, or an address such as `10.0.0.7` or
 * `[::1]`; each with an optional port.
 */
export type HostPattern = string;

/** Whether a host pattern is valid. */
export function isHostPattern(pattern: unknown): boolean {
  if (typeof pattern !== 'string') return false;
  const plain = pattern.startsWith('*.') ? pattern.slice(2) : pattern;
  if (!URL.canParse(`http://${plain}/`)) return false;
  const { pathname, username, search, hash, hostname } = new URL(`http://${plain}/`);
  if (pathname !== '/' || username !== '' || search !== '' || hash !== '') return false;
  return !/\*|^\.|\.\./.test(hostname);
}

/** Whether one of the patterns matches the host of a URL. */
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

/** In lower case and without a final dot: `Example.com.` becomes `example.com`. */
function plainHost({ hostname }: URL): string {
  return hostname.replace(/\.$/, '');
}

/** Option rules for lists of hosts. */
export const HOSTS = {
  accepts: (value: unknown) => Array.isArray(value) && value.every(isHostPattern),
  fix: "host names: ['example.com', '*.example.com']",
};
