import { OAuthError } from '@modelcontextprotocol/server';
import { InvalidOptionsError } from '../../../core/errors/author-fault.js';
import { isRecord } from '../../../core/kernel/json.js';
import { grantOf, type VerifyToken } from './settings.js';

/** Without HS256 and the like: a published key must not be usable as a shared secret (RFC 8725, section 3.1). */
const ALGORITHMS = ['RS', 'PS', 'ES'].flatMap((family) => [256, 384, 512].map((bits) => `${family}${bits}`));
const SIGNED_BY = [...ALGORITHMS, 'EdDSA', 'Ed25519'];
const CLOCK_TOLERANCE_SECONDS = 5;
/** Public keys in the format of an authorization server. */
interface KeySet {
  readonly keys: readonly object[];
}

/** Errors of jose that are not about the token: the keys could not be read. */
const KEYS_UNAVAILABLE = new Set(['ERR_JWKS_TIMEOUT', 'ERR_JWKS_INVALID', 'ERR_JOSE_GENERIC']);

/**
 * Verifies JSON Web Tokens with the public keys of an authorization server (RFC 7517): its `jwks_uri`, or the keys
 * themselves. Checks signature, issuer, audience and expiry. Keys are cached, and fetched again for an unknown key id.
 * The package `jose` must be installed.
 *
 * Scopes are read from `scope` or `scp`, the client from `client_id` or `azp`; all claims are in `authInfo.extra`.
 *
 * @throws InvalidOptionsError (521) if `source` is neither a URL nor a key set.
 *
 * @example
 * ```ts
 * const verify = jwks('https://auth.example.org/.well-known/jwks.json');
 * const resource = 'https://api.example.org/mcp';
 * const mcp = createMcpServer(tools, { oauth: { resource, issuer: 'https://auth.example.org', verify } });
 * ```
 */
export function jwks(source: string | URL | KeySet): VerifyToken {
  const isUrl = source instanceof URL || (typeof source === 'string' && URL.canParse(source));
  if (!isUrl && !(isRecord(source) && Array.isArray(source.keys)))
    throw new InvalidOptionsError([
      {
        where: 'jwks',
        option: 'source',
        problem: 'source is neither a URL nor { keys: […] }',
        fix: "jwks('https://auth.example.org/.well-known/jwks.json')",
      },
    ]);
  const loading = loadVerifier(source);
  // If the package is missing, requests fail, not the start.
  loading.catch(() => {});
  return async (token, { issuer, audience }) => {
    const { jose, keys } = await loading;
    try {
      const { payload } = await jose.jwtVerify(token, keys, {
        issuer,
        audience: [...audience],
        algorithms: SIGNED_BY,
        requiredClaims: ['exp'],
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
      });
      const { scope, scp, exp } = payload;
      return { token, ...grantOf(payload, scope ?? scp), expiresAt: Number(exp), extra: { ...payload } };
    } catch (error) {
      if (!(error instanceof jose.errors.JOSEError) || KEYS_UNAVAILABLE.has(error.code)) throw error;
      throw new OAuthError('invalid_token', error.message);
    }
  };
}

async function loadVerifier(source: string | URL | KeySet) {
  const jose = await import('jose').catch((error) => {
    throw error.code === 'ERR_MODULE_NOT_FOUND'
      ? new Error('jwks needs the package jose: npm install jose')
      : error;
  });
  const isSet = typeof source === 'object' && 'keys' in source;
  const keys = isSet
    ? jose.createLocalJWKSet({ keys: [...source.keys] })
    : jose.createRemoteJWKSet(new URL(source));
  return { jose, keys };
}
