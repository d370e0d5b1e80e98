import { Chat } from '@ai-sdk/react';
import { afterEach, expect, test } from '@jest/globals';
import {
  DefaultChatTransport,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  type UIMessage,
} from 'ai';
import { Conversations, defineTool, type LLMProvider, type ToolContext } from 'toolwright';
import { createChatHandler } from 'toolwright/chat';
import { MemoryRunStore } from 'toolwright/stores';

// What `useChat` shows for a call that is approved and has not ended.

const LEASE = 60_000;
const NEVER = new Promise<never>(() => {});

const opened: Conversations[] = [];
afterEach(async () => {
  for (const conversations of opened.splice(0)) await conversations.close({ timeoutMs: 0 });
});

/** Calls `pay` for each word of a prompt, and then repeats the results. */
const provider: LLMProvider = {
  async chat({ messages }) {
    const last = messages.at(-1);
    const words = last?.role === 'user' ? String(last.content).split(' ') : [];
    const toolCalls = words.map((_, index) => ({ id: `call_${index}`, name: 'pay', arguments: {} }));
    return {
      content: toolCalls.length > 0 ? '' : `heard: ${last?.content}`,
      toolCalls,
      finishReason: 'stop',
    };
  },
};

class Shop {
  now = Date.now();
  posts = 0;
  readonly started = Promise.withResolvers<void>();
  readonly #store = new MemoryRunStore({ now: () => this.now });

  /** A process with the store, whose payments return what `pay` returns. */
  process(pay: (context: ToolContext) => unknown) {
    const tool = defineTool({
      name: 'pay',
      description: 'Pays',
      approval: true,
      execute: (_args, context) => {
        this.started.resolve();
        return pay(context);
      },
    });
    const limits = { toolTimeoutMs: Number.POSITIVE_INFINITY, maxConcurrency: 1 };
    const config = { provider, model: 'm', tools: [tool], ...limits };
    const conversations = new Conversations({ store: this.#store, config, leaseMs: LEASE, pollMs: 5 });
    opened.push(conversations);
    const { fetch } = createChatHandler({ conversations, authenticate: () => 'u1' });
    return { conversations, open: () => this.#open(fetch) };
  }

  /** The page after it was loaded. */
  async #open(fetch: (request: Request) => Promise<Response>): Promise<Chat<UIMessage>> {
    const past = await fetch(new Request('http://localhost/api/chat/c1/messages'));
    return new Chat<UIMessage>({
      id: 'c1',
      messages: (await past.json()) as UIMessage[],
      transport: new DefaultChatTransport({
        api: 'http://localhost/api/chat',
        fetch: (url, init) => {
          if (init?.method === 'POST') this.posts += 1;
          return fetch(new Request(url as string, init));
        },
      }),
      sendAutomaticallyWhen: (page) =>
        lastAssistantMessageIsCompleteWithApprovalResponses(page) ||
        lastAssistantMessageIsCompleteWithToolCalls(page),
    });
  }
}

/** The states of the calls, and what the page can approve. */
function callsIn(chat: Chat<UIMessage>) {
  const parts = chat.lastMessage?.parts.filter(isToolUIPart) ?? [];
  return parts.map(({ state, approval }) => ({ state, approval }));
}

function callIn(chat: Chat<UIMessage>) {
  return callsIn(chat)[0] ?? { state: undefined, approval: undefined };
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** Sends a prompt, and approves the call that it makes. */
async function approvePayment(chat: Chat<UIMessage>): Promise<void> {
  await chat.sendMessage({ text: 'Pay' });
  const { state, approval } = callIn(chat);
  expect(state).toBe('approval-requested');
  void chat.addToolApprovalResponse({ id: String(approval?.id), approved: true });
}

test('a page that is loaded while an approved call runs does not request the approval again', async () => {
  const shop = new Shop();
  const paid = Promise.withResolvers<string>();
  const { open } = shop.process(() => paid.promise);
  await approvePayment(await open());
  await shop.started.promise;
  const chat = await open();
  const read = chat.resumeStream();
  await until(() => callIn(chat).state === 'input-available' && callIn(chat).approval !== undefined);
  paid.resolve('paid');
  await read;
  expect(callIn(chat)).toMatchObject({ state: 'output-available', approval: { approved: true } });
  expect([shop.posts, chat.error]).toEqual([2, undefined]);
});

test('a page that is loaded while one of two approved calls runs requests no approval', async () => {
  const shop = new Shop();
  const paid = Promise.withResolvers<string>();
  const { open } = shop.process(() => paid.promise);
  const first = await open();
  await first.sendMessage({ text: 'Pay twice' });
  const [one, other] = callsIn(first).map(({ approval }) => ({ id: String(approval?.id), approved: true }));
  if (one) await first.addToolApprovalResponse(one);
  if (other) void first.addToolApprovalResponse(other);
  await shop.started.promise;
  const chat = await open();
  const read = chat.resumeStream();
  const areBack = () => callsIn(chat).filter((call) => call.state === 'input-available' && call.approval);
  await until(() => areBack().length === 2);
  paid.resolve('paid');
  await read;
  expect(callsIn(chat).map(({ state }) => state)).toEqual(['output-available', 'output-available']);
  expect([shop.posts, chat.error]).toEqual([2, undefined]);
});

test('a page sends no answer for an approved call whose process crashed', async () => {
  const shop = new Shop();
  await approvePayment(await shop.process(() => NEVER).open());
  await shop.started.promise;
  shop.now += LEASE;
  const { open, conversations } = shop.process(() => 'paid twice');
  await until(async () => (await conversations.snapshot('c1'))?.pending[0]?.kind === 'outcome');
  const chat = await open();
  await chat.resumeStream();
  expect(chat.lastMessage?.parts.at(-1)).toMatchObject({ type: 'data-outcome', data: { tool: 'pay' } });
  expect(callIn(chat).state).toBe('input-available');
  expect([shop.posts, chat.error]).toEqual([2, undefined]);
});

test('a page sends no answer for an approved call that asks a question', async () => {
  const shop = new Shop();
  const { open } = shop.process((context) => context.ask({ message: 'Which?', schema: { type: 'string' } }));
  const chat = await open();
  await approvePayment(chat);
  await until(() => chat.lastMessage?.parts.at(-1)?.type === 'data-question' && chat.status === 'ready');
  expect(callIn(chat).state).toBe('input-available');
  expect([shop.posts, chat.error]).toEqual([2, undefined]);
});

/** The page after its call has asked the first of two questions. */
async function openAsked(shop: Shop) {
  const { open } = shop.process(async (context) => {
    const log = await context.ask({ message: 'Delete the log?' });
    return `${log}, ${await context.ask({ message: 'Delete the database?' })}`;
  });
  const chat = await open();
  await approvePayment(chat);
  await until(() => questionsIn(chat).length === 1 && chat.status === 'ready');
  const part = chat.lastMessage?.parts.find(isToolUIPart);
  const answer = (output: string, page = chat) =>
    page.addToolOutput({
      tool: 'pay' as never,
      toolCallId: String(part?.toolCallId),
      output: output as never,
    });
  return { chat, open, answer };
}

function questionsIn({ lastMessage }: Chat<UIMessage>) {
  return lastMessage?.parts.filter(({ type }) => type === 'data-question') ?? [];
}

test('a page does not answer the second question of a call with the answer to the first', async () => {
  const shop = new Shop();
  const { chat, answer } = await openAsked(shop);
  void answer('yes');
  await until(() => questionsIn(chat).length === 2 && chat.status === 'ready');
  expect(callIn(chat).state).toBe('input-available');
  expect([shop.posts, chat.error]).toEqual([3, undefined]);
  void answer('no');
  await until(() => callIn(chat).state === 'output-available' && chat.status === 'ready' && shop.posts > 3);
  expect(chat.lastMessage?.parts.at(-1)).toMatchObject({ type: 'text', text: 'heard: yes, no' });
});

test('the answer of a second page to a question that was answered is not one to the next question', async () => {
  const shop = new Shop();
  const { chat, open, answer } = await openAsked(shop);
  const late = await open();
  await late.resumeStream();
  expect(questionsIn(late)).toHaveLength(1);
  void answer('yes');
  await until(() => questionsIn(chat).length === 2 && chat.status === 'ready');
  void answer('yes', late);
  await until(() => late.status === 'error');
  expect(late.error?.message).toContain('Nothing is waiting for these answers.');
  const now = await open();
  await now.resumeStream();
  expect([callIn(now).state, questionsIn(now).length]).toEqual(['input-available', 2]);
});
