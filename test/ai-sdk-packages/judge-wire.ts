import { afterEach, expect } from '@jest/globals';
import { faultsOf } from './judge.js';

/** Every exchange with Anthropic or Google that a test has is judged when the test is over. */
const exchanges: Promise<readonly unknown[]>[] = [];
const { fetch } = globalThis;

globalThis.fetch = async (input, init) => {
  const { pathname } = new URL(input instanceof Request ? input.url : String(input));
  const response = await fetch(input, init);
  const wire = WIRES.find(({ path }) => path.test(pathname));
  if (wire) exchanges.push(judged(wire, String(init?.body), response.clone()));
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

async function judged({ body, reply, event }: (typeof WIRES)[number], sent: string, response: Response) {
  const faults = [...faultsOf(body, JSON.parse(sent))];
  const text = await wholeText(response);
  if (text === undefined || !response.ok) return faults;
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
  if (!isStream) return [...faults, ...faultsOf(reply, JSON.parse(text))];
  const events = [...text.matchAll(/^data: ([^\n]*)$/gm)].map(([, data = '']) => JSON.parse(data));
  return [...faults, ...events.flatMap((some) => faultsOf(event, some))];
}

/** What a test aborts, or lets break off, has no whole reply. */
function wholeText(response: Response): Promise<string | undefined> {
  return response.text().catch(() => undefined);
}

afterEach(async () => {
  const found = await Promise.all(exchanges.splice(0));
  expect(found.flat()).toEqual([]);
});
