import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/** A request as Node's http gives it, with what Express and body parsers add. */
export type NodeRequest = IncomingMessage & { readonly originalUrl?: string; readonly body?: unknown };

/** A request as Fastify gives it: Node's own is beneath, and its body has been read. */
export interface WrappedRequest {
  readonly raw: IncomingMessage;
  readonly originalUrl?: string;
  readonly body?: unknown;
}

/** Where Fastify has its handlers answer. */
export interface WrappedResponse {
  readonly raw: ServerResponse;
  /** Leaves the answer to its handler. */
  hijack(): unknown;
  /** What its hooks have set. */
  getHeaders(): Readonly<Record<string, number | string | readonly string[] | undefined>>;
}

/** A request listener of Node's `http`, which Express, NestJS and Fastify take as it is. */
export type NodeHandler = (
  request: NodeRequest | WrappedRequest,
  response: ServerResponse | WrappedResponse,
) => void;

/** Mounts a handler of the Web standard in Node's `http`. The path is the whole one, also below a mount point. */
export function nodeListener(handler: WebHandler): NodeHandler {
  return (request, response) => {
    const outgoing = rawResponseOf(response);
    const gone = new AbortController();
    outgoing.on('close', () => {
      if (!outgoing.writableFinished) gone.abort(new Error('the client went away'));
    });
    answer(handler, request, gone.signal)
      .then((answered) => writeResponse(answered, outgoing))
      // What was not looked at: some clients read nothing before they have sent all of it.
      .then(() => rawRequestOf(request).resume())
      .catch(() => outgoing.destroy());
  };
}

type WebHandler = (request: Request) => Promise<Response>;

async function answer(
  handler: WebHandler,
  incoming: NodeRequest | WrappedRequest,
  signal: AbortSignal,
): Promise<Response> {
  if (rawRequestOf(incoming).readableDidRead && incoming.body === undefined)
    return Response.json({ error: BODY_READ_BEFORE }, { status: 500 });
  let request: Request;
  try {
    request = toRequest(incoming, signal);
  } catch {
    // What the Web's requests cannot be: a target that is no path, a method such as TRACE.
    const error = {
      code: 'invalid_request',
      message: 'the request has no usable method, path or body: its body may be nested too deep',
    };
    return Response.json({ error }, { status: 400 });
  }
  return handler(request);
}

const BODY_READ_BEFORE = {
  code: 'body_read_before',
  message:
    'the body was read before it came here, and `body` of the request is not there. Fastify: app.all(path, handler.node), without request.raw',
};

/** The request of Node's `http`. */
export function rawRequestOf(request: NodeRequest | WrappedRequest): IncomingMessage {
  return request instanceof Readable ? request : (request as WrappedRequest).raw;
}

/** The response of Node's `http`, to be written by whoever has asked for it. */
export function rawResponseOf(response: ServerResponse | WrappedResponse): ServerResponse {
  if (!('hijack' in response)) return response;
  response.hijack();
  for (const [name, value] of Object.entries(response.getHeaders()))
    if (value !== undefined) response.raw.setHeader(name, value);
  return response.raw;
}

/** The same request for handlers of the Web standard. Throws for what theirs cannot be. */
export function toRequest(incoming: NodeRequest | WrappedRequest, signal?: AbortSignal): Request {
  const raw = rawRequestOf(incoming);
  const { method = 'GET', url = '/' } = raw;
  const headers = new Headers();
  // HTTP/2 has method and path among its headers.
  for (const [name, values = []] of Object.entries(raw.headers))
    for (const value of name.startsWith(':') ? [] : [values].flat()) headers.append(name, value);
  const hasBody = method !== 'GET' && method !== 'HEAD';
  // Handlers look at the path only; what a client says in `Host` is in the headers.
  return new Request(`http://localhost${incoming.originalUrl ?? url}`, {
    method,
    headers,
    ...(signal === undefined ? {} : { signal }),
    ...(hasBody ? { body: bodyOf(raw, incoming.body), duplex: 'half' } : {}),
  });
}

function bodyOf(incoming: IncomingMessage, body: unknown): RequestInit['body'] {
  // Read only as far as needed; to stop must not cut the client off from its answer.
  if (!incoming.readableDidRead || body === undefined)
    return ReadableStream.from<Uint8Array>(incoming.iterator({ destroyOnReturn: false }));
  if (typeof body === 'string' || body instanceof Uint8Array) return body;
  return JSON.stringify(body);
}

/** Writes a response of the Web standard, as its reader takes it. */
export async function writeResponse(response: Response, outgoing: ServerResponse): Promise<void> {
  outgoing.statusCode = response.status;
  for (const [name, value] of response.headers) outgoing.setHeader(name, value);
  if (response.body === null) {
    outgoing.end();
    return;
  }
  outgoing.flushHeaders();
  await pipeline(Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0]), outgoing);
}

/** The bytes of a request's body; `undefined` as soon as there are more than that. */
export async function bytesOf({ body }: Request, most: number): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.byteLength;
    if (size > most) return undefined;
    chunks.push(chunk);
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}
