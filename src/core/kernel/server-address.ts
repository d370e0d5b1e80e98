import type { OptionFault, OptionRule } from './options.js';

/** Which addresses a kind of server has. */
interface AddressKind {
  /** Without `://`. */
  readonly schemes: readonly string[];
  /** Texts of another form that are addresses, too. */
  readonly others?: RegExp;
  readonly hostMayLack?: true;
}

const KINDS = {
  /** As ioredis reads it, which takes other texts for names of hosts, and none for this machine. */
  redis: { schemes: ['redis', 'rediss'] },
  /** As `pg` reads it: also the folder of a socket. It takes any other text for a database on a host called `base`. */
  postgres: { schemes: ['postgres', 'postgresql'], others: /^(\/|socket:)./, hostMayLack: true },
} as const satisfies Record<string, AddressKind>;

/** The address of a server of a kind; errors about it never contain secrets. */
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

/** What is wrong with an address, in words that show nothing secret of it. */
function addressFault(text: string, { schemes, others, hostMayLack }: AddressKind): string | undefined {
  if (others?.test(text)) return undefined;
  if (text.trim() === '') return 'is empty';
  const [, scheme, authority = '', rest = ''] = /^([a-z][\w+.-]*):\/\/([^/?#]*)(.*)$/is.exec(text) ?? [];
  const begins = `does not begin with ${schemes.map((name) => `${name}://`).join(' or ')}`;
  if (scheme === undefined) return begins;
  if (!schemes.includes(scheme.toLowerCase())) return `${begins}, but with ${scheme}://`;
  const [mark] = /^(?:#|\/[^?]*(?=@)|\?[^=&]*(?=@))/.exec(rest) ?? [];
  if (mark !== undefined) return `has a '${mark[0]}' where its host is to be: in a password, ${CODES}`;
  const [, port] = /:([^:\]]*)$/.exec(authority.replace(/.*@/s, '')) ?? [];
  if (port && !/^\d+$/.test(port)) return 'has a port that is no number';
  if (Number(port) > HIGHEST_PORT) return `has the port ${port}, and the highest is ${HIGHEST_PORT}`;
  const read = hostMayLack ? withHost(text) : text;
  if (!URL.canParse(read)) return 'cannot be read';
  return hostMayLack || new URL(read).hostname !== '' ? undefined : 'names no host';
}

const CODES = "'#' is written %23, '/' %2F, '?' %3F and '@' %40";

/** `pg` takes an address without a host, but with a user. */
function withHost(text: string): string {
  return text.replace('@/', '@localhost/');
}

/** Which server, and which of its databases, without what is secret: `127.0.0.1:5432/shop`. */
export function placeIn(address: string): string {
  if (!URL.canParse(withHost(address))) return address.replace(/[?#].*$/s, '');
  const { hostname, port, pathname, searchParams } = new URL(withHost(address));
  const host = searchParams.get('host') ?? hostname;
  return `${host}${port === '' ? '' : `:${port}`}${pathname === '/' ? '' : pathname}`;
}
