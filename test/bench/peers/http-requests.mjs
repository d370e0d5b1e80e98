/* Requests of 2026-07-28 clients to the `fetch` of a server: stateless HTTP without the cost of sockets. */
import { exportJWK, generateKeyPair, SignJWT } from 'jose';

const RESOURCE = 'http://localhost/mcp';
const ISSUER = 'https://auth.example.org';
const REVISION = '2026-07-28';
const META = {
  'io.modelcontextprotocol/protocolVersion': REVISION,
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** A candidate that sends `tools/call` as a new request each time. */
export function httpCandidate(name, fetch, { tool, token }) {
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': REVISION,
    'mcp-method': 'tools/call',
    'mcp-name': tool,
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  };
  let id = 0;
  return {
    name,
    encode: (input) => input,
    async call(input) {
      id += 1;
      const params = { name: tool, arguments: input, _meta: META };
      const body = JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params });
      const response = await fetch(new Request(RESOURCE, { method: 'POST', headers, body }));
      return response.json();
    },
    read: ({ result }) => (result === undefined || result.isError ? undefined : result.content[0].text),
  };
}

let issued;

/** Returns a signed token, the key set that verifies it, and the expected claims. */
export function issueToken() {
  issued ??= signToken();
  return issued;
}

async function signToken() {
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true });
  const token = await new SignJWT({ client_id: 'bench', scope: 'tools' })
    .setProtectedHeader({ alg: 'ES256', kid: 'bench' })
    .setSubject('u1')
    .setIssuer(ISSUER)
    .setAudience(RESOURCE)
    .setExpirationTime('12h')
    .sign(privateKey);
  const key = { ...(await exportJWK(publicKey)), kid: 'bench', alg: 'ES256' };
  return { token, keys: [key], issuer: ISSUER, resource: RESOURCE };
}
