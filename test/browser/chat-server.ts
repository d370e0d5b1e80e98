import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Conversations, defineTool, type LLMProvider } from 'toolwright';
import { createChatHandler } from 'toolwright/chat';
import { MemoryRunStore } from 'toolwright/stores';
import { bundlePage, htmlOf, isPage } from '../../examples/chat/bundle-page.js';

/** A server for the pages of examples/chat, with a model whose replies the user message determines. */
export interface ChatServer {
  readonly url: string;
  readonly conversations: Conversations;
  /** The arguments of the executed calls, in order. */
  readonly executed: readonly unknown[];
  /** Continues the reply to `slowly`, which waits after its first half. */
  resume(): void;
  close(): Promise<void>;
}

const PARAMETERS = {
  type: 'object',
  properties: { item: { type: 'string' }, quantity: { type: 'integer', minimum: 1, default: 1 } },
} as const;

/** `call a b` calls the tools a and b, `slowly` has a reply in two halves, and other messages are repeated. */
function commandProvider(waitForGate: () => Promise<void>): LLMProvider {
  let replies = 0;
  return {
    chat: () => Promise.reject(new Error('only streams')),
    async *stream({ messages, signal }) {
      const last = messages.at(-1);
      const text = String(last?.content);
      const names = last?.role === 'user' && text.startsWith('call ') ? text.slice(5).split(' ') : [];
      const toolCalls = names.map((name, index) => ({
        id: `call_${index}`,
        name,
        arguments: { item: 'lamp' },
      }));
      for (const { id: callId, name: tool } of toolCalls) {
        yield { type: 'call-input-start', callId, tool };
        yield { type: 'call-input-delta', callId, text: '{"item":"lamp"}' };
        yield { type: 'call-input-end', callId };
      }
      if (text === 'slowly') {
        yield { type: 'text-delta', text: 'The first half' };
        const aborted = new Promise((_, reject) =>
          signal?.addEventListener('abort', () => reject(signal.reason)),
        );
        await Promise.race([waitForGate(), aborted]);
        yield { type: 'text-delta', text: ', and the second' };
      }
      replies += 1;
      const reply = text === 'slowly' ? 'The first half, and the second' : `reply ${replies}: ${text}`;
      const content = names.length > 0 ? '' : reply;
      if (content && text !== 'slowly') yield { type: 'text-delta', text: content };
      yield { type: 'response', response: { content, toolCalls, finishReason: 'stop' } };
    },
  };
}

/** Starts a server on loopback. The user is the authorization header of the page. */
export async function openChatServer(): Promise<ChatServer> {
  let gate = Promise.withResolvers<void>();
  const executed: unknown[] = [];
  const tools = [
    defineTool({
      name: 'place_order',
      description: 'Places an order',
      parameters: PARAMETERS,
      approval: true,
      execute: ({ item, quantity }) => {
        executed.push({ item, quantity });
        return `placed ${quantity} ${item}`;
      },
    }),
    defineTool({
      name: 'wrap_order',
      description: 'Wraps an order',
      execute: async (_args, context) => {
        const colour = await context.ask({ message: 'Which colour?', schema: { type: 'string' } });
        return `wrapped in ${colour}`;
      },
    }),
    defineTool({ name: 'where_am_i', description: 'The time zone', execution: 'client' }),
  ];
  const conversations = new Conversations({
    store: new MemoryRunStore(),
    config: { provider: commandProvider(() => gate.promise), model: 'm', tools },
  });
  const authenticate = ({ headers }: Request) => headers.get('authorization');
  const chat = createChatHandler({ conversations, authenticate });
  const agent = createChatHandler({ conversations, authenticate, protocol: 'ag-ui' });
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    if (pathname.startsWith('/api/chat')) return chat.node(request, response);
    if (pathname.startsWith('/api/agent')) return agent.node(request, response);
    void renderPage(pathname).then(([type, body]) => response.setHeader('content-type', type).end(body));
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    conversations,
    executed,
    resume() {
      gate.resolve();
      gate = Promise.withResolvers();
    },
    async close() {
      gate.resolve();
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
      await conversations.close();
    },
  };
}

async function renderPage(pathname: string): Promise<readonly [string, string]> {
  const [, script] = /^\/pages\/(.+)\.js$/.exec(pathname) ?? [];
  if (script !== undefined && isPage(script)) return ['text/javascript', await bundlePage(script)];
  const name = pathname.slice(1);
  return ['text/html; charset=utf-8', isPage(name) ? htmlOf(name) : ''];
}
