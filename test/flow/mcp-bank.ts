import { defineTool, type Logger, ToolRegistry } from 'toolwright';
import { createMcpServer, jwks, type McpServerOptions, type McpToolServer } from 'toolwright/mcp';
import { type TokenClaims, type TokenIssuer, tokenIssuer } from '../parts/mcp/token-issuer.js';
import { serve } from '../setup/loopback.js';

export const RESOURCE = 'https://bank.example.org/mcp';
export const MODERN = '2026-07-28';
export const LEGACY = '2025-11-25';

/** A protected server with many tenants, and a record of what happened. */
export interface Bank {
  readonly url: URL;
  readonly mcp: McpToolServer;
  readonly issuer: TokenIssuer;
  /** Amounts paid, with their tenants. */
  readonly paid: { readonly tenant: unknown; readonly amount: unknown }[];
  /** The names of the tools that ran. */
  readonly ran: string[];
  /** Log entries, and errors outside of responses. */
  readonly log: string[];
  /** Running calls of `wait` by tenant, with the function that ends each. */
  readonly waiting: Map<unknown, () => void>;
  /** Issues a token for a tenant. */
  tokenOf(tenant: string, claims?: TokenClaims): Promise<string>;
  close(): Promise<void>;
}

function loggerInto(log: string[]): Logger {
  const write = (...entry: unknown[]): void => void log.push(JSON.stringify(entry));
  return { debug: write, info: write, warn: write, error: write };
}

/** Starts a bank on a free port. */
export async function openBank(options: McpServerOptions = {}): Promise<Bank> {
  const issuer = await tokenIssuer(RESOURCE);
  const paid: Bank['paid'] = [];
  const ran: string[] = [];
  const log: string[] = [];
  const waiting: Bank['waiting'] = new Map();
  const registry = new ToolRegistry({ logger: loggerInto(log) }).register(
    defineTool({
      name: 'hours',
      description: 'Opening hours',
      public: true,
      execute: () => {
        ran.push('hours');
        return '9 to 18';
      },
    }),
    defineTool({
      name: 'who_am_i',
      description: 'Shows the caller',
      execute: (_args, { owner, scopes, data }) => {
        ran.push('who_am_i');
        return JSON.stringify({ owner, scopes, tenant: data.tenant });
      },
    }),
    defineTool({
      name: 'pay',
      description: 'Pays',
      approval: true,
      parameters: {
        type: 'object',
        properties: { amount: { type: 'number' } },
        required: ['amount'],
      } as const,
      execute: ({ amount }, { data }) => {
        paid.push({ tenant: data.tenant, amount });
        return `paid ${amount}`;
      },
    }),
    defineTool({
      name: 'pay_quietly',
      description: 'Pays, for administrators',
      scopes: ['admin'],
      parameters: {
        type: 'object',
        properties: { amount: { type: 'number' } },
        required: ['amount'],
      } as const,
      execute: ({ amount }, { data }) => {
        paid.push({ tenant: data.tenant, amount });
        return `paid ${amount}`;
      },
    }),
    defineTool({
      name: 'greet',
      description: 'Asks for a name',
      execute: async (_args, context) => {
        const name: unknown = await context.ask({ message: 'What is your name?' });
        return `${typeof name} ${JSON.stringify(name)}`;
      },
    }),
    defineTool({
      name: 'wait',
      description: 'Waits for the test, and reports progress',
      execute: (_args, context) =>
        new Promise<string>((resolve) => {
          const { data, signal } = context;
          context.progress({ progress: 1, message: `progress of ${data.tenant}` });
          waiting.set(data.tenant, () => resolve(`result of ${data.tenant}`));
          signal.addEventListener('abort', () => resolve('aborted'));
        }),
    }),
  );
  const mcp = createMcpServer(registry, {
    oauth: { resource: RESOURCE, issuer: issuer.issuer, verify: jwks(issuer.keys) },
    scope: ({ authInfo }) => {
      const tenant = authInfo?.extra?.tenant;
      return { ...(authInfo && { owner: { tenant: String(tenant) } }), data: { tenant } };
    },
    onError: (error) => log.push(String(error)),
    ...options,
  });
  const server = await serve(mcp.node);
  return {
    url: new URL('/mcp', server.url),
    ...{ mcp, issuer, paid, ran, log, waiting },
    tokenOf: (tenant, { others = {}, ...claims } = {}) =>
      issuer.issue({ sub: `user of ${tenant}`, expiresIn: 3_600, ...claims, others: { tenant, ...others } }),
    async close() {
      await mcp.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

/** The sender of a request. */
export interface Sender {
  readonly url: URL;
  readonly token?: string | undefined;
  /** Session id of a 2025-11-25 client. */
  readonly session?: string | undefined;
}

/** A JSON-RPC message. */
export interface WireMessage {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: WireResult;
  readonly error?: { readonly code: number; readonly message: string };
}

interface WireResult {
  readonly content?: readonly { readonly text?: string }[];
  readonly isError?: boolean;
  readonly inputRequests?: Readonly<Record<string, { readonly params: { readonly message: string } }>>;
  readonly requestState?: string;
  readonly tools?: readonly { readonly name: string }[];
}

interface Sending {
  readonly headers?: Readonly<Record<string, string>>;
  readonly id?: unknown;
  readonly signal?: AbortSignal;
}

const JSON_HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

/** Posts a string as it is, or an object as JSON. */
export function post({ url, token, session }: Sender, body: unknown, { headers, signal }: Sending = {}) {
  return fetch(url, {
    method: 'POST',
    headers: {
      ...JSON_HEADERS,
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(session !== undefined && { 'mcp-session-id': session, 'mcp-protocol-version': LEGACY }),
      ...headers,
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    ...(signal && { signal }),
  });
}

export const META = {
  'io.modelcontextprotocol/protocolVersion': MODERN,
  'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': { elicitation: {} },
};

/** Sends a request of a 2026-07-28 client. */
export function ask(
  sender: Sender,
  method: string,
  { _meta, ...params }: Readonly<Record<string, unknown>> = {},
  { headers, id = 1, signal }: Sending = {},
): Promise<Response> {
  const name = params.name ?? params.uri;
  const body = { jsonrpc: '2.0', id, method, params: { ...params, _meta: { ...META, ...Object(_meta) } } };
  const own = {
    'mcp-protocol-version': MODERN,
    'mcp-method': method,
    ...(typeof name === 'string' && { 'mcp-name': name }),
  };
  return post(sender, body, { headers: { ...own, ...headers }, ...(signal && { signal }) });
}

/** Makes a call of a 2026-07-28 client, and returns the last message. */
export async function callModern(
  sender: Sender,
  params: Readonly<Record<string, unknown>> & { readonly name: string },
  sending?: Sending,
): Promise<WireMessage> {
  return lastMessage(await ask(sender, 'tools/call', { arguments: {}, ...params }, sending));
}

/** Starts the session of a 2025-11-25 client; returns `undefined` if the server gives none. */
export async function beginSession(sender: Sender, sending?: Sending): Promise<string | undefined> {
  const params = {
    protocolVersion: LEGACY,
    capabilities: { elicitation: {} },
    clientInfo: { name: 'raw', version: '1' },
  };
  const response = await post(sender, { jsonrpc: '2.0', id: 0, method: 'initialize', params }, sending);
  await response.text();
  const session = response.headers.get('mcp-session-id') ?? undefined;
  if (session !== undefined)
    await (
      await post({ ...sender, session }, { jsonrpc: '2.0', method: 'notifications/initialized' })
    ).text();
  return session;
}

/** Makes a call in a session. */
export function callIn(
  sender: Sender,
  name: string,
  args: object = {},
  { id = 1, ...sending }: Sending & { readonly _meta?: object } = {},
) {
  const { _meta, ...others } = sending;
  const params = { name, arguments: args, ...(_meta && { _meta }) };
  return post(sender, { jsonrpc: '2.0', id, method: 'tools/call', params }, others);
}

/** The messages of a response, as they arrive. */
export async function* messagesOf(response: Response): AsyncGenerator<WireMessage> {
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) {
    const text = await response.text();
    if (text !== '') yield JSON.parse(text);
    return;
  }
  let rest = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    rest += decoder.decode(chunk, { stream: true });
    const events = rest.split('\n\n');
    rest = events.pop() ?? '';
    for (const event of events)
      for (const [, data = ''] of event.matchAll(/^data: (.+)$/gm)) yield JSON.parse(data);
  }
}

/** The last message of a response. */
export async function lastMessage(response: Response): Promise<WireMessage> {
  let last: WireMessage = {};
  for await (const message of messagesOf(response)) last = message;
  return last;
}

/** The next request or notification with this method. */
export async function nextOf(messages: AsyncGenerator<WireMessage>, method: string): Promise<WireMessage> {
  for (;;) {
    const { done, value } = await messages.next();
    if (done) throw new Error(`The stream ended without ${method}`);
    if (value.method === method) return value;
  }
}

export function textOf({ result, error }: WireMessage): string {
  return result?.content?.[0]?.text ?? error?.message ?? '';
}
