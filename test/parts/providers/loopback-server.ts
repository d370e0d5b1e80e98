import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { type RunningServer, serve } from '../../setup/loopback.js';

/** A request as the server received it. */
export interface SeenRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Record<string, unknown>;
}

/** Answers one request; may leave it unanswered. */
export type Answer = (response: ServerResponse, request: SeenRequest) => void;

/** A real HTTP server on loopback that answers as the test defines and records its requests. */
export class LoopbackServer implements AsyncDisposable {
  private constructor(
    readonly requests: readonly SeenRequest[],
    private readonly server: RunningServer,
  ) {}

  static async start(answer: Answer): Promise<LoopbackServer> {
    const requests: SeenRequest[] = [];
    const listener = async (incoming: IncomingMessage, response: ServerResponse) => {
      const text = (await collect<string>(incoming.setEncoding('utf8'))).join('');
      const request = { path: incoming.url ?? '', headers: incoming.headers, body: JSON.parse(text || '{}') };
      requests.push(request);
      answer(response, request);
    };
    return new LoopbackServer(requests, await serve(listener));
  }

  get baseURL(): string {
    return `${this.server.url}/v1`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server[Symbol.asyncDispose]();
  }
}

/** Answers every request with one JSON body. */
export function json(body: unknown, status = 200): Answer {
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };
}

/** Answers every request with a text of this content type. */
export function page(text: string, type: string, status = 200): Answer {
  return (response) => {
    response.writeHead(status, type === '' ? {} : { 'content-type': type }).end(text);
  };
}

/** Answers every request with server-sent events, one per chunk, and `[DONE]`. */
export function events(chunks: readonly unknown[], ending = 'data: [DONE]\n\n'): Answer {
  const lines = chunks.map(
    (chunk) => `data: ${typeof chunk === 'string' ? chunk : JSON.stringify(chunk)}\n\n`,
  );
  return page(`${lines.join('')}${ending}`, 'text/event-stream');
}

/** A chunk with one delta. */
export function delta(fields: Record<string, unknown>, finish_reason: string | null = null): unknown {
  return { choices: [{ index: 0, delta: fields, finish_reason }] };
}

/** A completion with one message. */
export function completion(message: Record<string, unknown>, rest: Record<string, unknown> = {}): unknown {
  return { choices: [{ index: 0, message, finish_reason: 'stop', ...rest }] };
}

/** Collects all values of an iterable. */
export async function collect<Part>(parts: AsyncIterable<Part>): Promise<Part[]> {
  const all: Part[] = [];
  for await (const part of parts) all.push(part);
  return all;
}
