import type { ServerResponse } from 'node:http';
import { type ChatHandler, createChatHandler } from '../chat/create-chat-handler.js';
import type { Conversations } from '../conversation/conversations.js';
import { type AuthorFault, checkOptions, ToolDeclarationError } from '../errors/author-fault.js';
import {
  type NodeRequest,
  rawResponseOf,
  toRequest,
  type WrappedRequest,
  type WrappedResponse,
  writeResponse,
} from '../kernel/node-http.js';
import { optionTable } from '../kernel/options.js';
import type { ApplicationRuns } from './application-runs.js';
import { CHAT_RULES, type ChatSettings, type ToolwrightModuleOptions } from './options.js';
import { asNestResponse } from './requests.js';

/** How one request of a chat is answered. */
export interface ChatRequestOptions extends Pick<ChatSettings, 'protocol'> {
  /** The response of Express, or the reply of Fastify: it is written there, and nothing is left to return. */
  readonly response?: object;
}

const REQUEST_OPTIONS = optionTable<ChatRequestOptions>('ToolwrightService.chat', {
  protocol: CHAT_RULES.protocol,
  response: { accepts: (value) => typeof value === 'object' && value !== null, fix: 'the response' },
});

/** What the chats of an application are made from. */
interface ChatParts {
  readonly options: ToolwrightModuleOptions;
  readonly runs: ApplicationRuns;
  readonly conversations: () => Conversations;
}

/** The chats of an application, over its conversations and behind its guards. */
export class ApplicationChats {
  readonly #parts: ChatParts;
  readonly #handlers = new Map<ChatSettings['protocol'], ChatHandler>();
  /** Whom the application has found a request to be of. */
  readonly #owners = new WeakMap<Request, unknown>();

  constructor(parts: ChatParts) {
    this.#parts = parts;
  }

  async answer(request: object, options: ChatRequestOptions): Promise<Response | undefined> {
    checkOptions(options, REQUEST_OPTIONS);
    const { owner } = this.#parts.options;
    if (owner === undefined) throw new ToolDeclarationError([NO_OWNER]);
    const { protocol = this.#parts.options.chat?.protocol, response } = options;
    const asked = toRequest(request as NodeRequest | WrappedRequest);
    this.#owners.set(asked, this.#parts.runs.scopeOf(request, {}).owner);
    const answer = await this.#handlerOf(protocol).fetch(asked);
    if (response === undefined) return asNestResponse(answer);
    // Whoever has asked for the response writes it, whatever version of Nest this is.
    const outgoing = rawResponseOf(response as ServerResponse | WrappedResponse);
    await writeResponse(answer, outgoing).catch(() => {});
    return undefined;
  }

  #handlerOf(protocol: ChatSettings['protocol']): ChatHandler {
    const known = this.#handlers.get(protocol);
    if (known !== undefined) return known;
    const { options, conversations } = this.#parts;
    const { logger, chat } = options;
    const handler = createChatHandler({
      ...chat,
      ...(protocol === undefined ? {} : { protocol }),
      ...(logger === undefined ? {} : { logger }),
      conversations: conversations(),
      authenticate: (asked) => this.#owners.get(asked),
    });
    this.#handlers.set(protocol, handler);
    return handler;
  }
}

const NO_OWNER: AuthorFault = {
  where: 'ToolwrightService.chat',
  problem: 'nobody says whose a chat is, so that everybody could read it',
  fix: 'ToolwrightModule.forRoot({ owner: (request) => ({ user: request.user.id }) })',
};
