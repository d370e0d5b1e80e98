/* The server of the official MCP SDK with zod schemas, with a transport in memory and over HTTP. */
import { createMcpHandler, McpServer, OAuthError, requireBearerAuth } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { createLocalJWKSet, jwtVerify } from 'jose';
import { zodSchemas } from '../schemas.mjs';
import { bodyOf } from '../workloads.mjs';
import { httpCandidate, issueToken } from './http-requests.mjs';
import { MemoryTransport, serverCandidate } from './memory-transport.mjs';

let opened;

/** `tools/call` of an `McpServer` with the three workloads. */
export async function sdkServerCall({ tool }) {
  opened ??= sdkServer(workloadTools());
  return serverCandidate('MCP SDK `McpServer` (zod)', await opened, tool);
}

/** `tools/call` over stateless HTTP. */
export function sdkHttpCall({ tool }) {
  return httpCandidate('MCP SDK `createMcpHandler` (zod)', createHandler().fetch, { tool });
}

/** `tools/call` with the token check of the SDK and a verifier with the same checks as `jwks`. */
export async function sdkProtectedCall({ tool }) {
  const { token, keys, issuer, resource } = await issueToken();
  const keySet = createLocalJWKSet({ keys });
  const expected = { issuer, audience: [resource], requiredClaims: ['exp'], clockTolerance: 5 };
  const verifyAccessToken = async (bearerToken) => {
    try {
      const { payload } = await jwtVerify(bearerToken, keySet, expected);
      const { client_id: clientId, scope, exp, ...extra } = payload;
      return { token: bearerToken, clientId, scopes: scope.split(' '), expiresAt: exp, extra };
    } catch (error) {
      throw new OAuthError('invalid_token', error.message);
    }
  };
  const authenticate = requireBearerAuth({ verifier: { verifyAccessToken } });
  const handler = createHandler();
  const fetch = async (request) => {
    const authInfo = await authenticate(request);
    return authInfo instanceof Response ? authInfo : handler.fetch(request, { authInfo });
  };
  return httpCandidate('MCP SDK with `requireBearerAuth`', fetch, { tool, token });
}

function createHandler() {
  return createMcpHandler(() => createServer(workloadTools()));
}

function workloadTools() {
  return Object.keys(zodSchemas).map((name) => ({ name, like: name }));
}

/** Connects to an `McpServer` with these tools, each like a workload. */
export function sdkServer(tools) {
  return MemoryTransport.open((transport) => serveStdio(() => createServer(tools), { transport }));
}

function createServer(tools) {
  const server = new McpServer({ name: 'bench', version: '1.0.0' });
  for (const { name, like } of tools) {
    const body = bodyOf(like);
    server.registerTool(name, { description: name, inputSchema: zodSchemas[like] }, async (input) => ({
      content: [{ type: 'text', text: String(body(input)) }],
    }));
  }
  return server;
}
