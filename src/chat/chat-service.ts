import type { ConversationView } from '../conversation/conversations.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { isSameOwner, ownerOf } from '../loop/options.js';
import type { ChatHandlerOptions } from './chat-options.js';
import { type ChatRequest, HttpFault, readChatRequest } from './chat-request.js';
import { clientAnswers } from './client-answers.js';
import { eventFrames, frameStream, uiMessageFrames } from './frames.js';
import {
  type EventSource,
  type ReadEvent,
  readAnsweredTurn,
  readPromptedTurn,
  readRest,
} from './turn-readings.js';

const DEFAULT_REQUEST_BYTES = 4 * 2 ** 20;
const DEFAULT_HEARTBEAT_MS = 15_000;

/** Somebody's request, and their chat as it stands. */
interface Asked<Kind extends ChatRequest['kind']> {
  readonly asked: Extract<ChatRequest, { readonly kind: Kind }>;
  readonly owner: unknown;
  readonly view: ConversationView | undefined;
  readonly request: Request;
}

/** How a turn is read, and whether what comes goes on with a message that the reader has. */
interface Reading {
  readonly read: (source: EventSource) => AsyncIterable<ReadEvent>;
  readonly goesOn: boolean;
}

/** Answers the requests of chats. */
export class ChatService {
  readonly #options: ChatHandlerOptions;

  constructor(options: ChatHandlerOptions) {
    this.#options = options;
  }

  async answer(request: Request): Promise<Response> {
    const owner = await this.#ownerOf(request);
    const asked = await readChatRequest(request, this.#options.maxRequestBytes ?? DEFAULT_REQUEST_BYTES);
    const view = await this.#options.conversations.snapshot(asked.chatId);
    checkOwner(view, owner);
    switch (asked.kind) {
      case 'prompt':
        return this.#prompt({ asked, owner, view, request });
      case 'answers':
        return this.#answer({ asked, owner, view, request });
      case 'reconnect':
        return this.#reconnect({ asked, owner, view, request });
      case 'stop':
        await this.#options.conversations.abort(asked.chatId);
        return new Response(null, { status: 204 });
    }
  }

  /** Who asks. Whatever is not plainly somebody is nobody. */
  async #ownerOf(request: Request): Promise<unknown> {
    const nobody = new HttpFault(401, 'Who are you?');
    let owner: unknown;
    try {
      owner = await this.#options.authenticate(request);
    } catch (error) {
      this.#options.logger?.debug('A chat request was not authenticated', { error });
      throw nobody;
    }
    if (owner === undefined || owner === null || owner === '' || owner === false) throw nobody;
    return ownerOf({ owner });
  }

  async #prompt({ asked, owner, view, request }: Asked<'prompt'>): Promise<Response> {
    const { chatId, messageId, text } = asked;
    const { conversations } = this.#options;
    if (view?.status === 'suspended') throw new HttpFault(409, 'The chat waits for answers first.');
    const key = `message ${messageId}`;
    const { isNew } = await conversations.prompt(chatId, text, { key, owner, onlyOwner: true });
    checkOwner(await conversations.snapshot(chatId), owner);
    // A message that was sent before has had its turn, which is told again.
    const after = isNew ? (view?.lastEvent ?? 0) : 0;
    const read = (source: EventSource) => readPromptedTurn(source, { key, after });
    return this.#stream(request, chatId, { read, goesOn: false });
  }

  async #answer({ asked, owner, view, request }: Asked<'answers'>): Promise<Response> {
    const { chatId } = asked;
    const answers = clientAnswers(asked, view?.pending ?? []);
    if (view === undefined || answers.length === 0)
      throw new HttpFault(409, 'Nothing waits for these answers.');
    const key = crypto.randomUUID();
    await this.#options.conversations.answer(chatId, answers, { key, owner }).catch((error: unknown) => {
      const isTheirEdit = Object.keys(asked.edits).length > 0 && ToolwrightError.is(error);
      throw isTheirEdit && error.name === 'InvalidAnswer' ? new HttpFault(422, error.message) : error;
    });
    const { lastEvent } = view;
    const read = (source: EventSource) => readAnsweredTurn(source, { key, lastEvent });
    return this.#stream(request, chatId, { read, goesOn: true });
  }

  async #reconnect({ asked, view, request }: Asked<'reconnect'>): Promise<Response> {
    const { chatId, lastEvent } = asked;
    if (view === undefined || isOver(view, lastEvent)) return new Response(null, { status: 204 });
    const read = (source: EventSource) => readRest(source, { view, lastEvent });
    return this.#stream(request, chatId, { read, goesOn: false });
  }

  #stream(request: Request, chatId: string, { read, goesOn }: Reading): Response {
    const { conversations, protocol, abortOnLeave, describeError = ANY_ERROR, heartbeatMs } = this.#options;
    const left = new AbortController();
    const signal = AbortSignal.any([request.signal, left.signal]);
    let hasBegun = false;
    const noting = async function* (): AsyncGenerator<ReadEvent, undefined> {
      for await (const event of read({ conversations, chatId, signal })) {
        hasBegun = event.event.type !== 'turn-end';
        yield event;
      }
    };
    const frames =
      protocol === 'events'
        ? eventFrames(noting())
        : uiMessageFrames(noting(), { describeError, greets: goesOn });
    const onLeave = (): void => {
      left.abort();
      // Before its turn has begun, the turn that would end is another one.
      if (abortOnLeave && hasBegun) void this.#abort(chatId);
    };
    const body = frameStream(frames, { heartbeatMs: heartbeatMs ?? DEFAULT_HEARTBEAT_MS, onLeave });
    return new Response(body, { headers: protocol === 'events' ? SSE_HEADERS : UI_HEADERS });
  }

  async #abort(chatId: string): Promise<void> {
    try {
      await this.#options.conversations.abort(chatId);
    } catch (error) {
      this.#options.logger?.warn('A turn whose reader has left could not be ended', { error });
    }
  }
}

/** Whether there is nothing to come, and nothing that the reader has not seen. */
function isOver({ status, lastEvent }: ConversationView, seen: number | undefined): boolean {
  return seen === undefined ? status === 'idle' : status !== 'running' && seen >= lastEvent;
}

function checkOwner(view: ConversationView | undefined, owner: unknown): void {
  if (view !== undefined && !isSameOwner(view.owner, owner))
    throw new HttpFault(403, 'The chat is somebody else’s.');
}

const ANY_ERROR = (): string => 'An error occurred.';

/** No proxy is to collect the stream before it hands it on. */
const SSE_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
};
const UI_HEADERS = { ...SSE_HEADERS, 'x-vercel-ai-ui-message-stream': 'v1' };
