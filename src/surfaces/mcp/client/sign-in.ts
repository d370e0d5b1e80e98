import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type {
  AuthProvider,
  Client,
  FetchLike,
  InsufficientScopeError,
  OAuthClientMetadata,
  OAuthClientProvider,
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from '@modelcontextprotocol/client';
import { anySignal, unlessAborted } from '../../../core/kernel/async.js';
import { causesOf, errorMessage } from '../../../core/kernel/error-message.js';
import { isRecord, parsedJson, withoutUndefined } from '../../../core/kernel/json.js';
import { isLoopbackHost } from '../../../core/kernel/server-address.js';
import type { McpAuth, McpTokenStore } from './connect-options.js';
import { memoryTokens } from './token-stores.js';

/** Time limit for the requests of one authorization. */
const REQUESTS_MS = 30_000;
/** Longer than the requests, so that a lease only expires if its process crashed. */
const LEASE_MS = 45_000;
const PATIENCE_MS = 90_000;
const POLL_MS = 40;
/** Time limit for a user whom `auth.onSignIn` asks. */
const SIGN_IN_MS = 10 * 60 * 1000;
/** How long after a sign-in its token should not have to be replaced. */
const NEW_MS = 60_000;
const ATTEMPT_MS = 60 * 60 * 1000;
const MOST_ATTEMPTS = 8;

/** The user must sign in before the request can be sent again. */
class SignInNeeded extends Error {
  override readonly name = 'SignInNeeded';
  readonly signIn: McpSignIn;
  readonly address: URL;

  constructor(signIn: McpSignIn, server: string, address: URL) {
    super(
      `The MCP server ${server} needs a sign-in: set \`auth.onSignIn\`, or call its tools in a run whose user can answer.`,
    );
    this.signIn = signIn;
    this.address = address;
  }
}

/** The sign-in that an error asks for. */
export function signInNeededBy(error: unknown): SignInNeeded | undefined {
  return causesOf(error).find((cause) => cause instanceof SignInNeeded);
}

/** Asks the user to sign in at an address; resolves when the user has done so. */
export type AskForSignIn = (address: URL) => Promise<void>;

interface Challenge {
  /** The token of the request that was refused. */
  readonly sent: string | undefined;
  readonly scope?: string | undefined;
  readonly resourceMetadataUrl?: URL | undefined;
  readonly isStepUp?: boolean;
}

const SIGN_INS = new WeakMap<object, McpSignIn>();

/** The sign-in of a client of `connectMcp`. */
export function signInOf(client: object): McpSignIn | undefined {
  return SIGN_INS.get(client);
}

/** Signs in at the authorization server of one MCP server for one account. The protocol is the SDK's. */
export class McpSignIn {
  readonly #url: URL;
  readonly #auth: McpAuth;
  readonly #store: McpTokenStore;
  readonly #key: string;
  readonly #tokenOf = new WeakMap<Response, string>();
  readonly #listeners = new Set<() => Promise<void>>();
  #record: SignInRecord | undefined;
  /** A token that the server refuses and that cannot be renewed: requests are sent without it. */
  #refused: { readonly token: string; readonly needed: SignInNeeded } | undefined;
  #signingIn: Promise<void> | undefined;
  /** The last sign-in that was completed here. */
  #last:
    | { readonly token: string | undefined; readonly scope: string | undefined; readonly until: number }
    | undefined;
  /** The last token that the server has accepted. */
  #accepted: string | undefined;

  constructor(url: string, auth: McpAuth) {
    this.#url = new URL(url);
    this.#auth = auth;
    this.#store = auth.tokens ?? memoryTokens();
    // The query may contain secrets.
    this.#key = JSON.stringify([this.#server, auth.account ?? '']);
  }

  /** Whether a sign-in is a question of the run that needs it. */
  get asksInRuns(): boolean {
    const { redirectUrl, onSignIn } = this.#auth;
    return redirectUrl !== undefined && onSignIn === undefined;
  }

  /** Calls a listener when a sign-in is completed here; the returned function removes it. */
  onFinish(listener: () => Promise<void>): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** For the transport: the token of each request, and its renewal. */
  get authProvider(): AuthProvider {
    return {
      token: async () => {
        this.#record ??= readRecord(await this.#store.load(this.#key));
        return this.#token;
      },
      onUnauthorized: async ({ response }) => {
        const { extractWWWAuthenticateParams } = await import('@modelcontextprotocol/client');
        const { scope, resourceMetadataUrl } = extractWWWAuthenticateParams(response);
        const sent = this.#tokenOf.get(response);
        if (sent !== undefined && sent === this.#refused?.token) return;
        if (sent !== this.#accepted && this.#isNew(sent))
          throw new SignInError(
            `The MCP server ${this.#server} does not accept the new token of its authorization server. Its \`audience\` or \`issuer\` may differ from that of the token.`,
          );
        const needed = await this.#authorize({ sent, scope, resourceMetadataUrl });
        if (needed === undefined) return;
        if (sent === undefined || !this.asksInRuns) throw needed;
        // Tools that need no sign-in can still be used: the SDK sends the request again.
        this.#refused = { token: sent, needed };
      },
    };
  }

  /** For the transport's requests to the server. */
  readonly fetch: FetchLike = async (url, init) => {
    const response = await fetchWithoutEcho(url, init);
    const [, token] = /^Bearer (.+)$/.exec(new Headers(init?.headers).get('authorization') ?? '') ?? [];
    if (token === undefined) return response;
    this.#tokenOf.set(response, token);
    if (response.status !== 401) this.#accepted = token;
    return response;
  };

  /** Removes the token from everything that the server sends, so that no result or trace contains it. */
  attach(client: Client): void {
    SIGN_INS.set(client, this);
    const { transport } = client;
    if (transport === undefined) return;
    const { onmessage } = transport;
    transport.onmessage = (message, extra) => {
      const { access_token, refresh_token } = this.#record?.tokens ?? {};
      const secrets = [access_token, refresh_token].filter((token) => token !== undefined);
      const before = secrets.length === 0 ? '' : JSON.stringify(message);
      const after = hide(before, secrets);
      onmessage?.(after === before ? message : JSON.parse(after), extra);
    };
  }

  /**
   * Does what the server demands in an error: signs in, or asks for more scopes. Returns whether the request can be
   * sent again. `ask` is used if there is no `onSignIn`.
   */
  async resolve(error: unknown, ask?: AskForSignIn): Promise<boolean> {
    const needed = signInNeededBy(error) ?? (serverRefusalOf(error)?.status === 401 ? this.lost : undefined);
    if (needed !== undefined) {
      await this.#signIn(needed, ask);
      return true;
    }
    const { InsufficientScopeError } = await import('@modelcontextprotocol/client');
    const insufficient = causesOf(error).find((cause): cause is InsufficientScopeError =>
      InsufficientScopeError.isInstance(cause),
    );
    if (insufficient === undefined) return false;
    const required = scopesIn(insufficient.requiredScope);
    const requested = this.#isNew(this.#token) ? scopesIn(this.#last?.scope) : [];
    if (required.length > 0 && required.every((scope) => requested.includes(scope))) {
      const granted = scopesIn(this.#record?.tokens?.scope);
      const missing = required.filter((scope) => !granted.includes(scope));
      throw new SignInError(
        `The sign-in at ${this.#server} did not grant the scopes that the call needs: ${(missing.length > 0 ? missing : required).join(' ')}`,
      );
    }
    const further = await this.#authorize({
      sent: this.#token,
      scope: insufficient.requiredScope,
      resourceMetadataUrl: insufficient.resourceMetadataUrl,
      isStepUp: true,
    });
    if (further !== undefined) await this.#signIn(further, ask);
    return true;
  }

  /** The sign-in that is needed again: only what the server allows without a token can be used. */
  get lost(): SignInNeeded | undefined {
    return this.#token === undefined ? this.#refused?.needed : undefined;
  }

  /** Signs in again if the stored sign-in is lost. */
  async restore(ask: AskForSignIn): Promise<void> {
    if (this.lost === undefined) return;
    const needed = await this.#authorize({ sent: undefined });
    if (needed !== undefined) await this.#signIn(needed, ask);
  }

  /** Completes a sign-in; `false` if the address belongs to another one, or if it was completed already. */
  async finish(given: string | URL): Promise<boolean> {
    // The address of a request in Node has only its path.
    const searchParams = URL.parse(String(given), this.#auth.redirectUrl)?.searchParams;
    if (searchParams === undefined) return false;
    const { OAuthError, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
    const isDone = await this.#change(async (record, requests) => {
      const attempt = record.attempts?.find(({ state }) => state === searchParams.get('state'));
      if (attempt === undefined || Date.now() - attempt.startedAt > ATTEMPT_MS) return false;
      record.attempts = record.attempts?.filter((other) => other !== attempt) ?? [];
      const authProvider = new RecordedSignIn(this.#auth, { record, attempt, isReturn: true });
      const transport = new StreamableHTTPClientTransport(this.#url, { authProvider, fetch: requests.fetch });
      try {
        await transport.finishAuth(searchParams);
      } catch (error) {
        // Anything else is a fault of the authorization server, or of the address.
        const code = searchParams.get('error');
        if (!OAuthError.isInstance(error) || error.code !== code) throw error;
        const reason = error.message === code ? code : `${code} (${error.message})`;
        const message = `The sign-in at ${this.#server} was refused: ${reason}`;
        throw Object.assign(new SignInError(message, { cause: error }), { code });
      }
      this.#last = {
        token: record.tokens?.access_token,
        scope: attempt.scope,
        until: Date.now() + NEW_MS,
      };
      return true;
    });
    if (isDone) await Promise.all(Array.from(this.#listeners, (listener) => listener()));
    return isDone;
  }

  get #server(): string {
    return this.#url.origin + this.#url.pathname;
  }

  /** The token to send. */
  get #token(): string | undefined {
    const token = this.#record?.tokens?.access_token;
    return token === this.#refused?.token ? undefined : token;
  }

  /** Whether a token came from the last sign-in, a short time ago. */
  #isNew(token: string | undefined): boolean {
    return token !== undefined && token === this.#last?.token && Date.now() < this.#last.until;
  }

  /** Gets a new token; returns the sign-in if this needs the user. */
  async #authorize(challenge: Challenge): Promise<SignInNeeded | undefined> {
    const { auth, computeScopeUnion, isStrictScopeSuperset } = await import('@modelcontextprotocol/client');
    const { sent, resourceMetadataUrl, isStepUp = false } = challenge;
    return this.#change(async (record, requests) => {
      const { tokens } = record;
      // Another call or process was faster.
      const newest = tokens?.access_token;
      if (newest !== undefined && newest !== sent && newest !== this.#refused?.token) return undefined;
      const scopes = [record.scope, tokens?.scope, this.#auth.scopes?.join(' ')];
      const scope = computeScopeUnion(...scopes, challenge.scope);
      record.scope = scope;
      const state = randomBytes(32).toString('base64url');
      const attempt: Attempt = { state, startedAt: Date.now(), scope };
      const provider = new RecordedSignIn(this.#auth, { record, attempt });
      await auth(provider, {
        ...withoutUndefined({ scope, resourceMetadataUrl }),
        serverUrl: this.#url,
        fetchFn: requests.fetch,
        forceReauthorization: isStepUp && isStrictScopeSuperset(scope, tokens?.scope),
      });
      if (provider.address === undefined) return undefined;
      // The SDK asks the user whatever kept it from the renewal.
      if (record.tokens?.refresh_token !== undefined && requests.failure?.isPassing)
        throw new Error('the token could not be renewed');
      const open = record.attempts?.filter(({ startedAt }) => Date.now() - startedAt < ATTEMPT_MS) ?? [];
      record.attempts = [attempt, ...open].slice(0, MOST_ATTEMPTS);
      return new SignInNeeded(this, this.#server, provider.address);
    });
  }

  /** Calls that need a sign-in at the same time open one page. */
  async #signIn(needed: SignInNeeded, ask: AskForSignIn | undefined): Promise<void> {
    const { onSignIn } = this.#auth;
    if (onSignIn === undefined) {
      if (ask === undefined) throw needed;
      return ask(needed.address);
    }
    this.#signingIn ??= this.#openPage(needed.address, onSignIn).finally(() => {
      this.#signingIn = undefined;
    });
    return this.#signingIn;
  }

  async #openPage(address: URL, onSignIn: NonNullable<McpAuth['onSignIn']>): Promise<void> {
    const limit = AbortSignal.timeout(SIGN_IN_MS);
    let returned: string | URL;
    try {
      returned = await unlessAborted(onSignIn(address, limit), limit);
    } catch (cause) {
      const message = limit.aborted
        ? `The user did not sign in at ${this.#server} within ${SIGN_IN_MS / 60_000} minutes.`
        : `The sign-in at ${this.#server} failed: ${errorMessage(cause)}`;
      throw new SignInError(message, { cause });
    }
    const isDone = await this.finish(returned);
    if (!isDone)
      throw new SignInError(
        `The address that \`auth.onSignIn\` returned does not belong to the sign-in at ${this.#server}.`,
      );
  }

  /** Changes the record while no other process does; also saved if `work` fails. */
  async #change<Value>(
    work: (record: SignInRecord, requests: AuthorizationRequests) => Promise<Value>,
  ): Promise<Value> {
    const { record, text } = await this.#lease();
    const before = record.tokens?.access_token;
    const requests = new AuthorizationRequests();
    try {
      return await work(record, requests);
    } catch (cause) {
      if (requests.failure === undefined || cause instanceof SignInError) throw cause;
      const { problem } = requests.failure;
      const reason = errorMessage(causesOf(cause).at(-1));
      const message = `The authorization server of ${this.#server} ${problem}: ${reason}`;
      throw new SignInError(message, { cause });
    } finally {
      await this.#release(record, text, before);
    }
  }

  async #lease(): Promise<{ readonly record: SignInRecord; readonly text: string }> {
    const until = Date.now() + PATIENCE_MS;
    while (Date.now() < until) {
      const stored = await this.#store.load(this.#key);
      const record = readRecord(stored);
      if (record.lease === undefined || record.lease.until < Date.now()) {
        const text = JSON.stringify({ ...record, lease: { id: randomUUID(), until: Date.now() + LEASE_MS } });
        if (await this.#store.save(this.#key, text, stored)) return { record, text };
      }
      await wait(POLL_MS);
    }
    throw new Error(`The sign-in at ${this.#server} is in use by another process.`);
  }

  async #release(record: SignInRecord, text: string, before: string | undefined): Promise<void> {
    record.lease = undefined;
    this.#record = record;
    let expected: string | undefined = text;
    while (!(await this.#store.save(this.#key, JSON.stringify(record), expected))) {
      // The process was suspended for so long that another one took over: its tokens are newer.
      expected = await this.#store.load(this.#key);
      const current = readRecord(expected);
      if (current.tokens !== undefined && current.tokens.access_token !== before) {
        this.#record = current;
        return;
      }
    }
  }
}

/** The requests of one authorization; no error of theirs repeats a secret that was sent. */
class AuthorizationRequests {
  readonly #deadline = AbortSignal.timeout(REQUESTS_MS);
  /** How the authorization server failed the last request, and whether it may succeed later. */
  failure: { readonly problem: string; readonly isPassing: boolean } | undefined;

  readonly fetch: FetchLike = async (url, init) => {
    const { origin, pathname } = new URL(url);
    const fail = (problem: string, isPassing: boolean) => {
      // This document is the MCP server's own.
      const isForeign = pathname.includes('/.well-known/oauth-protected-resource');
      this.failure = isForeign ? undefined : { problem: `${problem} (${origin}${pathname})`, isPassing };
    };
    this.failure = undefined;
    const signal = anySignal(this.#deadline, init?.signal ?? undefined);
    try {
      const response = await fetchWithoutEcho(url, { ...init, signal });
      const { status } = response;
      if (status >= 400) fail(`answered with status ${status}`, status >= 500 || status === 429);
      return response;
    } catch (error) {
      fail('cannot be reached', true);
      throw error;
    }
  };
}

function scopesIn(scope = ''): readonly string[] {
  return scope.split(' ').filter((name) => name !== '');
}

function readRecord(text: string | undefined): SignInRecord {
  const record = text === undefined ? undefined : parsedJson(text);
  return isRecord(record) ? record : {};
}

/** The HTTP status and the text with which a server refused a request, in an error of the SDK. */
export function serverRefusalOf(
  error: unknown,
): { readonly status: number; readonly text?: unknown } | undefined {
  const { data } = Object(error) as {
    readonly data?: { readonly status?: unknown; readonly text?: unknown };
  };
  return typeof data?.status === 'number' ? { ...data, status: data.status } : undefined;
}

/** The sign-in failed, and not the MCP server. */
export class SignInError extends Error {}

/** A sign-in that waits for its user. */
interface Attempt {
  /** Returns with the user's browser. */
  readonly state: string;
  readonly startedAt: number;
  /** The scopes that it requests. */
  readonly scope?: string | undefined;
  verifier?: string;
  discovery?: OAuthDiscoveryState;
}

/** Everything that is stored about one account at one server. */
interface SignInRecord {
  client?: StoredOAuthClientInformation | undefined;
  tokens?: StoredOAuthTokens | undefined;
  /** Who signed in, if the authorization server returned an ID token. */
  subject?: string | undefined;
  /** The scopes of the last request. */
  scope?: string | undefined;
  attempts?: readonly Attempt[];
  /** One process at a time changes a record: a refresh token that is used twice is revoked. */
  lease?: { readonly id: string; readonly until: number } | undefined;
}

interface RecordedSignInOptions {
  readonly record: SignInRecord;
  readonly attempt: Attempt;
  /** Whether the user has come back from the sign-in. */
  readonly isReturn?: boolean;
}

/** Reads and writes a record for the SDK's authorization. */
class RecordedSignIn implements OAuthClientProvider {
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
    // It came from the authorization server itself, so its signature adds nothing.
    const claims = parsedJson(Buffer.from(id_token?.split('.')[1] ?? '', 'base64url').toString());
    const found = isRecord(claims) && typeof claims.sub === 'string' ? claims.sub : undefined;
    if (subject !== undefined && found !== undefined && found !== subject) {
      if (!this.#isReturn) this.#record.tokens = undefined;
      throw new Error('The authorization server returned a token for a different account.');
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

/** Shorter texts are not secrets, and would occur by chance. */
const FEWEST_CHARACTERS = 6;
const SECRET_FIELDS = ['refresh_token', 'code', 'code_verifier', 'client_secret', 'client_assertion'];

/** `fetch`, whose error responses do not repeat the secrets of the request: they end in errors and logs. */
async function fetchWithoutEcho(url: string | URL, init: RequestInit = {}): Promise<Response> {
  const response = await limitedFetch(url, init);
  if (response.ok) return response;
  const authorization = new Headers(init.headers).get('authorization') ?? '';
  const [, scheme = '', credentials = ''] = /^(\S+) (.+)$/.exec(authorization) ?? [];
  const basic = /^Basic$/i.test(scheme) ? Buffer.from(credentials, 'base64').toString() : '';
  const [, password = ''] = /^[^:]*:(.*)$/.exec(basic) ?? [];
  const form = new URLSearchParams(init.body instanceof URLSearchParams ? init.body : '');
  const sent = SECRET_FIELDS.map((name) => form.get(name) ?? '');
  const secrets = [credentials, password, decodeURIComponent(password), ...sent];
  const headers = new Headers(response.headers);
  for (const [name, value] of response.headers)
    if (hide(value, secrets) !== value) headers.set(name, hide(value, secrets));
  const body = NO_BODY.has(response.status) ? null : hide(await response.text(), secrets);
  return replacedBody(response, body, headers);
}

const NO_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

function hide(text: string, secrets: readonly string[]): string {
  return secrets
    .filter(({ length }) => length >= FEWEST_CHARACTERS)
    .reduce((rest, secret) => rest.replaceAll(secret, '[secret]'), text);
}

/** Much more than the longest list of tools. */
const MOST_BYTES = 10_000_000;

/** The end of an event; the bytes before it are not counted any more. */
const EVENT_END = /\n\r?\n|\r\r/;
const END_CHARACTERS = 3;

/** `fetch`, whose responses and events fail beyond 10 MB: a body without an end would fill the memory. */
export async function limitedFetch(url: string | URL, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, init);
  if (response.body === null) return response;
  const isOfEvents = response.ok && isEventStream(response.headers.get('content-type'));
  const endsEvents = isOfEvents && isEventStream(new Headers(init?.headers).get('accept'));
  const { origin, pathname } = new URL(url);
  let size = 0;
  let last = '';
  const limit = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      if (endsEvents) {
        const text = last + Buffer.from(chunk).toString('latin1');
        if (EVENT_END.test(text)) size = 0;
        last = text.slice(-END_CHARACTERS);
      }
      size += chunk.byteLength;
      if (size <= MOST_BYTES) controller.enqueue(chunk);
      else controller.error(new Error(`The response of ${origin}${pathname} has more than 10 MB.`));
    },
  });
  return replacedBody(response, response.body.pipeThrough(limit));
}

function isEventStream(types: string | null): boolean {
  return /\btext\/event-stream\b/i.test(types ?? '');
}

/** A response with another body, which is not compressed. */
function replacedBody(
  response: Response,
  body: ReadableStream<Uint8Array> | string | null,
  headers = new Headers(response.headers),
): Response {
  for (const name of ['content-encoding', 'content-length']) headers.delete(name);
  const { status, statusText, url } = response;
  // A redirect that was not followed is recognized by its address.
  return Object.defineProperty(new Response(body, { status, statusText, headers }), 'url', { value: url });
}
