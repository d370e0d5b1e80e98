import {
  auth,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type StoredOAuthClientInformation,
  type StoredOAuthTokens,
} from '@modelcontextprotocol/client';

const CALLBACK = 'http://127.0.0.1:33333/callback';

/** Signs a reader in as a client without a browser, and returns the access token. */
export async function signIn(
  library: URL,
  { account = 'ada', scope = 'books:borrow' } = {},
): Promise<string> {
  let client: StoredOAuthClientInformation | undefined;
  let discovery: OAuthDiscoveryState | undefined;
  let verifier = '';
  let tokens: StoredOAuthTokens | undefined;
  let callback: URL | undefined;
  const provider: OAuthClientProvider = {
    redirectUrl: CALLBACK,
    clientMetadata: {
      client_name: 'visitor',
      redirect_uris: [CALLBACK],
      token_endpoint_auth_method: 'none',
      application_type: 'native',
    },
    clientInformation: () => client,
    saveClientInformation: (given) => {
      client = given;
    },
    discoveryState: () => discovery,
    saveDiscoveryState: (given) => {
      discovery = given;
    },
    tokens: () => tokens,
    saveTokens: (given) => {
      tokens = given;
    },
    codeVerifier: () => verifier,
    saveCodeVerifier: (given) => {
      verifier = given;
    },
    redirectToAuthorization: async (url) => {
      url.searchParams.set('login_hint', account);
      callback = await browse(url);
    },
  };
  await auth(provider, { serverUrl: library, scope });
  const { code, iss } = Object.fromEntries(callback?.searchParams ?? []);
  if (code === undefined) throw new Error(`The sign-in failed: ${callback}`);
  await auth(provider, { serverUrl: library, authorizationCode: code, ...(iss !== undefined && { iss }) });
  return (tokens as StoredOAuthTokens | undefined)?.access_token ?? '';
}

/** Follows redirects with their cookies, as a browser does, until the client's callback. */
async function browse(from: URL): Promise<URL> {
  const cookies = new Map<string, string>();
  let url = from;
  while (!url.href.startsWith(CALLBACK)) {
    const cookie = Array.from(cookies, ([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, { headers: { cookie }, redirect: 'manual' });
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      cookies.set(name, value);
    }
    const next = response.headers.get('location');
    if (next === null) throw new Error(`${url} answers ${response.status}: ${await response.text()}`);
    url = new URL(next, url);
  }
  return url;
}
