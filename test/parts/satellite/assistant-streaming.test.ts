import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type LLMProvider, type LLMRequest, type LLMStreamPart, parseToolRequest } from 'toolwright';
import { TextGate } from '../../../src/surfaces/satellite/server/create-assistant-handler.js';
import { AssistantServer, requestText } from './assistant-server.js';
import { postForEvents, type ReadEvent } from './event-stream.js';

const HI = { conversation_id: 'c1', messages: [{ role: 'user', content: 'Hi' }] };

async function eventsOf(url: string, body: unknown = HI, options: RequestInit = {}): Promise<ReadEvent[]> {
  const events: ReadEvent[] = [];
  for await (const event of postForEvents(url, body, options)) events.push(event);
  return events;
}

function textsOf(events: readonly ReadEvent[]): string[] {
  return events.flatMap(({ event, data }) => (event === 'text-delta' ? [data.text] : []));
}

/** A model that writes the first piece and then waits for `goOn` or an abort. */
class HaltingModel implements LLMProvider {
  readonly goOn = Promise.withResolvers<void>();
  readonly aborted = Promise.withResolvers<void>();

  async chat(): Promise<never> {
    throw new Error('it was asked without a stream');
  }

  async *stream({ signal }: LLMRequest): AsyncGenerator<LLMStreamPart> {
    signal?.addEventListener('abort', () => this.aborted.resolve());
    yield { type: 'text-delta', text: 'On and ' };
    await this.goOn.promise;
    yield { type: 'text-delta', text: 'on.' };
    yield { type: 'response', response: { content: 'On and on.', toolCalls: [], finishReason: 'stop' } };
  }
}

describe('Accept: text/event-stream', () => {
  test('sends the text as the model writes it, then the response with the turn id', async () => {
    await using server = await AssistantServer.start([{ content: 'It is clear in Lisbon.' }]);
    const events = await eventsOf(server.url);
    expect(textsOf(events)).toEqual(['It', ' is', ' clear', ' in', ' Lisbon.']);
    const { body, headers } = await server.send('/v1/chat/c1');
    expect(events.at(-1)).toEqual({ event: 'response', data: body, id: headers.get('etag')?.slice(1, -1) });
  });

  test('the first text is sent before the model has written the last', async () => {
    const provider = new HaltingModel();
    await using server = await AssistantServer.start([], { provider });
    const events = postForEvents(server.url, HI);
    expect((await events.next()).value).toEqual({ event: 'text-delta', data: { text: 'On and ' } });
    provider.goOn.resolve();
    const rest: string[] = [];
    for await (const { event } of events) rest.push(event);
    expect(rest).toEqual(['text-delta', 'response']);
  });

  test('text of a tool request is never sent', async () => {
    await using server = await AssistantServer.start([
      { content: ` \n${requestText('lookup', { city: 'a b c' })}` },
    ]);
    const events = await eventsOf(server.url);
    expect(events.map(({ event }) => event)).toEqual(['response']);
    expect(events[0]?.data).toMatchObject({ message: { content: '' }, tool_request: { name: 'lookup' } });
  });

  test('text that only starts like a tool request is sent at its end', async () => {
    await using server = await AssistantServer.start([{ content: ' {"a": 1} is JSON' }]);
    expect(textsOf(await eventsOf(server.url)).join('')).toBe(' {"a": 1} is JSON');
  });

  test('the text of a provider that cannot stream is sent in one piece', async () => {
    const provider: LLMProvider = {
      chat: async () => ({ content: 'One piece.', toolCalls: [], finishReason: 'stop' }),
    };
    await using server = await AssistantServer.start([], { provider });
    const events = await eventsOf(server.url);
    expect([textsOf(events), events.at(-1)?.event]).toEqual([['One piece.'], 'response']);
  });

  test('a failure is sent as the last event, without internals, and changes nothing', async () => {
    await using server = await AssistantServer.start([{ content: requestText('a') }, new Error('key=sk-1')]);
    await server.say('c1', 'Hi');
    const result = { role: 'tool_result', name: 'a', content: '1' };
    expect(await eventsOf(server.url, { ...HI, messages: [result] })).toEqual([
      {
        event: 'error',
        data: { error: { code: 'provider_failed', message: 'the model gave no usable reply' } },
      },
    ]);
    expect((await server.send('/v1/chat/c1')).body.tool_request.name).toBe('a');
  });

  test.each([
    ['throws', new Error('connection lost')],
    ['stops', undefined],
  ])('if the model %s inside a tool request, no text is sent and nothing is stored', async (_what, end) => {
    const provider: LLMProvider = {
      chat: async () => Promise.reject(new Error('it was asked without a stream')),
      async *stream() {
        for (const text of [' ', '{"tool_', 'request":{"name":"a"']) yield { type: 'text-delta', text };
        if (end) throw end;
      },
    };
    await using server = await AssistantServer.start([], { provider });
    const events = await eventsOf(server.url);
    expect(events.map(({ event, data }) => [event, data.error.code])).toEqual([['error', 'provider_failed']]);
    expect((await server.send('/v1/chat/c1')).status).toBe(404);
  });

  test('an invalid request gets the same status as without events', async () => {
    await using server = await AssistantServer.start([]);
    const { status, body } = await server.post({ messages: [] }, { accept: 'text/event-stream' });
    expect([status, body.error.code]).toEqual([400, 'invalid_request']);
  });

  test.each([
    ['text/event-stream', true],
    ['application/json, TEXT/event-stream;q=0.9', true],
    ['*/*', false],
    ['application/json', false],
    ['text/event-streams', false],
  ])('an Accept header of %j gives an event stream: %p', async (accept, isStream) => {
    await using server = await AssistantServer.start([{ content: 'Hello.' }]);
    const { headers } = await server.post(HI, { accept });
    expect(headers.get('content-type')?.startsWith('text/event-stream')).toBe(isStream);
  });

  test('comments keep the stream alive while the model thinks', async () => {
    const provider = new HaltingModel();
    await using server = await AssistantServer.start([], { provider, heartbeatMs: 5 });
    const headers = { 'content-type': 'application/json', accept: 'text/event-stream' };
    const response = await fetch(`${server.url}/v1/chat`, {
      method: 'POST',
      headers,
      body: JSON.stringify(HI),
    });
    let text = '';
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      if (text.includes(': still there\n\n')) provider.goOn.resolve();
    }
    expect(text).toMatch(/: still there\n\n[\s\S]*event: response\n/);
  });

  test('a heartbeat longer than the maximum of a timer sends no comments', async () => {
    const provider = new HaltingModel();
    await using server = await AssistantServer.start([], { provider, heartbeatMs: 2 ** 31 });
    const answer = server.post(HI, { accept: 'text/event-stream' });
    for (let times = 0; times < 20; times += 1) await server.send('/v1/chat/c1');
    provider.goOn.resolve();
    expect((await answer).body).not.toContain('still there');
  });

  test('a client that disconnects aborts the model request and leaves the conversation unchanged', async () => {
    const provider = new HaltingModel();
    await using server = await AssistantServer.start([], { provider });
    const leave = new AbortController();
    const events = postForEvents(server.url, HI, { signal: leave.signal });
    await events.next();
    leave.abort();
    await provider.aborted.promise;
    expect((await server.send('/v1/chat/c1')).status).toBe(404);
  });
});

describe('text is held back while it may become a tool request', () => {
  const piece = fc.oneof(fc.string(), fc.constantFrom(' ', '\n', '{', '"tool_request"', requestText('a')));

  test('any text in chunks of any size is sent completely, or not at all if it is a tool request', () => {
    fc.assert(
      fc.property(fc.array(piece), fc.boolean(), (pieces, comesWhole) => {
        const content = pieces.join('');
        let shown = '';
        const gate = new TextGate((text) => {
          shown += text;
        });
        for (const one of comesWhole ? [] : pieces) gate.push(one);
        if (parseToolRequest(content) !== undefined) return expect(shown).toBe('');
        gate.end(content);
        expect(shown).toBe(content);
      }),
      { examples: [[[' ', requestText('a')], false]] },
    );
  });
});
