import { Readable } from 'node:stream';
import { StreamableFile } from '@nestjs/common';

/** Those that this package has made: what handlers of the application return is theirs, and Nest's. */
const OURS = new WeakSet<Response>();

/** A response that Nest is to send, whichever version of it, and on which platform, this is. */
export function asNestResponse(response: Response): Response {
  OURS.add(response);
  return response;
}

/** The response of Express, or the reply of Fastify. */
interface PlatformResponse {
  status(code: number): unknown;
  header(name: string, value: string): unknown;
  readonly raw?: { once(event: 'close', listener: () => void): unknown };
  once?(event: 'close', listener: () => void): unknown;
}

/** What a handler gave, as every version of Nest sends it; only responses of our own become something else. */
export function asReply(given: unknown, platform: () => PlatformResponse): unknown {
  if (!(given instanceof Response) || !OURS.has(given)) return given;
  const response = platform();
  for (const [name, value] of given.headers) response.header(name, value);
  const body = given.body === null ? Readable.from([]) : Readable.fromWeb(given.body as never);
  // Not every version tells a stream that its reader has left.
  const leave = (): void => void body.destroy();
  if (response.raw !== undefined) response.raw.once('close', leave);
  else response.once?.('close', leave);
  return new SentResponse(body, { type: given.headers.get('content-type') ?? '' }, () =>
    response.status(given.status),
  );
}

/** Nest sets the status of a route before it asks for the stream. */
class SentResponse extends StreamableFile {
  readonly #setStatus: () => void;

  constructor(body: Readable, headers: { readonly type: string }, setStatus: () => void) {
    super(body, headers);
    this.#setStatus = setStatus;
  }

  override getStream(): Readable {
    this.#setStatus();
    return super.getStream();
  }
}
