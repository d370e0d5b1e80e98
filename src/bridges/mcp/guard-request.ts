import { localhostAllowedHostnames, localhostAllowedOrigins } from '@modelcontextprotocol/server';
import {
  type AllowedName,
  isAllowed,
  type NameProblem,
  parse,
  readHost,
  readOrigin,
} from './allowed-names.js';
import type { McpServerOptions } from './mcp-server-options.js';
import { refuseRequest } from './refuse-request.js';

/** The refusal of a request; nothing for one that may pass. */
export type RequestGuard = (request: Request) => Response | undefined;

/** Whoever sends made-up names must not fill the memory. */
const MOST_TOLD = 100;

/**
 * Refuses requests under a foreign name: a page whose host name was pointed at this machine (DNS rebinding)
 * sends its own. The server's owner hears once of each name, and what to do if it is no foreign one.
 */
export function createGuard(options: McpServerOptions, onError: (error: unknown) => void): RequestGuard {
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
