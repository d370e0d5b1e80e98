import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/** A request as Node's http gives it, with what Express and body parsers add. */
export type NodeRequest = IncomingMessage & { readonly originalUrl?: string; readonly body?: unknown };

/** A request listener of Node's `http`, which Express and NestJS take as it is. */
export type NodeHandler = (request: NodeRequest, response: ServerResponse) => void;

/** Mounts a handler of the Web standard in Node's `http`. The path is the whole one, also below a mount point. */
export function nodeListener(handler: WebHandler): NodeHandler {
  return (incoming, outgoing) => {
    const gone = new AbortController();
    outgoing.on('close', () => {
      if (!outgoing.writableFinished) gone.abort(new Error('the client went away'));
    });
    answer(handler, incoming, gone.signal)
      .then((response) => writeResponse(response, outgoing))
      // What was not looked at: some clients read nothing before they have sent all of it.
      .then(() => incoming.resume())
      .catch(() => outgoing.destroy());
  };
}

type WebHandler = (request: Request) => Promise<Response>;

async function answer(handler: WebHandler, incoming: NodeRequest, signal: AbortSignal): Promise<Response> {
  let request: Request;
  try {
    request = toRequest(incoming, signal);
  } catch {
    // What the Web's requests cannot be: a target that is no path, a method such as TRACE.
    const error = { code: 'invalid_request', message: 'the request has no usable method or path' };
    return Response.json({ error }, { status: 400 });
  }
  return handler(request);
}

/** The same request for handlers of the Web standard. Throws for what theirs cannot be. */
export function toRequest(incoming: NodeRequest, signal?: AbortSignal): Request {
  const { method = 'GET', originalUrl, url = '/' } = incoming;
  const headers = new Headers();
  // HTTP/2 has method and path among its headers.
  for (const [name, values = []] of Object.entries(incoming.headers))
    for (const value of name.startsWith(':') ? [] : [values].flat()) headers.append(name, value);
  const hasBody = method !== 'GET' && method !== 'HEAD';
  // Handlers look at the path only; what a client says in `Host` is in the headers.
  return new Request(`http://localhost${originalUrl ?? url}`, {
    method,
    headers,
    ...(signal === undefined ? {} : { signal }),
    ...(hasBody ? { body: bodyOf(incoming), duplex: 'half' } : {}),
  });
}

function bodyOf(incoming: NodeRequest): RequestInit['body'] {
  const { body } = incoming;
  // Read only as far as somebody wants it; to stop must not cut the client off from its answer.
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
