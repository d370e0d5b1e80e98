import { Chat } from '@ai-sdk/react';
import { afterEach, describe, expect, test } from '@jest/globals';
import {
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  type PrepareSendMessagesRequest,
  type UIMessage,
} from 'ai';
import { Conversations, type ConversationsConfig, defineTool, type LLMProvider } from 'toolwright';
import { createChatHandler } from 'toolwright/chat';
import { MemoryRunStore } from 'toolwright/stores';

// `useChat` without a page: its `Chat` with the default transport.

const opened: Conversations[] = [];
afterEach(async () => {
  for (const conversations of opened.splice(0)) await conversations.close();
});

/** Calls the tools that the user names after `call`; writes `slowly` in two halves; repeats everything else. */
function obedient(gate: Promise<void>): LLMProvider {
  return {
    chat: () => Promise.reject(new Error('only streams')),
    async *stream({ messages, signal }) {
      const last = messages.at(-1);
      const text = String(last?.content);
      const names = last?.role === 'user' && text.startsWith('call ') ? text.slice(5).split(' ') : [];
      const toolCalls = names.map((name, at) => ({ id: `c${at}`, name, arguments: { item: 'lamp' } }));
      const content = names.length > 0 ? '' : `heard: ${text}`;
      if (text === 'slowly') {
        yield { type: 'text-delta', text: 'heard: ' };
        const left = new Promise<never>((_, reject) =>
          signal?.addEventListener('abort', () => reject(signal.reason)),
        );
        await Promise.race([gate, left]);
        yield { type: 'text-delta', text };
      } else if (content !== '') yield { type: 'text-delta', text: content };
      yield { type: 'response', response: { content, toolCalls, finishReason: 'stop' } };
    },
  };
}

/** As docs/guides/chat.md has it. */
const lastMessage: PrepareSendMessagesRequest<UIMessage> = ({ id, messages, trigger, messageId, body }) => ({
  body: { ...body, id, messages: messages.slice(-1), trigger, messageId },
});

function start(config: Partial<ConversationsConfig> = {}) {
  const { promise: gate, resolve: goOn } = Promise.withResolvers<void>();
  const ran: unknown[] = [];
  const place = defineTool({
    name: 'place',
    description: 'Places',
    parameters: { type: 'object', properties: { item: { type: 'string' } } },
    approval: true,
    execute: ({ item }) => {
      ran.push(item);
      return `placed ${item}`;
    },
  });
  const locate = defineTool({ name: 'locate', description: 'Where', execution: 'client' });
  const show = defineTool({
    name: 'show',
    description: 'Shows',
    returnDirect: true,
    execute: () => 'A lamp.',
  });
  const wait = defineTool({
    name: 'wait',
    description: 'Waits',
    execute: (_, { signal }) => new Promise((_, reject) => signal.addEventListener('abort', reject)),
  });
  const conversations = new Conversations({
    store: new MemoryRunStore(),
    config: { provider: obedient(gate), model: 'm', tools: [place, locate, show, wait], ...config },
  });
  opened.push(conversations);
  const handler = createChatHandler({ conversations, authenticate: ({ headers }) => headers.get('x-user') });
  const headers = { 'x-user': 'u1' };
  const posted: number[] = [];
  const ask = (path: string, init: RequestInit = {}) =>
    handler.fetch(new Request(`http://localhost/api/chat${path}`, { headers, ...init }));
  const open = (messages: UIMessage[] = [], { sendsLast = false } = {}) => {
    const edits: Record<string, unknown> = {};
    const chat = new Chat({
      id: 'c1',
      messages,
      transport: new DefaultChatTransport({
        api: 'http://localhost/api/chat',
        headers,
        body: () => ({ edits }),
        ...(sendsLast && { prepareSendMessagesRequest: lastMessage }),
        fetch: async (url, init) => {
          const response = await handler.fetch(new Request(url as string, init));
          if (init?.method === 'POST') posted.push(response.status);
          return response;
        },
      }),
      sendAutomaticallyWhen: (given) =>
        lastAssistantMessageIsCompleteWithApprovalResponses(given) ||
        lastAssistantMessageIsCompleteWithToolCalls(given),
      onToolCall({ toolCall: { toolName, toolCallId } }) {
        if (toolName === 'locate') void chat.addToolOutput({ tool: toolName, toolCallId, output: 'Bonn' });
      },
    });
    return { chat, edits };
  };
  return { ran, conversations, open, ask, goOn, posted };
}

const partsOf = (chat: Chat<UIMessage>) => (chat.lastMessage?.parts ?? []) as readonly Part[];
interface Part {
  readonly type: string;
  readonly state?: string;
  readonly text?: string;
  readonly output?: unknown;
  readonly approval?: { readonly id: string };
}
const approvalsIn = (chat: Chat<UIMessage>) =>
  partsOf(chat).flatMap(({ state, approval }) =>
    state === 'approval-requested' && approval ? [approval.id] : [],
  );

/** Resolves when the last text starts with this and the chat has stopped reading. */
async function hears(chat: Chat<UIMessage>, text: string): Promise<void> {
  while (chat.status !== 'ready' || !partsOf(chat).some((part) => part.text?.startsWith(text))) {
    if (chat.error) throw chat.error;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

describe('createChatHandler with the Chat of useChat', () => {
  test.each([
    ['the whole chat', false],
    ['only the last message', true],
  ])(
    'supports approvals, refusals, edits, client tools and repetitions if it sends %s',
    async (_, sendsLast) => {
      const { open, ran, ask } = start();
      const { chat, edits } = open([], { sendsLast });
      await chat.sendMessage({ text: 'call place' });
      await chat.addToolApprovalResponse({ id: String(approvalsIn(chat)[0]), approved: true });
      await hears(chat, 'heard: placed lamp');
      await chat.sendMessage({ text: 'call place' });
      const id = String(approvalsIn(chat)[0]);
      await chat.addToolApprovalResponse({ id, approved: false, reason: 'No lamps' });
      await hears(chat, 'heard: ');
      const refused = expect.objectContaining({ id, approved: false, reason: 'No lamps' });
      const part = expect.objectContaining({ state: 'output-denied', approval: refused });
      expect(partsOf(chat)).toContainEqual(part);
      const stored = (await (await ask('/c1/messages')).json()) as UIMessage[];
      expect(stored.at(-1)?.parts).toContainEqual(part);
      await chat.sendMessage({ text: 'call place' });
      const [edited = ''] = approvalsIn(chat);
      edits[edited] = { item: 'vase' };
      await chat.addToolApprovalResponse({ id: edited, approved: true });
      await hears(chat, 'heard: placed vase');
      expect(ran).toEqual(['lamp', 'vase']);
      delete edits[edited];
      await chat.sendMessage({ text: 'call locate' });
      await hears(chat, 'heard: Bonn');
      await chat.sendMessage({ text: 'Hello' });
      const { id: messageId = '' } = chat.messages.at(-2) ?? {};
      await chat.sendMessage({ messageId, text: 'Good day' });
      await hears(chat, 'heard: Good day');
      await chat.regenerate();
      await hears(chat, 'heard: Good day');
      expect(chat.messages).toHaveLength(10);
    },
  );

  test('accepts parallel approvals of one message, each separately', async () => {
    const { open, ran } = start();
    const { chat } = open();
    await chat.sendMessage({ text: 'call place place' });
    const [first = '', second = ''] = approvalsIn(chat);
    await chat.addToolApprovalResponse({ id: first, approved: false });
    expect(ran).toEqual([]);
    await chat.addToolApprovalResponse({ id: second, approved: true });
    await hears(chat, 'heard: placed lamp');
    expect(ran).toEqual(['lamp']);
    expect(partsOf(chat).map(({ state }) => state)).toContain('output-denied');
  });

  test('sends the history and the rest of the open turn to a chat that is reloaded in the middle', async () => {
    const { open, ask, goOn } = start();
    const { chat } = open();
    void chat.sendMessage({ text: 'slowly' });
    while (!partsOf(chat).some(({ text }) => text === 'heard: '))
      await new Promise((next) => setTimeout(next, 5));
    await chat.stop();
    const { chat: again } = open((await (await ask('/c1/messages')).json()) as UIMessage[]);
    const rest = again.resumeStream();
    goOn();
    await rest;
    await hears(again, 'heard: slowly');
    expect(again.messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
  });

  test('ends an aborted turn, and accepts the next one', async () => {
    const { open, ask, conversations } = start();
    const { chat } = open();
    const sent = chat.sendMessage({ text: 'slowly' });
    while (!partsOf(chat).some(({ text }) => text === 'heard: '))
      await new Promise((next) => setTimeout(next, 5));
    await ask('?id=c1', { method: 'DELETE' });
    await sent;
    expect((await conversations.idle('c1'))?.status).toBe('idle');
    await chat.sendMessage({ text: 'Hello again' });
    await hears(chat, 'heard: Hello again');
  });

  test.each([
    ['returns its result directly', 'call show', {}],
    ['is the last before the limit', 'call place', { maxIterations: 1, policy: () => false }],
    ['is aborted', 'call wait', {}],
  ])('sends nothing again after a turn whose last call %s', async (_, text, config) => {
    const { open, ask, posted } = start(config);
    const { chat } = open();
    const sent = chat.sendMessage({ text });
    while (!partsOf(chat).some(({ type }) => type.startsWith('tool-')))
      await new Promise((next) => setTimeout(next, 5));
    if (text === 'call wait') await ask('?id=c1', { method: 'DELETE' });
    await sent;
    expect(posted).toEqual([200]);
    expect(chat.status).toBe('ready');
    // The same after a reload.
    const { chat: again } = open((await (await ask('/c1/messages')).json()) as UIMessage[]);
    expect(lastAssistantMessageIsCompleteWithToolCalls(again)).toBe(false);
  });
});
