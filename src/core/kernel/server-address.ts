import type { OptionFault, OptionRule } from './options.js';

/** The addresses of a kind of server. */
interface AddressKind {
  /** Without `://`. */
  readonly schemes: readonly string[];
  /** Other texts that are also addresses. */
  readonly others?: RegExp;
  readonly hostMayLack?: true;
}

const KINDS = {
  /** As ioredis reads it: it takes other texts as host names, and an empty host as this machine. */
  redis: { schemes: ['redis', 'rediss'] },
  /** As `pg` reads it, including the folder of a socket. It takes any other text as a database on the host `base`. */
  postgres: { schemes: ['postgres', 'postgresql'], others: /^(\/|socket:)./, hostMayLack: true },
} as const satisfies Record<string, AddressKind>;

/** The rule for addresses of a kind of server; errors about them never contain secrets. */
export function serverAddress(server: keyof typeof KINDS, fix: string): OptionRule {
  const kind: AddressKind = KINDS[server];
  return {
    accepts: (value) => typeof value === 'string' && addressFault(value, kind) === undefined,
    fix,
    isSecret: true,
    explain: (value, option): readonly OptionFault[] => {
      const problem = typeof value === 'string' ? addressFault(value, kind) : undefined;
      if (problem === undefined) return [];
      return [{ option, problem: `${option} ${problem}`, fix: `${option}: ${fix}` }];
    },
  };
}

const HIGHEST_PORT = 65_535;

/** The problem of an address, without its secrets. */
function addressFault(text: string, { schemes, others, hostMayLack }: AddressKind): string | undefined {
  if (others?.test(text)) return undefined;
  if (text.trim() === '') return 'is empty';
  const [, scheme, authority = '', rest = ''] = /^([a-z][\w+.-]*):\/\/([^/?#]*)(.*)$/is.exec(text) ?? [];
  const begins = `must begin with ${schemes.map((name) => `${name}://`).join(' or ')}`;
  if (scheme === undefined) return begins;
  if (!schemes.includes(scheme.toLowerCase())) return `${begins}, not with ${scheme}://`;
  const [mark] = /^(?:#|\/[^?]*(?=@)|\?[^=&]*(?=@))/.exec(rest) ?? [];
  if (mark !== undefined) return `has a '${mark[0]}' before its host: in a password, ${CODES}`;
  const [, port] = /:([^:\]]*)$/.exec(authority.replace(/.*@/s, '')) ?? [];
  if (port && !/^\d+$/.test(port)) return 'has a port that is not a number';
  if (Number(port) > HIGHEST_PORT) return `has the port ${port}; the highest port is ${HIGHEST_PORT}`;
  const read = hostMayLack ? withHost(text) : text;
  if (!URL.canParse(read)) return 'is not a valid URL';
  return hostMayLack || new URL(read).hostname !== '' ? undefined : 'names no host';
}

const CODES = "'#' is written %23, '/' %2F, '?' %3F and '@' %40";

/** `pg` accepts an address with a user but without a host. */
function withHost(text: string): string {
  return text.replace('@/', '@localhost/');
}

/** The server and its database, without secrets: `127.0.0.1:5432/shop`. */
export function placeIn(address: string): string {
  if (!URL.canParse(withHost(address))) return address.replace(/[?#].*$/s, '');
  const { hostname, port, pathname, searchParams } = new URL(withHost(address));
  const host = searchParams.get('host') ?? hostname;
  return `${host}${port === '' ? '' : `:${port}`}${pathname === '/' ? '' : pathname}`;
}

/** Whether a host name, also with a port, is this machine. */
export function isLoopbackHost(host: string): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i.test(host);
}
