import { randomUUID } from 'node:crypto';
import { SafeLog } from '../../call/log.js';
import { unlessAborted } from '../../kernel/async.js';
import { SentMessages } from '../../loop/messages.js';
import { ownerOf } from '../../loop/run-owner.js';
import { type ChatRequest, isConversationId } from '../chat-protocol.js';
import type { AssistantHandlerOptions } from './assistant-options.js';
import { checkConversationId, HttpFault, readBody, readChatRequest } from './chat-request.js';
import { MemoryConversationStore } from './conversation-store.js';
import { eventStreamResponse } from './event-stream-response.js';
import { ownConversation, type TurnReply, type TurnRequest, takeTurn, toChatResponse } from './take-turn.js';

/** The two things that can be asked of an assistant; faults are thrown. */
export class ChatService {
  readonly log: SafeLog;
  readonly #options: AssistantHandlerOptions;
  readonly #store;
  readonly #sent: SentMessages;
  /**
   * Requests of one conversation wait for each other: to refuse the second would lose what a user said twice in
   * a hurry. Those of another process do not wait; the store lets only one of them in.
   */
  readonly #queue = new KeyQueue();

  constructor(options: AssistantHandlerOptions) {
    this.#options = options;
    this.#store = options.store ?? new MemoryConversationStore();
    this.log = new SafeLog(options.logger);
    this.#sent = new SentMessages([], options.logger);
  }

  /** `POST /v1/chat` */
  async post(request: Request): Promise<Response> {
    const { maxBodyBytes = 2 ** 20, heartbeatMs = 15_000 } = this.#options;
    const body = readChatRequest(await readBody(request, maxBodyBytes));
    const turn = await this.#turnRequest(request, body);
    if (!wantsEvents(request)) return jsonReply(await this.#take(turn));
    return eventStreamResponse(
      async (send, signal) => {
        try {
          const onText = (text: string): Promise<void> => send('text-delta', { text });
          const { response, turnId } = await this.#take({ ...turn, signal, onText });
          await send('response', response, turnId);
        } catch (thrown) {
          await send('error', this.faultOf(thrown, { signal }).body);
        }
      },
      { heartbeatMs, signal: request.signal },
    );
  }

  /** `GET /v1/chat/{conversation_id}`: the last reply again, with the request that is pending. */
  async get(conversationId: string, request: Request): Promise<Response> {
    const id = checkConversationId(conversationId);
    const owner = await this.#ownerOf(request);
    const conversation = ownConversation(await this.#store.load(id), owner);
    if (conversation === undefined)
      throw new HttpFault('conversation_not_found', 'there is no such conversation, or it has expired');
    return jsonReply({ turnId: conversation.turnId, response: toChatResponse(id, conversation) });
  }

  /** What a client is told of anything that was thrown. */
  faultOf(thrown: unknown, { signal }: Pick<Request, 'signal'>): HttpFault {
    if (thrown instanceof HttpFault) return thrown;
    // Nobody hears of it, and nothing went wrong here.
    if (signal.aborted) return new HttpFault('internal_error', 'the client went away');
    this.log.error('Request failed', { error: thrown });
    return new HttpFault('internal_error', 'something went wrong here');
  }

  async #turnRequest(request: Request, body: ChatRequest): Promise<TurnRequest> {
    const { systemPrompt } = this.#options;
    return {
      conversationId: body.conversation_id ?? randomUUID(),
      messages: body.messages,
      turnId: turnIdOf(request.headers.get('idempotency-key'), 'Idempotency-Key'),
      after: turnIdOf(request.headers.get('if-match')?.replace(/^"(.*)"$/, '$1'), 'If-Match'),
      systemPrompt: typeof systemPrompt === 'function' ? await systemPrompt(request) : systemPrompt,
      owner: await this.#ownerOf(request),
      signal: request.signal,
    };
  }

  async #ownerOf(request: Request): Promise<unknown> {
    const { owner } = this.#options;
    return owner && ownerOf({ owner: await owner(request) });
  }

  #take(turn: TurnRequest): Promise<TurnReply> {
    const { maxMessages = 1000 } = this.#options;
    const services = {
      model: this.#options,
      store: this.#store,
      log: this.log,
      sent: this.#sent,
      maxMessages,
    };
    return this.#queue.run(turn.conversationId, turn.signal, () => takeTurn(turn, services));
  }
}

function turnIdOf(value: string | null | undefined, header: string): string | undefined {
  if (value === null || value === undefined) return undefined;
  if (isConversationId(value)) return value;
  throw new HttpFault('invalid_request', `${header} must be 1 to 128 letters, digits and . _ ~ : @ -`);
}

function wantsEvents({ headers }: Request): boolean {
  return /(^|,)\s*text\/event-stream\s*(;|,|$)/i.test(headers.get('accept') ?? '');
}

function jsonReply({ turnId, response }: TurnReply): Response {
  const headers = { 'cache-control': 'no-store', ...(turnId === undefined ? {} : { etag: `"${turnId}"` }) };
  return Response.json(response, { headers });
}

/** Lets work of one key run one after the other, in order of arrival; other keys do not wait. */
export class KeyQueue {
  readonly #tails = new Map<string, Promise<void>>();

  /** Rejects with the signal's reason where it is aborted before the turn has come. */
  async run<Value>(key: string, signal: AbortSignal, work: () => Promise<Value>): Promise<Value> {
    const before = this.#tails.get(key);
    const { promise: done, resolve: finish } = Promise.withResolvers<void>();
    // Who leaves the queue early must not let those behind him pass those before him.
    const tail = before === undefined ? done : before.then(() => done);
    this.#tails.set(key, tail);
    try {
      if (before !== undefined) await unlessAborted(before, signal);
      return await work();
    } finally {
      finish();
      void tail.then(() => {
        if (this.#tails.get(key) === tail) this.#tails.delete(key);
      });
    }
  }
}
