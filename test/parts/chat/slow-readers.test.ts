import { afterEach, describe, expect, test } from '@jest/globals';
import { Conversations, type LLMProvider, streamToolLoop } from 'toolwright';
import {
  type ChatHandlerOptions,
  createChatHandler,
  toAgUiResponse,
  toUIMessageResponse,
} from 'toolwright/chat';
import { MemoryRunStore } from 'toolwright/stores';

const opened: Conversations[] = [];
afterEach(async () => {
  for (const conversations of opened.splice(0)) await conversations.close();
});

/** A model that writes so many pieces, and counts how many were read. */
function writer(pieces: number) {
  const written = { count: 0 };
  const provider: LLMProvider = {
    chat: () => Promise.reject(new Error('only streams')),
    async *stream() {
      for (; written.count < pieces; written.count += 1) yield { type: 'text-delta', text: 'more ' };
      const content = 'more '.repeat(pieces);
      yield { type: 'response', response: { content, toolCalls: [], finishReason: 'stop' } };
    },
  };
  return { provider, written };
}

/** Reads some pieces of a body, and then gives the writer time to write more. */
async function take(reader: ReadableStreamDefaultReader<Uint8Array>, pieces: number): Promise<void> {
  for (let taken = 0; taken < pieces; taken += 1) await reader.read();
  for (let turn = 0; turn < 1_000; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

const INPUT = { threadId: 't1', runId: 'r1', messages: [{ id: 'm1', role: 'user', content: 'Go' }] };
const BODIES: Readonly<Record<'ui-messages' | 'ag-ui' | 'events', object>> = {
  'ui-messages': { id: 'c1', messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Go' }] }] },
  'ag-ui': { ...INPUT, threadId: 'c1', tools: [], context: [], state: {}, forwardedProps: {} },
  events: { id: 'c1', messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Go' }] }] },
};

describe.each([
  ['toUIMessageResponse', toUIMessageResponse],
  [
    'toAgUiResponse',
    (run: Parameters<typeof toAgUiResponse>[0]) => toAgUiResponse(run, { input: BODIES['ag-ui'] }),
  ],
] as const)('%s', (name, respond) => {
  test(`${name} reads from a model only as fast as its client reads`, async () => {
    const { provider, written } = writer(100_000);
    const run = streamToolLoop({ provider, model: 'm' }, [{ role: 'user', content: 'Go' }]);
    const reader = respond(run).body?.getReader();
    if (reader === undefined) throw new Error('there is no body');
    await take(reader, 0);
    expect(written.count).toBeLessThan(10);
    await take(reader, 20);
    expect(written.count).toBeLessThan(40);
    await reader.cancel();
    expect((await run.result).status).toBe('aborted');
  });
});

test.each(['ui-messages', 'ag-ui', 'events'] as const)(
  'createChatHandler with %s reads only as many events of a long turn as its client',
  async (protocol) => {
    const { provider, written } = writer(5_000);
    const conversations = new Conversations({
      store: new MemoryRunStore(),
      config: { provider, model: 'm', tools: [] },
    });
    opened.push(conversations);
    let taken = 0;
    const counting: ChatHandlerOptions['conversations'] = {
      prompt: (...given) => conversations.prompt(...given),
      answer: (...given) => conversations.answer(...given),
      abort: (...given) => conversations.abort(...given),
      snapshot: (...given) => conversations.snapshot(...given),
      async *events(...given) {
        for await (const event of conversations.events(...given)) {
          taken += 1;
          yield event;
        }
      },
    };
    const handler = createChatHandler({ conversations: counting, authenticate: () => 'u1', protocol });
    const asked = await handler.fetch(
      new Request('http://localhost/api/chat', {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
        body: JSON.stringify(BODIES[protocol]),
      }),
    );
    expect(asked.status).toBe(200);
    const reader = asked.body?.getReader();
    if (reader === undefined) throw new Error('there is no body');
    await take(reader, 5);
    // The turn continues after its reader has disconnected.
    await conversations.idle('c1');
    expect(written.count).toBe(5_000);
    expect(taken).toBeLessThan(20);
    await reader.cancel();
  },
);
