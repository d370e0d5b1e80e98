import { checkArguments, checkOptions } from '../../errors/author-fault.js';
import { type NodeHandler, nodeListener } from '../../kernel/node-http.js';
import { FUNCTION, withMethods } from '../../kernel/options.js';
import { ASSISTANT_OPTIONS, type AssistantHandlerOptions } from './assistant-options.js';
import { HttpFault } from './chat-request.js';
import { ChatService } from './chat-service.js';
import { checkToken, corsHeaders, enforceRateLimit, preflightResponse } from './check-access.js';

/** Answers a request; rejects only what is no request. */
export type AssistantHandler = (request: Request) => Promise<Response>;

/**
 * The assistant's side of the tool_request protocol as a Web-standard handler, for Hono and every
 * server that takes such handlers; `toNodeHandler` mounts it in Node's `http`, Express and NestJS.
 *
 * `POST /v1/chat` takes a `ChatRequest` and gives a `ChatResponse`, or with `Accept: text/event-stream` events:
 * `text-delta`, then `response` or `error`. `GET /v1/chat/{conversation_id}` gives the last reply again. No tool
 * is ever executed here, and the model is asked once a request at most; it is the satellite that goes on.
 * Errors are a `ChatError` with a status; `docs/satellite.md` has the table.
 *
 * @throws InvalidOptionsError (521) where the options are wrong.
 *
 * @example
 * ```ts
 * const handler = createAssistantHandler({
 *   provider,
 *   model: 'gpt-5',
 *   systemPrompt: toolRequestPrompt(registry.toProviderDefs()),
 *   store: new SqliteConversationStore({ path: 'conversations.db' }),
 *   token: 'a-long-secret',
 * });
 * createServer(toNodeHandler(handler)).listen(8080);
 * ```
 */
export function createAssistantHandler(options: AssistantHandlerOptions): AssistantHandler {
  checkOptions(options, ASSISTANT_OPTIONS);
  const service = new ChatService(options);
  return async (request) => {
    checkArguments({
      of: 'the handler of createAssistantHandler',
      given: { request },
      rules: { request: REQUEST },
    });
    const response = await route(request, service, options).catch((thrown: unknown) => {
      const { status, body, headers } = service.faultOf(thrown, request);
      return Response.json(body, { status, headers: { 'cache-control': 'no-store', ...headers } });
    });
    for (const [name, value] of Object.entries(corsHeaders(request, options.cors)))
      response.headers.set(name, value);
    return response;
  };
}

const REQUEST = withMethods(
  ['text'],
  'a Request of the Web; in Node’s http, toNodeHandler(handler) makes one',
);

/**
 * Mounts a handler in Node's `http`, Express, Fastify or NestJS. The path is the whole one, also below an Express mount
 * point: give the handler its `basePath`. A body that a parser has already read is taken from `request.body`.
 *
 * @example
 * ```ts
 * const handler = createAssistantHandler({ provider, model });
 * createServer(toNodeHandler(handler)).listen(8080);
 * ```
 */
export function toNodeHandler(handler: AssistantHandler): NodeHandler {
  checkArguments({ of: 'toNodeHandler', given: { handler }, rules: { handler: HANDLER } });
  return nodeListener(handler);
}

const HANDLER = { ...FUNCTION, fix: 'createAssistantHandler({ provider, model })' };

async function route(
  request: Request,
  service: ChatService,
  { basePath = '', token, rateLimit, cors }: AssistantHandlerOptions,
): Promise<Response> {
  const { pathname } = new URL(request.url);
  const path = pathname.startsWith(`${basePath}/`) ? pathname.slice(basePath.length) : '';
  const [, id] = /^\/v1\/chat(?:\/([^/]+))?$/.exec(path) ?? [undefined, null];
  if (id === null) throw new HttpFault('not_found', 'there is nothing at this path');
  const preflight = preflightResponse(request, cors);
  if (preflight !== undefined) return preflight;
  const method = id === undefined ? 'POST' : 'GET';
  if (request.method !== method)
    throw new HttpFault('method_not_allowed', `only ${method} is possible here`, { allow: method });
  checkToken(request, token);
  await enforceRateLimit(request, rateLimit);
  return id === undefined ? service.post(request) : service.get(decode(id), request);
}

function decode(id: string): string {
  try {
    return decodeURIComponent(id);
  } catch {
    throw new HttpFault('invalid_request', 'the path is not encoded as it should be');
  }
}
