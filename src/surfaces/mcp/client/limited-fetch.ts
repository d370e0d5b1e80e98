/** Much more than the longest list of tools. */
const MOST_BYTES = 10_000_000;

/** The end of an event; the bytes before it are not counted any more. */
const EVENT_END = /\n\r?\n|\r\r/;
const END_CHARACTERS = 3;

/** `fetch`, whose responses and events fail beyond 10 MB: a body without an end would fill the memory. */
export async function limitedFetch(url: string | URL, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, init);
  if (response.body === null) return response;
  const isOfEvents = response.ok && isEventStream(response.headers.get('content-type'));
  const endsEvents = isOfEvents && isEventStream(new Headers(init?.headers).get('accept'));
  const { origin, pathname } = new URL(url);
  let size = 0;
  let last = '';
  const limit = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      if (endsEvents) {
        const text = last + Buffer.from(chunk).toString('latin1');
        if (EVENT_END.test(text)) size = 0;
        last = text.slice(-END_CHARACTERS);
      }
      size += chunk.byteLength;
      if (size <= MOST_BYTES) controller.enqueue(chunk);
      else controller.error(new Error(`The response of ${origin}${pathname} has more than 10 MB.`));
    },
  });
  return replacedBody(response, response.body.pipeThrough(limit));
}

function isEventStream(types: string | null): boolean {
  return /\btext\/event-stream\b/i.test(types ?? '');
}

/** A response with another body, which is not compressed. */
export function replacedBody(
  response: Response,
  body: ReadableStream<Uint8Array> | string | null,
  headers = new Headers(response.headers),
): Response {
  for (const name of ['content-encoding', 'content-length']) headers.delete(name);
  const { status, statusText, url } = response;
  // A redirect that was not followed is recognized by its address.
  return Object.defineProperty(new Response(body, { status, statusText, headers }), 'url', { value: url });
}
