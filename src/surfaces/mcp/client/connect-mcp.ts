import type { Client, Transport } from '@modelcontextprotocol/client';
import { TASKS_EXTENSION } from '../record-message.js';
import {
  type ConnectedMcpClient,
  checkConnectOptions,
  type McpConnectOptions,
  rememberServer,
} from './connect-options.js';
import { UserQuestions } from './imported-tool.js';
import { limitedFetch, McpSignIn } from './sign-in.js';

/** Connects to a server; called again when the connection is lost. */
export interface McpConnector {
  (): Promise<ConnectedMcpClient>;
  /**
   * Completes a sign-in with the address to which the browser returned, in this or another process with the same
   * options. Returns `false` if the sign-in was not started with these options, or is older than an hour. Rejects with
   * the `code` of the authorization server if it was refused: `access_denied` if the user declined.
   */
  finishSignIn(address: string | URL): Promise<boolean>;
}

/**
 * Describes a server for `mcpTools`, `followMcpTools` and `createAgent`: a program to start, or a URL. The returned
 * function connects. With `auth`, it signs in where the server asks for it, renews expired tokens, and asks for more
 * scopes when a call needs them. Tokens are never part of errors, logs, traces, results and stored runs.
 *
 * @throws InvalidOptionsError (521).
 *
 * @example
 * ```ts
 * const shop = connectMcp({
 *   url: 'https://shop.example.com/mcp',
 *   auth: {
 *     redirectUrl: 'http://127.0.0.1:33333/callback',
 *     onSignIn: (page) => openBrowser(page),
 *     tokens: fileTokens('.tokens.json'),
 *   },
 * });
 * await followMcpTools(tools, shop, { prefix: 'shop' });
 * ```
 */
export function connectMcp(options: McpConnectOptions): McpConnector {
  checkConnectOptions(options);
  const signIn = 'url' in options && options.auth ? new McpSignIn(options.url, options.auth) : undefined;
  // With a sign-in, a request may first wait for the authorization server, which has a limit of its own.
  const limits = signIn === undefined ? { timeout: ANSWER_MS } : {};
  const connect = async (): Promise<Client> => {
    const { Client } = await import('@modelcontextprotocol/client');
    for (let canSignIn = signIn !== undefined; ; canSignIn = false) {
      const client = new Client(
        { name: 'toolwright', version: '1.0.0' },
        {
          capabilities: { elicitation: { form: {}, url: {} }, extensions: { [TASKS_EXTENSION]: {} } },
          versionNegotiation: { mode: 'auto' },
        },
      );
      new UserQuestions(client);
      try {
        await client.connect(await transportFor(options, signIn), limits);
        signIn?.attach(client);
        return client;
      } catch (error) {
        await client.close().catch(() => {});
        if (!canSignIn || !(await signIn?.resolve(error))) throw describeTimeout(error);
      }
    }
  };
  rememberServer(connect, options);
  return Object.assign(connect, {
    finishSignIn: async (address: string | URL) => (await signIn?.finish(address)) ?? false,
  });
}

/** Time limit for each of the first answers of a server; a program that knows no `server/discover` gives two. */
const ANSWER_MS = 30_000;

/** The SDK's error for a server that does not answer gives milliseconds. */
function describeTimeout(error: unknown): unknown {
  const { code, data } = Object(error) as {
    readonly code?: unknown;
    readonly data?: { readonly timeout?: unknown };
  };
  if (code !== 'REQUEST_TIMEOUT') return error;
  return new Error(`no answer within ${Number(data?.timeout) / 1000} seconds.`, { cause: error });
}

async function transportFor(options: McpConnectOptions, signIn: McpSignIn | undefined): Promise<Transport> {
  if (!('url' in options)) {
    const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
    const { command, args = [], env, cwd } = options;
    return new StdioClientTransport({ command, args: [...args], env: env && { ...env }, cwd });
  }
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const { url, headers } = options;
  return new StreamableHTTPClientTransport(new URL(url), {
    requestInit: headers && { headers },
    authProvider: signIn?.authProvider,
    fetch: signIn?.fetch ?? limitedFetch,
  });
}
