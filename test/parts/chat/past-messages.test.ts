import { afterEach, describe, expect, test } from '@jest/globals';
import type { UIMessage } from 'ai';
import { Conversations, defineTool, type LLMProvider, type LLMRequest, ProviderError } from 'toolwright';
import { createChatHandler } from 'toolwright/chat';
import { MemoryRunStore } from 'toolwright/stores';
import { serve } from '../../setup/loopback.js';
import { chatOf, readMessage, said } from './chat-reader.js';
import { hangingModel } from './hanging-model.js';

const opened: Conversations[] = [];
afterEach(async () => {
  for (const conversations of opened.splice(0)) await conversations.close();
});

/** Numbers its answers, so that no two are the same; `call look` makes a call. */
function countingProvider(asked: LLMRequest[]): LLMProvider {
  return {
    async chat(request) {
      asked.push(request);
      const last = request.messages.at(-1);
      const isCall = last?.role === 'user' && String(last.content).startsWith('call ');
      const toolCalls = isCall ? [{ id: 'a', name: String(last.content).slice(5), arguments: { n: 1 } }] : [];
      return { content: isCall ? 'Let me see.' : `answer ${asked.length}`, toolCalls, finishReason: 'stop' };
    },
  };
}

function start() {
  const asked: LLMRequest[] = [];
  const store = new MemoryRunStore();
  const tools = [
    defineTool({ name: 'look', description: 'Looks', execute: () => ({ seen: 'a lamp' }) }),
    defineTool({ name: 'place', description: 'Places', approval: true, execute: () => 'placed' }),
  ];
  const conversations = new Conversations({
    store,
    config: { provider: countingProvider(asked), model: 'm', tools },
  });
  opened.push(conversations);
  const handler = createChatHandler({
    conversations,
    authenticate: ({ headers }) => headers.get('x-user'),
  });
  const chat = chatOf(handler);
  const history = async (id = 'c1'): Promise<readonly UIMessage[]> => {
    const request = new Request(`http://localhost/api/chat/${id}/messages`, { headers: { 'x-user': 'u1' } });
    return (await handler.fetch(request)).json() as Promise<readonly UIMessage[]>;
  };
  const say = async (message: UIMessage, more: object = {}) =>
    readMessage(await chat.post({ id: 'c1', messages: [message], ...more }));
  return { asked, store, conversations, chat, history, say };
}

const textsOf = (messages: readonly UIMessage[]) =>
  messages.map(({ parts }) => parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join(' '));

describe('createChatHandler', () => {
  test('`regenerate-message` removes the history from the message on, and the model answers again', async () => {
    const { asked, history, chat, say } = start();
    await say(said('One', 'm1'));
    const second = await say(said('Two', 'm2'));
    await say(said('Three', 'm3'));
    const ask = { id: 'c1', trigger: 'regenerate-message', messageId: second.message?.id, messages: [] };
    const { message, violations } = await readMessage(await chat.post(ask));
    expect(violations).toEqual([]);
    expect(textsOf([message as UIMessage])).toEqual(['answer 4']);
    expect(asked.at(-1)?.messages).toEqual([
      { role: 'user', content: 'One' },
      { role: 'assistant', content: 'answer 1' },
      { role: 'user', content: 'Two' },
    ]);
    expect((await history()).map(({ id }) => id)).toEqual(['m1', 'turn-1', 'm2', 'turn-4']);
    expect(textsOf(await history())).toEqual(['One', 'answer 1', 'Two', 'answer 4']);
    // Without an id it regenerates the last answer, and with a user message's id the answer to it.
    await readMessage(
      await chat.post({ id: 'c1', trigger: 'regenerate-message', messages: [said('Two', 'm2')] }),
    );
    expect(textsOf(await history())).toEqual(['One', 'answer 1', 'Two', 'answer 5']);
    await readMessage(await chat.post({ ...ask, messageId: 'm1' }));
    expect(textsOf(await history())).toEqual(['One', 'answer 6']);
  });

  test('an unknown message id is refused, and the history does not change', async () => {
    const { asked, chat, history, say } = start();
    await say(said('One', 'm1'));
    const regenerate = { id: 'c1', trigger: 'regenerate-message', messages: [] };
    const refused = [
      { ...regenerate, messageId: 'turn-7' },
      { ...regenerate, messageId: 'made-up' },
      regenerate,
      { id: 'c1', messageId: 'made-up', messages: [said('Edited', 'made-up')] },
      { ...regenerate, id: 'c2', messageId: 'turn-1' },
    ];
    for (const body of refused) expect((await chat.post(body)).status).toBe(422);
    expect(asked).toHaveLength(1);
    expect(textsOf(await history())).toEqual(['One', 'answer 1']);
  });

  test('a user message with an id in the server’s format is refused, so that ids stay unique', async () => {
    const { asked, chat, history, say } = start();
    await say(said('One', 'm1'));
    for (const id of ['turn-1', 'turn-2', 'turn-02', 'turn-1.1', 'turn-1.1.call_0']) {
      const refused = await chat.post({ id: 'c1', messages: [said('Two', id)] });
      expect([id, refused.status, await refused.text()]).toEqual([
        id,
        422,
        expect.stringContaining('begin with `turn-` and a number'),
      ]);
    }
    for (const id of ['turn-x', 'turn', 'my turn-1']) await say(said('Two', id));
    expect(asked).toHaveLength(4);
    const anew = { id: 'c1', trigger: 'regenerate-message', messageId: 'turn-1', messages: [] };
    await readMessage(await chat.post(anew));
    expect(textsOf(await history())).toEqual(['One', 'answer 5']);
  });

  test('a suspended chat refuses edited and regenerated messages', async () => {
    const { chat, say } = start();
    await say(said('One', 'm1'));
    await say(said('call place', 'm2'));
    const regenerate = { id: 'c1', trigger: 'regenerate-message', messageId: 'turn-1', messages: [] };
    expect((await chat.post(regenerate)).status).toBe(409);
    const edited = { id: 'c1', messageId: 'm1', messages: [said('Edited', 'm1')] };
    expect((await chat.post(edited)).status).toBe(409);
  });

  test('a chat refuses to edit or regenerate a message that is being answered or waits for its turn', async () => {
    const { provider, begun } = hangingModel();
    const conversations = new Conversations({
      store: new MemoryRunStore(),
      config: { provider, model: 'm' },
    });
    opened.push(conversations);
    const handler = createChatHandler({
      conversations,
      authenticate: ({ headers }) => headers.get('x-user'),
      mayAnswer: () => true,
    });
    await using server = await serve(handler.node);
    const post = (body: object, user = 'u1') =>
      fetch(server.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-user': user },
        body: JSON.stringify({ id: 'c1', ...body }),
      });
    const first = await post({ messages: [said('One', 'm1')] });
    await begun;
    const second = await post({ messages: [said('Two', 'm2')] });
    const regenerate = { trigger: 'regenerate-message', messages: [] };
    const refused = [
      { ...regenerate, messageId: 'turn-1' },
      { ...regenerate, messageId: 'm1' },
      { ...regenerate, messageId: 'm2' },
      { messageId: 'm1', messages: [said('Edited', 'm1')] },
      { messageId: 'm2', messages: [said('Edited', 'm2')] },
    ];
    for (const body of refused) {
      const response = await post(body);
      expect([response.status, await response.json()]).toEqual([
        409,
        { error: { message: expect.stringMatching(/still being answered/) } },
      ]);
    }
    const unknown = { ...regenerate, messageId: 'turn-2' };
    expect((await post(unknown)).status).toBe(422);
    // Another user, who may only answer, does not learn which messages exist.
    for (const body of [...refused, unknown]) expect((await post(body, 'clerk')).status).toBe(403);
    await Promise.all([first, second].map(({ body }) => body?.cancel()));
    await conversations.close({ timeoutMs: 0 });
  });

  test('an edited message replaces the original once, however often it is sent', async () => {
    const { asked, chat, history, say } = start();
    await say(said('One', 'm1'));
    await say(said('Two', 'm2'));
    const edited = { messageId: 'm1', messages: [said('One, but better', 'm1')] };
    const sent = await Promise.all(
      [1, 2].map(() => chat.post({ id: 'c1', ...edited }).then((reply) => readMessage(reply))),
    );
    expect(sent.flatMap(({ violations }) => violations)).toEqual([]);
    const again = await readMessage(await chat.post({ id: 'c1', ...edited }));
    expect(again.message).toEqual(sent[0]?.message);
    expect(asked).toHaveLength(3);
    expect(asked.at(-1)?.messages).toEqual([{ role: 'user', content: 'One, but better' }]);
    expect(textsOf(await history())).toEqual(['One, but better', 'answer 3']);
    // Editing it back is an edit like any other.
    await readMessage(await chat.post({ id: 'c1', messageId: 'm1', messages: [said('One', 'm1')] }));
    expect(textsOf(await history())).toEqual(['One', 'answer 4']);
  });

  test('a message that was already answered is not sent to the model again, even after its events were removed', async () => {
    const { asked, store, chat, say } = start();
    const first = await say(said('One', 'm1'));
    const again = await readMessage(await chat.post({ id: 'c1', messages: [said('One', 'm1')] }));
    expect(again.message).toEqual(first.message);
    expect(asked).toHaveLength(1);
    await store.conversations.removeEventsOlderThan(0);
    const gone = await readMessage(await chat.post({ id: 'c1', messages: [said('One', 'm1')] }));
    expect(gone).toMatchObject({ chunks: [], violations: [] });
    expect(asked).toHaveLength(1);
  });

  test('images and files of a message reach the model, and unsupported URLs are refused', async () => {
    const { asked, chat, history } = start();
    const image = { type: 'file', mediaType: 'image/png', url: 'data:image/png;base64,AAAA' } as const;
    const pdf = {
      type: 'file',
      mediaType: 'application/pdf',
      filename: 'a.pdf',
      url: 'data:application/pdf;base64,BB',
    } as const;
    const message: UIMessage = {
      id: 'm1',
      role: 'user',
      parts: [{ type: 'text', text: 'Look' }, image, pdf],
    };
    await readMessage(await chat.post({ id: 'c1', messages: [message] }));
    expect(asked[0]?.messages.at(-1)?.content).toEqual([
      { type: 'text', text: 'Look' },
      { type: 'image_url', image_url: { url: image.url } },
      { type: 'file', file: { filename: 'a.pdf', file_data: pdf.url } },
    ]);
    expect((await history())[0]).toEqual(message);
    const odd = { ...image, url: 'file:///etc/passwd' };
    const far = { ...pdf, url: 'https://example.com/a.pdf' };
    for (const part of [odd, far])
      expect(
        (await chat.post({ id: 'c1', messages: [{ id: 'm2', role: 'user', parts: [part] }] })).status,
      ).toBe(422);
  });

  test('GET …/messages returns what useChat had, and GET …/stream the open turn', async () => {
    const { store, chat, history, say } = start();
    const live = [said('call look', 'm1'), (await say(said('call look', 'm1'))).message];
    expect(await history()).toEqual(JSON.parse(JSON.stringify(live)));
    const waiting = await say(said('call place', 'm2'));
    expect((await history()).map(({ id }) => id)).toEqual(['m1', 'turn-1', 'm2']);
    expect((await readMessage(await chat.get('c1'))).message).toEqual(waiting.message);
    await store.conversations.removeEventsOlderThan(0);
    // Without the events, it is unknown whether the results of tools were meant for the user.
    expect(textsOf(await history())).toEqual(['call look', 'Let me see. answer 2', 'call place']);
    expect(JSON.stringify(await history())).not.toContain('a lamp');
    expect(await history('c2')).toEqual([]);
  });
});

test.each(['ui-messages', 'ag-ui'] as const)(
  '%s shows no call of the tool that gives the data of `output`',
  async (protocol) => {
    const replies = [{ n: 'five' }, { n: 5 }];
    const provider: LLMProvider = {
      chat: () => Promise.reject(new Error('only streams')),
      async *stream() {
        const answer = replies.shift() ?? {};
        yield { type: 'call-input-start', callId: 'f', tool: 'final_answer' };
        yield { type: 'call-input-delta', callId: 'f', text: JSON.stringify(answer) };
        yield { type: 'call-input-end', callId: 'f' };
        const toolCalls = [{ id: 'f', name: 'final_answer', arguments: answer }];
        yield { type: 'response', response: { content: '', toolCalls, finishReason: 'tool_calls' } };
      },
    };
    const output = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] } as const;
    const config = { provider, model: 'm', output, store: new MemoryRunStore(), protocol };
    const handler = createChatHandler({ ...config, authenticate: () => 'u1' });
    const chat = chatOf(handler);
    const body =
      protocol === 'ui-messages'
        ? { id: 'c1', messages: [said('Count')] }
        : { threadId: 'c1', runId: 'r1', messages: [{ id: 'm1', role: 'user', content: 'Count' }] };
    const shown = await (await chat.post(body)).text();
    expect(shown).toContain('{"n":5}');
    const history = await (await chat.get('c1', {}, 'messages')).text();
    expect(shown + history).not.toMatch(/final_answer|not executed/);
    await handler.close();
  },
);

test('a chat goes on after a message with a file that the provider of its model refuses', async () => {
  const sent: string[] = [];
  const provider: LLMProvider = {
    async chat({ messages }) {
      const text = JSON.stringify(messages);
      if (text.includes('data:application/zip')) throw new ProviderError('no zip', { retryable: false });
      sent.push(text);
      return { content: 'Hello', toolCalls: [], finishReason: 'stop' };
    },
  };
  const store = new MemoryRunStore();
  const handler = createChatHandler({ provider, model: 'm', store, authenticate: () => 'u1' });
  const chat = chatOf(handler);
  const file = { type: 'file', mediaType: 'application/zip', url: 'data:application/zip;base64,UEsDBA==' };
  const message = { ...said('Look', 'm1'), parts: [{ type: 'text', text: 'Look' }, file] };
  expect(await (await chat.post({ id: 'c1', messages: [message] })).text()).toContain('refused the message');
  const { message: reply } = await readMessage(
    await chat.post({ id: 'c1', messages: [said('Go on', 'm2')] }),
  );
  expect(reply?.parts).toContainEqual(expect.objectContaining({ type: 'text', text: 'Hello' }));
  expect(sent).toEqual([expect.stringMatching(/Look.*A file of the user was left out.*Go on/)]);
  // The user still sees the file, and may send the message again with another model.
  const history = (await (await chat.get('c1', {}, 'messages')).json()) as readonly UIMessage[];
  expect(history[0]?.parts).toContainEqual(expect.objectContaining({ url: file.url }));
  await handler.close();
});
