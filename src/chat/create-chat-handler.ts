import { checkArguments } from '../errors/author-fault.js';
import { type NodeHandler, nodeListener } from '../kernel/node-http.js';
import { withMethods } from '../kernel/options.js';
import { type ChatHandlerOptions, type ReadChatOptions, readChatOptions } from './chat-options.js';
import { ChatService, knownFault } from './chat-service.js';
import { HttpFault } from './http-fault.js';

/** A chat over HTTP, for servers of the Web standard and for Node's. */
export interface ChatHandler {
  /** Answers a request; for Hono, Next, Bun, Deno and workers. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** A request listener, for `http` and Express. */
  readonly node: NodeHandler;
  /** Takes no more turns of the conversations that it has made, and resolves when those that run here have ended. */
  readonly close: () => Promise<void>;
}

/**
 * Chats of people with a model and tools, over HTTP; kept in `store`, or in `conversations` that are there. `POST` takes what `useChat` of the AI SDK
 * sends and answers with the turn as a stream; `GET …/{id}/stream` gives the rest of a turn, `DELETE` of the same
 * address ends it. Of a client's messages only its last words count, and answers to what is pending; a chat belongs
 * to whoever began it. `docs/chat.md` has the statuses.
 *
 * @example
 * ```ts
 * const store = new SqliteRunStore({ path: 'chats.sqlite' });
 * const authenticate = (request: Request) => request.headers.get('x-user');
 * const chat = createChatHandler({ provider, model: 'gpt-5', tools, store, authenticate });
 * createServer(chat.node).listen(8080);
 * ```
 *
 * @throws InvalidOptionsError (521) for options that are wrong.
 */
export function createChatHandler(options: ChatHandlerOptions): ChatHandler {
  const read = readChatOptions(options);
  const service = new ChatService(read);
  const fetch = async (request: Request): Promise<Response> => {
    checkArguments({
      of: 'the handler of createChatHandler',
      given: { request },
      rules: { request: REQUEST },
    });
    return service.answer(request).catch((thrown: unknown) => faultOf(thrown, read).response);
  };
  return { fetch, node: nodeListener(fetch), close: async () => read.own?.close() };
}

const REQUEST = withMethods(['text'], 'a Request of the Web; Node’s http takes the handler’s `node`');

function faultOf(thrown: unknown, { logger }: ReadChatOptions): HttpFault {
  const known = knownFault(thrown);
  if (known === undefined) logger?.error('A chat request failed', { error: thrown });
  return known ?? new HttpFault(500, 'The request failed.');
}
