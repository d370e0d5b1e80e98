import { readServerEvents } from '../../../src/models/wire/server-events.js';

/** An event with its parsed data. */
export interface ReadEvent {
  readonly event: string;
  readonly id?: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: what a test looks at is the test's business
  readonly data: any;
}

/** Sends a request and yields the events as they arrive. */
export async function* postForEvents(
  url: string,
  body: unknown,
  options: RequestInit = {},
): AsyncGenerator<ReadEvent> {
  const response = await fetch(`${url}/v1/chat`, {
    method: 'POST',
    ...options,
    headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...options.headers },
    body: JSON.stringify(body),
  });
  if (response.headers.get('content-type') !== 'text/event-stream; charset=utf-8' || response.body === null)
    throw new Error(`no events: ${response.status} ${await response.text()}`);
  for await (const event of readServerEvents(response.body)) yield { ...event, data: JSON.parse(event.data) };
}
