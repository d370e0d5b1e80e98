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
