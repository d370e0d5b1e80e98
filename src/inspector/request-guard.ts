import { timingSafeEqual } from 'node:crypto';

/** Names of this machine, which no page of elsewhere has. */
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;

/** What requests are held against. */
interface GuardOptions {
  readonly token: string;
  readonly allowedHosts: readonly string[];
}

/** Why a request is refused. */
interface Refusal {
  readonly status: 401 | 403 | 415;
  readonly message: string;
}

/**
 * Refuses requests under a foreign name (a page whose host name was pointed at this machine: DNS rebinding) and
 * those of foreign pages; what has effects or secrets needs the token, which no page has but the one it was given to.
 */
export class RequestGuard {
  readonly #token: Buffer;
  readonly #hosts: ReadonlySet<string>;

  constructor({ token, allowedHosts }: GuardOptions) {
    this.#token = Buffer.from(token);
    this.#hosts = new Set(allowedHosts.map((host) => host.toLowerCase()));
  }

  /** For everything that is served, the files of the page included. */
  refusal({ headers, url }: Request): Refusal | undefined {
    const host = (headers.get('host') ?? new URL(url).host).toLowerCase();
    if (!LOOPBACK.test(host) && !this.#hosts.has(host))
      return { status: 403, message: `Host ${host} is not allowed: allowedHosts names it` };
    const origin = headers.get('origin');
    if (
      origin !== null &&
      !['http', 'https'].some((scheme) => origin.toLowerCase() === `${scheme}://${host}`)
    )
      return { status: 403, message: 'pages of other origins may not call this' };
    const site = headers.get('sec-fetch-site');
    // A person may follow a link to the page itself.
    const isOpened = headers.get('sec-fetch-mode') === 'navigate';
    if (site !== null && site !== 'same-origin' && site !== 'none' && !isOpened)
      return { status: 403, message: 'pages of other sites may not call this' };
    return undefined;
  }

  /** For the calls of the page. */
  refusalOfCall({ headers, method }: Request): Refusal | undefined {
    const given = /^Bearer (.+)$/.exec(headers.get('authorization') ?? '')?.[1];
    if (given === undefined || !this.#isToken(given))
      return { status: 401, message: 'the token is missing or is not that of this inspector' };
    const type = headers.get('content-type') ?? '';
    if (method === 'POST' && !/^application\/json\b/.test(type))
      return { status: 415, message: 'the body is to be application/json' };
    return undefined;
  }

  #isToken(given: string): boolean {
    const bytes = Buffer.from(given);
    return bytes.length === this.#token.length && timingSafeEqual(bytes, this.#token);
  }
}
