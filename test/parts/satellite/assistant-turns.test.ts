import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import type { LLMProvider, LLMRequest, LLMResponse } from 'toolwright';
import { MemoryConversationStore, SqliteConversationStore } from 'toolwright/satellite';
import { AssistantServer, requestText, toolResult } from './assistant-server.js';

/** A model that answers on command and whose requests can be awaited. */
class PatientModel implements LLMProvider {
  readonly requests: LLMRequest[] = [];
  readonly #answers: ((content: string) => void)[] = [];
  #asked = Promise.withResolvers<void>();

  chat(request: LLMRequest): Promise<LLMResponse> {
    this.requests.push(request);
    const { promise, resolve } = Promise.withResolvers<LLMResponse>();
    this.#answers.push((content) => resolve({ content, toolCalls: [], finishReason: 'stop' }));
    this.#asked.resolve();
    return promise;
  }

  /** Waits until the model has received this many requests. */
  async asked(times: number): Promise<void> {
    while (this.requests.length < times) {
      await this.#asked.promise;
      this.#asked = Promise.withResolvers<void>();
    }
  }

  /** Answers the oldest waiting request. */
  answer(content: string): void {
    this.#answers.shift()?.(content);
  }
}

describe('two concurrent requests of one conversation', () => {
  test('run in sequence: the second sees the result of the first', async () => {
    const provider = new PatientModel();
    await using server = await AssistantServer.start([], { provider });
    const first = server.say('c1', 'One');
    await provider.asked(1);
    const second = server.say('c1', 'Two');
    const other = server.say('c2', 'Other');
    await provider.asked(2);
    expect(provider.requests[1]?.messages).toEqual([{ role: 'user', content: 'Other' }]);
    provider.answer('1');
    expect((await first).body.message.content).toBe('1');
    await provider.asked(3);
    provider.answer('o');
    provider.answer('2');
    expect([(await other).body.message.content, (await second).body.message.content]).toEqual(['o', '2']);
    expect(provider.requests[2]?.messages.map(({ content }) => content)).toEqual(['One', '1', 'Two']);
  });

  test('a client that disconnects while waiting is skipped, and later requests stay in order', async () => {
    const provider = new PatientModel();
    await using server = await AssistantServer.start([], { provider });
    const first = server.say('c1', 'One');
    await provider.asked(1);
    const leave = new AbortController();
    const body = JSON.stringify({ conversation_id: 'c1', messages: [{ role: 'user', content: 'Gone' }] });
    const headers = { 'content-type': 'application/json' };
    const gone = server.send('/v1/chat', { method: 'POST', headers, body, signal: leave.signal });
    const third = server.say('c1', 'Three');
    leave.abort();
    await expect(gone).rejects.toThrow();
    provider.answer('1');
    await first;
    await provider.asked(2);
    provider.answer('3');
    expect((await third).body.message.content).toBe('3');
    expect(provider.requests[1]?.messages.map(({ content }) => content)).toEqual(['One', '1', 'Three']);
  });

  test('the second of two results for one request is an orphan', async () => {
    await using server = await AssistantServer.start([{ content: requestText('a') }, { content: 'Done.' }]);
    await server.say('c1', 'Go');
    const answers = await Promise.all([server.say('c1', toolResult('x')), server.say('c1', toolResult('y'))]);
    expect(answers.map(({ status, body }) => [status, body.message.content])).toEqual([
      [200, 'Done.'],
      [200, 'Done.'],
    ]);
    expect(server.histories).toHaveLength(2);
  });

  test('if two processes share a file, the first one wins and the other gets 409', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'turns-'));
    const file = join(folder, 'conversations.db');
    {
      using one = new SqliteConversationStore({ path: file });
      using other = new SqliteConversationStore({ path: file });
      const [slow, fast] = [new PatientModel(), new PatientModel()];
      await using first = await AssistantServer.start([], { provider: slow, store: one });
      await using second = await AssistantServer.start([], { provider: fast, store: other });
      const overtaken = first.say('c1', 'One');
      await slow.asked(1);
      const winner = second.say('c1', 'Two');
      await fast.asked(1);
      fast.answer('2');
      expect((await winner).status).toBe(200);
      slow.answer('1');
      const { status, body } = await overtaken;
      expect([status, body.error.code]).toEqual([409, 'conflict']);
      expect((await first.send('/v1/chat/c1')).body.message.content).toBe('2');
    }
    rmSync(folder, { recursive: true });
  });
});

describe('a client that disconnects', () => {
  test('aborts the model request, even if the model ignores it, and nothing is logged', async () => {
    const provider = new PatientModel();
    const logged: string[] = [];
    const log = (message: string): void => void logged.push(message);
    const logger = { debug: log, info: log, warn: log, error: log };
    await using server = await AssistantServer.start([], { provider, logger });
    const leave = new AbortController();
    const options = {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ conversation_id: 'c1', messages: [{ role: 'user', content: 'Hi' }] }),
      signal: leave.signal,
    };
    const gone = server.send('/v1/chat', options);
    await provider.asked(1);
    const { signal } = provider.requests[0]!;
    const aborted = new Promise((done) => signal?.addEventListener('abort', done));
    leave.abort();
    await expect(gone).rejects.toThrow();
    await aborted;
    const next = server.say('c1', 'Again');
    await provider.asked(2);
    provider.answer('too late');
    provider.answer('Hello.');
    expect((await next).body.message.content).toBe('Hello.');
    expect([provider.requests[1]?.messages, logged]).toEqual([[{ role: 'user', content: 'Again' }], []]);
  });
});

describe('the turn id', () => {
  const key = { 'idempotency-key': 'k1' };
  const body = { conversation_id: 'c1', messages: [{ role: 'user', content: 'Hi' }] };

  test('a repeated request gets the same reply without a second model request', async () => {
    await using server = await AssistantServer.start([{ content: 'Hello.' }]);
    const first = await server.post(body, key);
    const again = await server.post(body, key);
    expect(again.body).toEqual(first.body);
    expect([first, again].map(({ headers }) => headers.get('etag'))).toEqual(['"k1"', '"k1"']);
    expect(server.histories).toHaveLength(1);
  });

  test('a repeated result gets the same reply, also as events', async () => {
    await using server = await AssistantServer.start([
      { content: requestText('a') },
      { content: requestText('b') },
    ]);
    await server.say('c1', 'Go');
    const result = { conversation_id: 'c1', messages: [toolResult('1')] };
    const first = await server.post(result, key);
    const again = await server.post(result, key);
    expect([again.body, again.body.tool_request.name]).toEqual([first.body, 'b']);
    const events = await server.post(result, { ...key, accept: 'text/event-stream' });
    expect(events.body).toContain('id: k1\n');
    expect(server.histories).toHaveLength(2);
  });

  test('a repeated request gets the same reply after a restart of the server', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'turns-'));
    const path = join(folder, 'conversations.db');
    {
      using store = new SqliteConversationStore({ path });
      await using server = await AssistantServer.start([{ content: requestText('a') }], { store });
      await server.post(body, key);
    }
    {
      using store = new SqliteConversationStore({ path });
      await using server = await AssistantServer.start([], { store });
      expect((await server.post(body, key)).body.tool_request.name).toBe('a');
    }
    rmSync(folder, { recursive: true });
  });

  test('a request whose first attempt failed is retried', async () => {
    await using server = await AssistantServer.start([new Error('down'), { content: 'Hello.' }]);
    expect((await server.post(body, key)).status).toBe(502);
    expect((await server.post(body, key)).body.message.content).toBe('Hello.');
  });

  test('If-Match: an answer to an earlier turn is refused', async () => {
    await using server = await AssistantServer.start([
      { content: requestText('a') },
      { content: requestText('b') },
    ]);
    const { headers } = await server.say('c1', 'Go');
    const result = { conversation_id: 'c1', messages: [toolResult('1')] };
    const match = { 'if-match': headers.get('etag')! };
    expect((await server.post(result, match)).body.tool_request.name).toBe('b');
    const late = await server.post(result, match);
    expect([late.status, late.body.error.code]).toEqual([412, 'conversation_changed']);
    expect((await server.send('/v1/chat/c1')).body.tool_request.name).toBe('b');
  });

  test('If-Match: an expired conversation is not started again', async () => {
    let time = 0;
    const store = new MemoryConversationStore({ expiresAfterMs: 10, now: () => time });
    await using server = await AssistantServer.start([{ content: requestText('a') }], { store });
    const { headers } = await server.say('c1', 'Go');
    time = 10;
    const match = { 'if-match': headers.get('etag')! };
    const late = await server.post({ conversation_id: 'c1', messages: [toolResult('1')] }, match);
    expect(late.status).toBe(412);
  });

  test.each([
    ['idempotency-key', 'a b'],
    ['idempotency-key', ''],
    ['if-match', 'W/"a"'],
    ['if-match', '*'],
  ])('%s %j is refused', async (name, value) => {
    await using server = await AssistantServer.start([]);
    expect((await server.post(body, { [name]: value })).status).toBe(400);
  });

  test('two processes that get the same request store one turn', async () => {
    const store = new MemoryConversationStore();
    const [one, two] = [new PatientModel(), new PatientModel()];
    await using first = await AssistantServer.start([], { provider: one, store });
    await using second = await AssistantServer.start([], { provider: two, store });
    const answers = [first.post(body, key), second.post(body, key)];
    await Promise.all([one.asked(1), two.asked(1)]);
    one.answer('1');
    await answers[0];
    two.answer('2');
    const replies = await Promise.all(answers);
    expect(replies.map((answer) => answer.body.message.content)).toEqual(['1', '1']);
  });
});

describe('GET /v1/chat/{conversation_id}', () => {
  test('returns the last reply again, with the pending request', async () => {
    await using server = await AssistantServer.start([
      { content: requestText('a', { x: 1 }) },
      { content: 'Done.' },
    ]);
    const said = await server.say('a:b@c~1', 'Go');
    const path = `/v1/chat/${encodeURIComponent('a:b@c~1')}`;
    const pending = await server.send(path);
    expect([pending.body, pending.headers.get('etag')]).toEqual([said.body, said.headers.get('etag')]);
    const done = await server.say('a:b@c~1', toolResult('1'));
    expect((await server.send(path)).body).toEqual(done.body);
    expect(done.headers.get('cache-control')).toBe('no-store');
  });

  test('a conversation without an id gets a new id', async () => {
    await using server = await AssistantServer.start([{ content: 'a' }, { content: 'b' }, { content: 'c' }]);
    const messages = [{ role: 'user', content: 'Hi' }];
    const bodies = [{ messages }, { messages, conversation_id: null }];
    const answers = await Promise.all(bodies.map((one) => server.post(one)));
    const ids = answers.map((answer) => answer.body.conversation_id);
    expect(new Set(ids).size).toBe(2);
    expect(ids[0]).toMatch(/^[0-9a-f-]{36}$/);
    await server.say(ids[0], 'Again');
    expect(server.histories[2]).toHaveLength(3);
  });
});
