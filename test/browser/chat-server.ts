import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Conversations, defineTool, type LLMProvider } from 'toolwright';
import { createChatHandler } from 'toolwright/chat';
import { MemoryRunStore } from 'toolwright/stores';
import { bundlePage, htmlOf, isPage } from '../../examples/chat/bundle-page.js';

/** The pages of examples/chat, over a model that does what it is told. */
export interface ChatServer {
  readonly url: string;
  readonly conversations: Conversations;
  /** What the tools were given, in order. */
  readonly ran: readonly unknown[];
  /** Lets a reply that hangs in its middle go on. */
  goOn(): void;
  close(): Promise<void>;
}

const PARAMETERS = {
  type: 'object',
  properties: { item: { type: 'string' }, quantity: { type: 'integer', minimum: 1, default: 1 } },
} as const;

/** `call a b` makes calls of a and b; `slowly` is answered in two halves; all else is repeated. */
function obedientProvider(gate: () => Promise<void>): LLMProvider {
  let answers = 0;
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
        const left = new Promise((_, reject) =>
          signal?.addEventListener('abort', () => reject(signal.reason)),
        );
        await Promise.race([gate(), left]);
        yield { type: 'text-delta', text: ', and the second' };
      }
      answers += 1;
      const said = text === 'slowly' ? 'The first half, and the second' : `heard ${answers}: ${text}`;
      const content = names.length > 0 ? '' : said;
      if (content && text !== 'slowly') yield { type: 'text-delta', text: content };
      yield { type: 'response', response: { content, toolCalls, finishReason: 'stop' } };
    },
  };
}

/** Opens a real server on loopback; users are those that the pages name. */
export async function openChatServer(): Promise<ChatServer> {
  let opened = Promise.withResolvers<void>();
  const ran: unknown[] = [];
  const tools = [
    defineTool({
      name: 'place_order',
      description: 'Places an order',
      parameters: PARAMETERS,
      approval: true,
      execute: ({ item, quantity }) => {
        ran.push({ item, quantity });
        return `placed ${quantity} ${item}`;
      },
    }),
    defineTool({
      name: 'wrap_order',
      description: 'Wraps it',
      execute: async (_args, context) => {
        const colour = await context.ask({ message: 'Which colour?', schema: { type: 'string' } });
        return `wrapped in ${colour}`;
      },
    }),
    defineTool({ name: 'where_am_i', description: 'The time zone', execution: 'client' }),
  ];
  const conversations = new Conversations({
    store: new MemoryRunStore(),
    config: { provider: obedientProvider(() => opened.promise), model: 'm', tools },
  });
  const authenticate = ({ headers }: Request) => headers.get('authorization');
  const chat = createChatHandler({ conversations, authenticate });
  const agent = createChatHandler({ conversations, authenticate, protocol: 'ag-ui' });
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    if (pathname.startsWith('/api/chat')) return chat.node(request, response);
    if (pathname.startsWith('/api/agent')) return agent.node(request, response);
    void showPage(pathname).then(([type, body]) => response.setHeader('content-type', type).end(body));
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    conversations,
    ran,
    goOn() {
      opened.resolve();
      opened = Promise.withResolvers();
    },
    async close() {
      opened.resolve();
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
      await conversations.close();
    },
  };
}

async function showPage(pathname: string): Promise<readonly [string, string]> {
  const [, script] = /^\/pages\/(.+)\.js$/.exec(pathname) ?? [];
  if (script !== undefined && isPage(script)) return ['text/javascript', await bundlePage(script)];
  const name = pathname.slice(1);
  return ['text/html; charset=utf-8', isPage(name) ? htmlOf(name) : ''];
}
