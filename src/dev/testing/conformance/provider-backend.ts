import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { FinishReason, LLMProvider, LLMRequest, Usage } from '../../../core/contract/llm-provider.js';
import { checkOptions } from '../../../core/errors/author-fault.js';
import { errorMessage } from '../../../core/kernel/error-message.js';
import { nodeHttp } from '../../../core/kernel/node-module.js';
import { FILLED_TEXT, FUNCTION, optionTable, RECORD, required } from '../../../core/kernel/options.js';

/** A call that a model is to make; `arguments` is the text that it writes, not always JSON. */
export interface ModelCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

/** What a model is to think. */
export interface ModelReasoning {
  /** What people may read of it. */
  readonly text: string;
  /** What only its maker understands and wants back as it is: a signature, encrypted reasoning. */
  readonly sealed: string;
}

/** What a model is to reply. */
export interface ModelReply {
  readonly text: string;
  readonly reasoning?: ModelReasoning;
  readonly calls: readonly ModelCall[];
  readonly finishReason: Exclude<FinishReason, 'other'>;
  readonly usage: Required<Omit<Usage, 'raw'>>;
  /** The pieces in which a stream is to bring the text, the reasoning, or the arguments of a call. */
  deltas(text: string): readonly string[];
}

/** What a server is to refuse a request with. */
export interface ModelFailure {
  readonly status: number;
  readonly message: string;
  /** Seconds of its header `retry-after`. */
  readonly retryAfter?: number;
}

/** What can be sent in pieces: bytes, a text, the parts of a stream. */
export interface Sliceable<Self> {
  readonly length: number;
  slice(from: number, to: number): Self;
}

/** What a model does with a request. */
export type ModelTurn =
  | {
      readonly kind: 'reply';
      readonly reply: ModelReply;
      /**
       * Gives what to send of the reply, piece by piece. It may wait for ever, as a model does that is silent, and it
       * may throw, as a connection does that is lost.
       */
      transmit<Units extends Sliceable<Units>>(units: Units): AsyncIterable<Units>;
    }
  | { readonly kind: 'failure'; readonly failure: ModelFailure };

/** The words to ask with, for a model that cannot be told what to say. */
export type ModelPrompt = Pick<LLMRequest, 'messages'>;

/** A provider, and behind it a model that says what it is told: a server on loopback, or an object. */
export interface ProviderBackend {
  /** Without retries of its own. */
  readonly provider: LLMProvider;
  readonly model: string;
  /** `options` of each request; default: none. */
  readonly options?: LLMRequest['options'];
  /** What the model was sent, a value for each request: the body as JSON, the prompt. */
  readonly sent?: readonly unknown[];
  /** Says what the model does with all requests from now on. */
  script(turn: ModelTurn): ModelPrompt | undefined;
  close?(): Promise<void> | void;
}

/** How a reply travels. */
export interface Route {
  /** The places at which it is cut into pieces; default: none. */
  readonly cuts?: (length: number) => readonly number[];
  /** Where it stays, and what happens there. */
  readonly stop?: {
    readonly at: (length: number) => number;
    /** Throws where the connection is lost; settles when the rest may follow. */
    readonly wait: () => Promise<void>;
  };
}

/** A request as the server got it. */
export interface HttpBackendRequest {
  /** With its query: `/v1/chat/completions`. */
  readonly path: string;
  /** The body, which has to be JSON. */
  readonly body: Readonly<Record<string, unknown>>;
}

/** A reply as the server sends it. */
export interface HttpBackendBody {
  /** Default: `application/json`; of a stream of events `text/event-stream`. */
  readonly type?: string;
  readonly text: string;
}

/** Options of {@link httpBackend}. */
export interface HttpBackendOptions {
  /** Makes the provider, without retries of its own, for a server at this address: `http://127.0.0.1:43817`. */
  readonly create: (url: string) => LLMProvider;
  /** Says a reply in the words of the wire; whether it is to be a stream, the request says. */
  readonly encode: (reply: ModelReply, request: HttpBackendRequest) => HttpBackendBody;
  /** Says a failure; default: `{ error: { message } }`. */
  readonly encodeFailure?: (failure: ModelFailure) => string;
  /** Default: `test-model`. */
  readonly model?: string;
  /** `options` of each request; default: none. */
  readonly options?: LLMRequest['options'];
}

const OPTIONS = optionTable<HttpBackendOptions>('httpBackend', {
  create: required({ ...FUNCTION, fix: '(url) => new MyProvider({ baseURL: url })' }),
  encode: required({ ...FUNCTION, fix: '(reply, request) => ({ text: JSON.stringify({ … }) })' }),
  encodeFailure: FUNCTION,
  model: FILLED_TEXT,
  options: RECORD,
});

/**
 * A server on loopback for {@link providerConformance}, and the provider that asks it. It does what is asked of the
 * connection by itself (bytes cut anywhere, connections lost, silence, refusals); how the wire says a reply is yours.
 *
 * @throws InvalidOptionsError for wrong options.
 *
 * @example
 * ```ts
 * const backend = await httpBackend({
 *   create: (url) => new OpenAIProvider({ baseURL: url, maxRetries: 0 }),
 *   encode: ({ text, finishReason }) => ({
 *     text: JSON.stringify({ choices: [{ message: { content: text }, finish_reason: finishReason }] }),
 *   }),
 * });
 * ```
 */
export async function httpBackend(options: HttpBackendOptions): Promise<ProviderBackend> {
  checkOptions(options, OPTIONS);
  const { create, model = 'test-model', options: llmOptions } = options;
  const sent: unknown[] = [];
  let turn: ModelTurn | undefined;
  const server = nodeHttp().createServer(async (incoming, response) => {
    try {
      const request = await readRequest(incoming);
      sent.push(request.body);
      await answer(response, { request, turn, options });
    } catch {
      response.destroy();
    }
  });
  // On a busy machine an idle connection could be closed in the moment in which it is used again.
  server.keepAliveTimeout = 0;
  await listening(server);
  const { port } = server.address() as AddressInfo;
  return {
    provider: create(`http://127.0.0.1:${port}`),
    model,
    sent,
    ...(llmOptions && { options: llmOptions }),
    script(next) {
      turn = next;
      return undefined;
    },
    close: () => closed(server),
  };
}

interface Exchange {
  readonly request: HttpBackendRequest;
  readonly turn: ModelTurn | undefined;
  readonly options: HttpBackendOptions;
}

async function answer(response: ServerResponse, { request, turn, options }: Exchange): Promise<void> {
  if (turn === undefined) throw new Error('nothing was scripted');
  if (turn.kind === 'failure') return refuse(response, turn.failure, options);
  let body: HttpBackendBody;
  try {
    body = options.encode(turn.reply, request);
  } catch (error) {
    return refuse(response, { status: 500, message: `encode failed: ${errorMessage(error)}` }, options);
  }
  response.setHeader('content-type', body.type ?? 'application/json');
  for await (const bytes of turn.transmit(new TextEncoder().encode(body.text))) await write(response, bytes);
  response.end();
}

function refuse(
  response: ServerResponse,
  failure: ModelFailure,
  { encodeFailure = defaultFailure }: HttpBackendOptions,
): void {
  const { status, retryAfter } = failure;
  if (retryAfter !== undefined) response.setHeader('retry-after', String(retryAfter));
  response.writeHead(status, { 'content-type': 'application/json' }).end(encodeFailure(failure));
}

function defaultFailure({ message }: ModelFailure): string {
  return JSON.stringify({ error: { message } });
}

async function readRequest(incoming: IncomingMessage): Promise<HttpBackendRequest> {
  let text = '';
  for await (const part of incoming.setEncoding('utf8')) text += String(part);
  return { path: incoming.url ?? '', body: JSON.parse(text || '{}') as HttpBackendRequest['body'] };
}

/** Settles when the bytes have arrived: those that follow would come with them, and what waits is lost with the connection. */
async function write(response: ServerResponse, bytes: Uint8Array): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    response.write(bytes, (error) => (error ? reject(error) : resolve()));
  });
  // Into the socket, and out of it: server and client share one loop.
  for (let turns = 0; turns < 2; turns += 1) await new Promise((resolve) => setImmediate(resolve));
}

function listening(server: Server): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
