import { createHash, timingSafeEqual } from 'node:crypto';
import { HttpFault } from './chat-request.js';

/** Throws an {@link HttpFault} unless the request brings the token; takes as long for every wrong one. */
export function checkToken({ headers }: Request, token: string | undefined): void {
  if (token === undefined) return;
  const [, sent = ''] = /^bearer +(.*)$/i.exec(headers.get('authorization') ?? '') ?? [];
  if (timingSafeEqual(digest(sent.trim()), digest(token.trim()))) return;
  throw new HttpFault('unauthorized', 'a bearer token is needed', { 'www-authenticate': 'Bearer' });
}

/** Digests have one length, whatever was sent. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Which pages may ask from their own scripts. */
export interface CorsOptions {
  /** Origins such as `https://app.example.org`, or `'*'` for all. */
  readonly origins: readonly string[] | '*';
}

type Headers = Readonly<Record<string, string>>;

const ALLOWED: Headers = {
  'access-control-allow-methods': 'GET, POST',
  'access-control-allow-headers': 'authorization, content-type, if-match, idempotency-key',
  'access-control-max-age': '600',
};

/** What a response says to a browser; nothing where the page's origin may not ask. */
export function corsHeaders({ headers }: Request, cors: CorsOptions | undefined): Headers {
  if (cors === undefined) return {};
  const origin = headers.get('origin');
  const vary: Headers = cors.origins === '*' ? {} : { vary: 'Origin' };
  if (origin === null || !(cors.origins === '*' || cors.origins.includes(origin))) return vary;
  return {
    ...vary,
    'access-control-allow-origin': cors.origins === '*' ? '*' : origin,
    'access-control-expose-headers': 'etag, retry-after',
  };
}

/** The answer to a browser that asks beforehand, if that is what the request is. */
export function preflightResponse(request: Request, cors: CorsOptions | undefined): Response | undefined {
  const isPreflight = request.method === 'OPTIONS' && request.headers.has('access-control-request-method');
  if (cors === undefined || !isPreflight) return undefined;
  return new Response(null, { status: 204, headers: ALLOWED });
}

/** Whether a request may be served; `retryAfterSeconds` becomes the header `Retry-After`. */
export type RateLimitDecision = boolean | { readonly allow: boolean; readonly retryAfterSeconds?: number };

/** Decides about a request by its method, address and headers; its body is not read yet. */
export type RateLimit = (request: Request) => RateLimitDecision | Promise<RateLimitDecision>;

/** Throws an {@link HttpFault} unless the hook says yes. */
export async function enforceRateLimit(request: Request, rateLimit: RateLimit | undefined): Promise<void> {
  if (rateLimit === undefined) return;
  // The hook may look at everything, and must not use up the body.
  const { method, url, headers } = request;
  const decision = await rateLimit(new Request(url, { method, headers }));
  if (decision === true || (typeof decision === 'object' && decision?.allow === true)) return;
  const seconds = typeof decision === 'object' ? Number(decision?.retryAfterSeconds) : Number.NaN;
  const retryAfter: Readonly<Record<string, string>> = Number.isFinite(seconds)
    ? { 'retry-after': String(Math.max(0, Math.ceil(seconds))) }
    : {};
  throw new HttpFault('rate_limited', 'too many requests', retryAfter);
}
