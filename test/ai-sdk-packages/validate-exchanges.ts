import { afterEach, expect } from '@jest/globals';
import { faultsOf } from './body-faults.js';

/** The faults of the exchanges with Anthropic and Google, which are checked after each test. */
const exchanges: Promise<readonly unknown[]>[] = [];
const { fetch } = globalThis;

globalThis.fetch = async (input, init) => {
  const { pathname } = new URL(input instanceof Request ? input.url : String(input));
  const response = await fetch(input, init);
  const wire = WIRES.find(({ path }) => path.test(pathname));
  if (wire) exchanges.push(exchangeFaults(wire, String(init?.body), response.clone()));
  return response;
};

const WIRES = [
  { path: /\/messages$/, body: 'MessagesBody', reply: 'MessagesReply', event: 'MessagesEvent' },
  {
    path: /:(generate|streamGenerate)Content$/,
    body: 'GenerateBody',
    reply: 'GenerateReply',
    event: 'GenerateReply',
  },
] as const;

async function exchangeFaults(
  { body, reply, event }: (typeof WIRES)[number],
  sent: string,
  response: Response,
) {
  const faults = [...faultsOf(body, JSON.parse(sent))];
  const text = await wholeText(response);
  if (text === undefined || !response.ok) return faults;
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
  if (!isStream) return [...faults, ...faultsOf(reply, JSON.parse(text))];
  const events = [...text.matchAll(/^data: ([^\n]*)$/gm)].map(([, data = '']) => JSON.parse(data));
  return [...faults, ...events.flatMap((body) => faultsOf(event, body))];
}

/** Returns `undefined` if the test aborts the request or cuts off the reply. */
function wholeText(response: Response): Promise<string | undefined> {
  return response.text().catch(() => undefined);
}

afterEach(async () => {
  const found = await Promise.all(exchanges.splice(0));
  expect(found.flat()).toEqual([]);
});
