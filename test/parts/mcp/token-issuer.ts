import {
  exportJWK,
  generateKeyPair,
  type JWK,
  type JWTHeaderParameters,
  type JWTPayload,
  SignJWT,
} from 'jose';

/** The claims of a token. */
export interface TokenClaims {
  readonly sub?: string;
  readonly scope?: string;
  readonly aud?: string;
  readonly iss?: string;
  /** Seconds from now. */
  readonly expiresIn?: number;
  readonly client?: string;
  /** Other claims, which replace those above. */
  readonly others?: JWTPayload;
  /** Fields of the protected header besides `alg` and `kid`, or instead of them. */
  readonly header?: Partial<JWTHeaderParameters>;
}

/** An authorization server that issues tokens and publishes its keys. */
export interface TokenIssuer {
  readonly issuer: string;
  readonly keys: { readonly keys: JWK[] };
  issue(claims?: TokenClaims): Promise<string>;
}

export async function tokenIssuer(
  resource: string,
  issuer = 'https://auth.example.org',
): Promise<TokenIssuer> {
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  const kid = crypto.randomUUID();
  return {
    issuer,
    keys: { keys: [{ ...(await exportJWK(publicKey)), kid, alg: 'ES256', use: 'sig' }] },
    issue: ({
      sub = 'anna',
      scope = '',
      aud = resource,
      iss = issuer,
      expiresIn = 60,
      client = 'an-app',
      others = {},
      header = {},
    } = {}) => {
      const exp = Math.floor(Date.now() / 1_000) + expiresIn;
      return new SignJWT({ scope, client_id: client, sub, aud, iss, exp, ...others })
        .setProtectedHeader({ alg: 'ES256', kid, ...header })
        .sign(privateKey);
    },
  };
}
