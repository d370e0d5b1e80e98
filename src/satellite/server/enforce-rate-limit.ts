import { HttpFault } from './http-fault.js';

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
