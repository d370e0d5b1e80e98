import type {
  OAuthClientMetadata,
  OAuthClientProvider,
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from '@modelcontextprotocol/client';
import { isRecord, parsedJson, withoutUndefined } from '../../../core/kernel/json.js';
import { isLoopbackHost } from '../../../core/kernel/server-address.js';
import type { McpAuth } from './connect-options.js';

/** The sign-in failed, and not the MCP server. */
export class SignInError extends Error {}

/** A sign-in that waits for its user. */
export interface Attempt {
  /** Returns with the user's browser. */
  readonly state: string;
  readonly startedAt: number;
  /** The scopes that it requests. */
  readonly scope?: string | undefined;
  verifier?: string;
  discovery?: OAuthDiscoveryState;
}

/** One process at a time changes a record: a refresh token that is used twice is revoked. */
interface Lease {
  readonly id: string;
  readonly until: number;
}

/** Everything that is stored about one account at one server. */
export interface SignInRecord {
  client?: StoredOAuthClientInformation | undefined;
  tokens?: StoredOAuthTokens | undefined;
  /** Who signed in, if the authorization server returned an ID token. */
  subject?: string | undefined;
  /** The scopes of the last request. */
  scope?: string | undefined;
  attempts?: readonly Attempt[];
  lease?: Lease | undefined;
}

interface RecordedSignInOptions {
  readonly record: SignInRecord;
  readonly attempt: Attempt;
  /** Whether the user has come back from the sign-in. */
  readonly isReturn?: boolean;
}

/** Reads and writes a record for the SDK's authorization. */
export class RecordedSignIn implements OAuthClientProvider {
  readonly #auth: McpAuth;
  readonly #record: SignInRecord;
  readonly #attempt: Attempt;
  readonly #isReturn: boolean;
  readonly clientMetadataUrl?: string;
  /** A client id that belongs to one authorization server is never registered again at another. */
  readonly saveClientInformation?: (client: StoredOAuthClientInformation) => void;
  readonly prepareTokenRequest?: (scope?: string) => URLSearchParams;
  /** Where the user must sign in. */
  address: URL | undefined;

  constructor(auth: McpAuth, { record, attempt, isReturn = false }: RecordedSignInOptions) {
    this.#auth = auth;
    this.#record = record;
    this.#attempt = attempt;
    this.#isReturn = isReturn;
    const { clientId, clientMetadataUrl, redirectUrl } = auth;
    if (clientMetadataUrl !== undefined) this.clientMetadataUrl = clientMetadataUrl;
    if (clientId === undefined || this.#issuer === undefined)
      this.saveClientInformation = (client) => {
        const { client_id, issuer } = client;
        record.client = clientId === undefined ? client : { client_id, ...withoutUndefined({ issuer }) };
      };
    if (redirectUrl === undefined)
      this.prepareTokenRequest = (scope) =>
        new URLSearchParams({ grant_type: 'client_credentials', ...(scope && { scope }) });
  }

  get redirectUrl(): string | undefined {
    return this.#auth.redirectUrl;
  }

  get clientMetadata(): OAuthClientMetadata {
    const { redirectUrl, scopes } = this.#auth;
    const scope = scopes && { scope: scopes.join(' ') };
    const named = { client_name: 'toolwright', ...scope };
    if (redirectUrl === undefined)
      return { ...named, redirect_uris: [], grant_types: ['client_credentials'] };
    const grant_types = ['authorization_code', 'refresh_token'];
    return { ...named, redirect_uris: [redirectUrl], response_types: ['code'], grant_types };
  }

  state(): string {
    return this.#attempt.state;
  }

  clientInformation(): StoredOAuthClientInformation | undefined {
    const { clientId, clientSecret } = this.#auth;
    if (clientId === undefined) return this.#record.client;
    return withoutUndefined({ client_id: clientId, client_secret: clientSecret, issuer: this.#issuer });
  }

  tokens(): StoredOAuthTokens | undefined {
    return this.#record.tokens;
  }

  saveTokens({ id_token, ...tokens }: StoredOAuthTokens): void {
    const { subject } = this.#record;
    const found = subjectOf(id_token);
    if (subject !== undefined && found !== undefined && found !== subject) {
      if (!this.#isReturn) this.#record.tokens = undefined;
      throw new Error('The authorization server returned the token of another account than before.');
    }
    this.#record.subject ??= found;
    this.#record.tokens = tokens;
  }

  redirectToAuthorization(address: URL): void {
    const { origin, pathname, protocol, hostname } = address;
    if (protocol !== 'https:' && !(protocol === 'http:' && isLoopbackHost(hostname)))
      throw new SignInError(
        `The authorization server names a sign-in page that is not https: ${protocol}//… It is not shown to the user.`,
      );
    const metadata = this.#attempt.discovery?.authorizationServerMetadata;
    if (metadata !== undefined && metadata.code_challenge_methods_supported === undefined)
      throw new SignInError(
        `The authorization server does not state that it supports PKCE, which MCP demands: its metadata needs code_challenge_methods_supported with S256 (${origin}${pathname}).`,
      );
    this.address = address;
  }

  saveCodeVerifier(verifier: string): void {
    this.#attempt.verifier = verifier;
  }

  codeVerifier(): string {
    return this.#attempt.verifier ?? '';
  }

  /** Only of the sign-in that it began: otherwise a server could never move to another authorization server. */
  discoveryState(): OAuthDiscoveryState | undefined {
    return this.#isReturn ? this.#attempt.discovery : undefined;
  }

  saveDiscoveryState(discovery: OAuthDiscoveryState): void {
    this.#attempt.discovery = discovery;
  }

  invalidateCredentials(scope: 'all' | 'client' | 'tokens' | 'verifier' | 'discovery'): void {
    if (scope === 'client' || scope === 'all') this.#record.client = undefined;
    // A refused code does not invalidate the tokens of before.
    if ((scope !== 'tokens' && scope !== 'all') || this.#isReturn) return;
    // The access token stays: it shows later processes that a sign-in was lost.
    delete this.#record.tokens?.refresh_token;
  }

  /** The authorization server to which the client id belongs. */
  get #issuer(): string | undefined {
    return this.#auth.issuer ?? this.#record.client?.issuer;
  }
}

/** The account of an ID token. It came from the authorization server itself, so its signature adds nothing. */
function subjectOf(idToken: string | undefined): string | undefined {
  const claims = parsedJson(Buffer.from(idToken?.split('.')[1] ?? '', 'base64url').toString());
  return isRecord(claims) && typeof claims.sub === 'string' ? claims.sub : undefined;
}
