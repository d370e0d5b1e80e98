import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable, Writable } from 'node:stream';
import type { AuthInfo, Transport } from '@modelcontextprotocol/server';

/** What the one who mounts the server knows of a request. */
export interface McpRequestInfo {
  /** What the token of the request was verified to stand for. */
  readonly authInfo?: AuthInfo;
  /** The body, where somebody has read it already. */
  readonly parsedBody?: unknown;
}

/** Where a client writes and reads; by default this process’s standard input and output. */
export interface StdioStreams {
  readonly input?: Readable;
  /** Nothing else may be written there. */
  readonly output?: Writable;
}

/** One connection over stdio, or over any other transport that lasts. */
export interface McpConnection {
  /** When the client is gone, or the connection was closed. */
  readonly closed: Promise<void>;
  /** As the server's own `close`, for this connection. */
  close(): Promise<void>;
}

/** A registry over MCP: any number of connections, over HTTP and over transports that last. */
export interface McpToolServer {
  /** Streamable HTTP, as a Web-standard handler; bound, so that it can be handed on. */
  readonly fetch: (request: Request, info?: McpRequestInfo) => Promise<Response>;
  /** The same for Node's `http` and for Express; `request.auth` is the verified token, `body` a parsed body. */
  readonly node: (
    request: IncomingMessage & { auth?: AuthInfo },
    response: ServerResponse,
    body?: unknown,
  ) => Promise<void>;
  /** Serves one client over standard input and output. */
  stdio(streams?: StdioStreams): McpConnection;
  /** Serves one client over a transport of the SDK that lasts. */
  connect(transport: Transport): McpConnection;
  /** Sessions of 2025-11-25 clients over HTTP. */
  readonly sessionCount: number;
  /**
   * Takes no new requests, aborts the calls that run, sends every answer that there is, those of the aborted
   * calls included, and then ends all connections. It takes a second at most, and may be called again.
   */
  close(): Promise<void>;
}
