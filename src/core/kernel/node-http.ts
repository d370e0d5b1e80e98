import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { isObject } from './json.js';

/** A request of Node's http, with the fields that Express and body parsers add. */
export type NodeRequest = IncomingMessage & { readonly originalUrl?: string; readonly body?: unknown };

/** A request of Fastify: it contains Node's request, whose body was already read. */
export interface WrappedRequest {
  readonly raw: IncomingMessage;
  readonly originalUrl?: string;
  readonly body?: unknown;
}

/** A reply of Fastify. */
export interface WrappedResponse {
  readonly raw: ServerResponse;
  /** Leaves the response to the handler. */
  hijack(): unknown;
  /** The headers that Fastify hooks have set. */
  getHeaders(): Readonly<Record<string, number | string | readonly string[] | undefined>>;
}

/** A request listener of Node's `http`, which Express, NestJS and Fastify accept unchanged. */
export type NodeHandler = (
  request: NodeRequest | WrappedRequest,
  response: ServerResponse | WrappedResponse,
) => void;

/** Mounts a Fetch API handler in Node's `http`. The handler sees the full path, also below a mount point. */
export function nodeListener(handler: (request: Request) => Promise<Response>): NodeHandler {
  return (incoming, response) =>
    void respond(incoming, response, async (signal) => {
      if (rawRequestOf(incoming).readableDidRead && incoming.body === undefined)
        return Response.json({ error: BODY_READ_BEFORE }, { status: 500 });
      let request: Request;
      try {
        request = toRequest(incoming, signal);
      } catch {
        // Requests that the Fetch API cannot represent: a target that is not a path, a method such as TRACE.
        const error = {
          code: 'invalid_request',
          message: 'the request has no usable method, path or body',
        };
        return Response.json({ error }, { status: 400 });
      }
      return handler(request);
    });
}

/** Answers a request of Node's `http`. The signal is aborted when the client leaves. Never rejects. */
export async function respond(
  request: NodeRequest | WrappedRequest,
  response: ServerResponse | WrappedResponse,
  handle: (signal: AbortSignal) => Promise<Response>,
): Promise<void> {
  const outgoing = rawResponseOf(response);
  const gone = new AbortController();
  outgoing.on('close', () => {
    if (!outgoing.writableFinished) gone.abort(new Error('the client disconnected'));
  });
  try {
    await writeResponse(await handle(gone.signal), outgoing);
    // Read the rest of the body: some clients read nothing before they have sent everything.
    rawRequestOf(request).resume();
  } catch {
    outgoing.destroy();
  }
}

const BODY_READ_BEFORE = {
  code: 'body_read_before',
  message:
    'the body of the request was already read, and the request has no `body`. With Fastify, use app.all(path, handler.node), without request.raw',
};

/** The underlying request of Node's `http`. */
export function rawRequestOf(request: NodeRequest | WrappedRequest): IncomingMessage {
  return request instanceof Readable ? request : (request as WrappedRequest).raw;
}

/** The underlying response of Node's `http`; the caller must write it. */
export function rawResponseOf(response: ServerResponse | WrappedResponse): ServerResponse {
  if (!('hijack' in response)) return response;
  response.hijack();
  for (const [name, value] of Object.entries(response.getHeaders()))
    if (value !== undefined) response.raw.setHeader(name, value);
  return response.raw;
}

/** Converts a request for Fetch API handlers. Throws if the Fetch API cannot represent it. */
export function toRequest(incoming: NodeRequest | WrappedRequest, signal?: AbortSignal): Request {
  const raw = rawRequestOf(incoming);
  const { method = 'GET', url = '/' } = raw;
  const headers = new Headers();
  // HTTP/2 has method, path and host among its headers.
  for (const [name, values = []] of Object.entries(raw.headers))
    for (const value of name.startsWith(':') ? [] : [values].flat()) headers.append(name, value);
  const { ':authority': authority } = raw.headers;
  if (typeof authority === 'string') headers.set('host', authority);
  const hasBody = method !== 'GET' && method !== 'HEAD';
  // Handlers read only the path; the client's host is in the `Host` header.
  return new Request(`http://localhost${incoming.originalUrl ?? url}`, {
    method,
    headers,
    ...(signal === undefined ? {} : { signal }),
    ...(hasBody ? { body: bodyOf(raw, incoming.body), duplex: 'half' } : {}),
  });
}

function bodyOf(incoming: IncomingMessage, body: unknown): RequestInit['body'] {
  // Read only as far as needed. Stopping must not close the connection before the response is sent.
  if (!incoming.readableDidRead || body === undefined)
    return ReadableStream.from<Uint8Array>(incoming.iterator({ destroyOnReturn: false }));
  if (typeof body === 'string' || body instanceof Uint8Array) return body;
  try {
    return JSON.stringify(body);
  } catch (error) {
    if (error instanceof RangeError) return deepJson(body);
    throw error;
  }
}

/** Writes JSON that is nested too deep for `JSON.stringify`, so that the handler can refuse it like any other. */
function deepJson(body: unknown): string {
  const written: string[] = [];
  const pending: (string | { readonly value: unknown })[] = [{ value: body }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (typeof next === 'string' || !isObject(next.value)) {
      written.push(typeof next === 'string' ? next : JSON.stringify(next.value ?? null));
      continue;
    }
    const isList = Array.isArray(next.value);
    pending.push(isList ? ']' : '}');
    for (const [index, [key, value]] of [...Object.entries(next.value).entries()].reverse())
      pending.push({ value }, `${index === 0 ? '' : ','}${isList ? '' : `${JSON.stringify(key)}:`}`);
    pending.push(isList ? '[' : '{');
  }
  return written.join('');
}

/** Writes a Fetch API response, with backpressure. */
async function writeResponse(response: Response, outgoing: ServerResponse): Promise<void> {
  outgoing.statusCode = response.status;
  for (const [name, value] of response.headers) outgoing.setHeader(name, value);
  if (response.body === null) {
    outgoing.end();
    return;
  }
  if (outgoing.destroyed) return response.body.cancel();
  // A handler in front may have ended the response meanwhile. Without a listener, the error would end the process.
  outgoing.on('error', () => outgoing.destroy());
  // With a first chunk that is there already, the headers are sent in one packet.
  const silence = setImmediate(() => {
    try {
      outgoing.flushHeaders();
    } catch {
      outgoing.destroy();
    }
  });
  const reader = response.body.getReader();
  let resume = (): void => {};
  outgoing.on('drain', () => resume());
  outgoing.once('close', () => {
    // Also ends a pending read.
    reader.cancel().catch(() => {});
    resume();
  });
  for (;;) {
    const { done, value } = await reader.read().finally(() => clearImmediate(silence));
    if (done || outgoing.destroyed) break;
    if (!outgoing.write(value))
      await new Promise<void>((resolve) => {
        resume = resolve;
      });
  }
  outgoing.end();
}

/** Whether a request has the type of JSON: a form on a foreign page can send other types without a CORS check. */
export function sendsJson({ headers }: Request): boolean {
  const [type = ''] = (headers.get('content-type') ?? '').split(';');
  return type.trim().toLowerCase() === 'application/json';
}

/** The bytes of a request's body; `undefined` as soon as the limit is exceeded. */
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
