import { createHash, randomBytes } from 'node:crypto';

/** How an MCP host signs its users in, according to its documentation. */
export interface HostRules {
  readonly name: string;
  /** Protocol revision that it requests. */
  readonly revision: string;
  /** How it gets a client id, in order of preference. */
  readonly registers: readonly ('metadata document' | 'dynamic')[];
  readonly redirectUri: string;
  readonly clientId?: string;
  /** Where it reads the challenge of a call: the header, or the result. */
  readonly reads: 'header' | 'result';
}

export const HOSTS: readonly HostRules[] = [
  {
    name: 'Claude',
    revision: '2025-11-25',
    registers: ['metadata document', 'dynamic'],
    redirectUri: 'https://claude.ai/api/mcp/auth_callback',
    clientId: 'https://claude.ai/oauth/client.json',
    reads: 'header',
  },
  {
    name: 'ChatGPT',
    revision: '2025-11-25',
    registers: ['metadata document', 'dynamic'],
    redirectUri: 'https://chatgpt.com/connector/oauth/abc123',
    clientId: 'https://chatgpt.com/oauth/client.json',
    reads: 'result',
  },
  {
    name: 'VS Code',
    revision: '2025-11-25',
    registers: ['dynamic'],
    redirectUri: 'http://127.0.0.1:33418/',
    reads: 'header',
  },
  {
    name: 'Cursor',
    revision: '2025-06-18',
    registers: ['dynamic'],
    redirectUri: 'http://localhost:8787/callback',
    reads: 'header',
  },
];

/** Serves the client metadata documents of hosts, because the authorization server cannot reach them. */
export const hostDocuments: typeof fetch = async (url) => {
  const host = HOSTS.find(({ clientId }) => clientId === String(url));
  if (host === undefined) return new Response(null, { status: 404 });
  return Response.json({
    client_id: host.clientId,
    client_name: host.name,
    redirect_uris: [host.redirectUri],
    token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
  });
};

interface Metadata {
  readonly issuer: string;
  readonly authorization_endpoint: string;
  readonly token_endpoint: string;
  readonly registration_endpoint?: string;
  readonly client_id_metadata_document_supported?: boolean;
  readonly code_challenge_methods_supported?: readonly string[];
}

interface Answer {
  readonly status: number;
  readonly result?: {
    readonly content?: readonly { readonly text: string }[];
    readonly tools?: readonly { readonly name: string }[];
    readonly isError?: boolean;
    readonly _meta?: { readonly 'mcp/www_authenticate'?: readonly string[] };
  };
  readonly error?: { readonly message: string };
  readonly challenge: string | undefined;
}

/** A host whose user agrees to everything. It signs in on a challenge, and then repeats the request once. */
export class EmulatedHost {
  readonly #rules: HostRules;
  readonly #url: URL;
  /** The requested scopes of each sign-in. */
  readonly signIns: string[] = [];
  token: string | undefined;
  /** Client id at the authorization server; registered once. */
  clientId: string | undefined;
  #session: string | undefined;
  #id = 0;

  constructor(rules: HostRules, url: URL) {
    this.#rules = rules;
    this.#url = url;
  }

  async connect(): Promise<void> {
    const clientInfo = { name: this.#rules.name, version: '1' };
    await this.request('initialize', {
      protocolVersion: this.#rules.revision,
      capabilities: {},
      clientInfo,
    });
    await this.#post({ jsonrpc: '2.0', method: 'notifications/initialized' });
  }

  async toolNames(): Promise<readonly string[]> {
    const { result } = await this.request('tools/list', {});
    return (result?.tools ?? []).map(({ name }) => name);
  }

  async call(name: string): Promise<string> {
    const { result, error } = await this.request('tools/call', { name, arguments: {} });
    return result?.content?.[0]?.text ?? error?.message ?? '';
  }

  async request(method: string, params: object): Promise<Answer> {
    this.#id += 1;
    const message = { jsonrpc: '2.0', id: this.#id, method, params };
    const first = await this.#post(message);
    if (first.challenge === undefined) return first;
    await this.#signIn(first.challenge);
    const second = await this.#post(message);
    if (second.challenge !== undefined) throw new Error(`Asked to sign in again: ${second.challenge}`);
    return second;
  }

  async #post(message: object): Promise<Answer> {
    const response = await fetch(this.#url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': this.#rules.revision,
        ...(this.token !== undefined && { authorization: `Bearer ${this.token}` }),
        ...(this.#session !== undefined && { 'mcp-session-id': this.#session }),
      },
      body: JSON.stringify(message),
    });
    this.#session = response.headers.get('mcp-session-id') ?? this.#session;
    const text = await response.text();
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
    const json = isStream
      ? (text
          .match(/^data: (.+)$/gm)
          ?.at(-1)
          ?.slice(6) ?? '{}')
      : text || '{}';
    const answer = JSON.parse(json) as Omit<Answer, 'status' | 'challenge'>;
    const fromResult = answer.result?._meta?.['mcp/www_authenticate']?.[0];
    const fromHeader = response.headers.get('www-authenticate') ?? undefined;
    const challenge = this.#rules.reads === 'result' ? (fromResult ?? fromHeader) : fromHeader;
    return { ...answer, status: response.status, challenge };
  }

  async #signIn(challenge: string): Promise<void> {
    const parts = Object.fromEntries(
      Array.from(challenge.matchAll(/(\w+)="([^"]*)"/g), ([, name = '', value = '']) => [name, value]),
    );
    const resource = await readJson<{
      resource: string;
      authorization_servers: string[];
      scopes_supported: string[];
    }>(parts.resource_metadata ?? '');
    if (resource.resource !== this.#url.href)
      throw new Error(`Metadata of another resource: ${resource.resource}`);
    const server = await readMetadata(resource.authorization_servers[0] ?? '');
    const scope = parts.scope ?? resource.scopes_supported.join(' ');
    this.signIns.push(scope);
    this.clientId ??= await this.#register(server);
    const { clientId } = this;
    const verifier = randomBytes(32).toString('base64url');
    const { redirectUri } = this.#rules;
    const state = randomBytes(8).toString('hex');
    const authorize = new URL(server.authorization_endpoint);
    authorize.search = new URLSearchParams({
      response_type: 'code',
      client_id: clientId,
      redirect_uri: redirectUri,
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
      resource: resource.resource,
      state,
      ...(scope !== '' && { scope }),
    }).toString();
    const callback = (await browse(authorize, redirectUri)).searchParams;
    if (callback.has('error')) throw new Error(`No code: ${callback}`);
    if (callback.get('state') !== state || callback.get('iss') !== server.issuer)
      throw new Error(`Not the answer to this request: ${callback}`);
    const { access_token } = await readJson<{ access_token: string }>(server.token_endpoint, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'authorization_code',
        code: callback.get('code') ?? '',
        redirect_uri: redirectUri,
        client_id: clientId,
        code_verifier: verifier,
        resource: resource.resource,
      }),
    });
    this.token = access_token;
  }

  async #register(server: Metadata): Promise<string> {
    const { registers, clientId, redirectUri, name } = this.#rules;
    const hasDocument = registers.includes('metadata document') && clientId !== undefined;
    if (hasDocument && server.client_id_metadata_document_supported) return clientId;
    const isNative = redirectUri.startsWith('http:');
    const { client_id } = await readJson<{ client_id: string }>(server.registration_endpoint ?? '', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        client_name: name,
        redirect_uris: [redirectUri],
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code', 'refresh_token'],
        ...(isNative && { application_type: 'native' }),
      }),
    });
    return client_id;
  }
}

async function readJson<Json>(url: string, init?: RequestInit): Promise<Json> {
  const response = await fetch(url, init);
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
  return (await response.json()) as Json;
}

/** RFC 8414 first, then OpenID Connect Discovery; the issuer must match. */
async function readMetadata(issuer: string): Promise<Metadata> {
  const paths = ['/.well-known/oauth-authorization-server', '/.well-known/openid-configuration'];
  for (const path of paths) {
    const response = await fetch(new URL(path, issuer));
    if (!response.ok) continue;
    const metadata = (await response.json()) as Metadata;
    if (metadata.issuer !== issuer) throw new Error(`Metadata of another issuer: ${metadata.issuer}`);
    if (!metadata.code_challenge_methods_supported?.includes('S256')) throw new Error('No PKCE');
    return metadata;
  }
  throw new Error(`No metadata at ${issuer}`);
}

/** Follows redirects with cookies, up to the redirect URI. */
async function browse(from: URL, end: string): Promise<URL> {
  const cookies = new Map<string, string>();
  let url = from;
  for (let steps = 0; steps < 10 && !url.href.startsWith(end); steps += 1) {
    const cookie = Array.from(cookies, ([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, { headers: { cookie }, redirect: 'manual' });
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      cookies.set(name, value);
    }
    const location = response.headers.get('location');
    if (location === null) throw new Error(`${url}: ${response.status} ${await response.text()}`);
    url = new URL(location, url);
  }
  return url;
}
