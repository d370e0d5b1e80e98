import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { FinishReason, LLMProvider, LLMRequest, Usage } from '../../../core/contract/llm-provider.js';
import { checkOptions } from '../../../core/errors/author-fault.js';
import { errorMessage } from '../../../core/kernel/error-message.js';
import { nodeHttp } from '../../../core/kernel/node-module.js';
import { FILLED_TEXT, FUNCTION, optionTable, RECORD, required } from '../../../core/kernel/options.js';

/** A call of the scripted model; `arguments` is its raw text, which need not be JSON. */
export interface ModelCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

/** Reasoning of the scripted model. */
export interface ModelReasoning {
  /** The readable part. */
  readonly text: string;
  /** Data that only the model's maker can read, to be sent back unchanged: a signature, encrypted reasoning. */
  readonly sealed: string;
}

/** A reply of the scripted model. */
export interface ModelReply {
  /** The server's id of the reply. */
  readonly id: string;
  /** The name that the server reports for the model, which may differ from the requested one. */
  readonly model: string;
  readonly text: string;
  readonly reasoning?: ModelReasoning;
  readonly calls: readonly ModelCall[];
  readonly finishReason: Exclude<FinishReason, 'other'>;
  readonly usage: Required<Omit<Usage, 'raw'>>;
  /** If set, the stream reports this error after the text and the calls, and not that the reply is complete. */
  readonly error?: string;
  /** Cuts the text, the reasoning, or a call's arguments into the pieces of a stream. */
  deltas(text: string): readonly string[];
}

/** A failure of the scripted server. */
export interface ModelFailure {
  readonly status: number;
  readonly message: string;
  /** Seconds for the header `retry-after`. */
  readonly retryAfter?: number;
}

/** Something that can be sent in pieces: bytes, a text, the parts of a stream. */
export interface Sliceable<Self> {
  readonly length: number;
  slice(from: number, to: number): Self;
}

/** How a model answers a request. */
export type ModelTurn =
  | {
      readonly kind: 'reply';
      readonly reply: ModelReply;
      /**
       * Yields the pieces of the reply to send. It may wait forever, like a silent model, or throw, like a lost
       * connection.
       */
      transmit<Units extends Sliceable<Units>>(units: Units): AsyncIterable<Units>;
    }
  | { readonly kind: 'failure'; readonly failure: ModelFailure };

/** A prompt for a model that cannot be scripted. */
export type ModelPrompt = Pick<LLMRequest, 'messages'>;

/** A provider with a scripted model behind it: a server on loopback, or an object. */
export interface ProviderBackend {
  /** Must not retry by itself. */
  readonly provider: LLMProvider;
  readonly model: string;
  /** `options` of each request that the API receives, for example `{ temperature: 0.5 }`; default: none. */
  readonly options?: LLMRequest['options'];
  /** What the model received, one value per request: the body as JSON, or the prompt. */
  readonly sent?: readonly unknown[];
  /** Scripts the model's answer to all further requests. */
  script(turn: ModelTurn): ModelPrompt | undefined;
  close?(): Promise<void> | void;
}

/** How a reply is sent. */
export interface Route {
  /** Where the reply is cut into pieces; default: nowhere. */
  readonly cuts?: (length: number) => readonly number[];
  /** Where sending stops, and what happens there. */
  readonly stop?: {
    readonly at: (length: number) => number;
    /** Rejects if the connection is lost; resolves when the rest may be sent, or with `end` if there is no rest. */
    readonly wait: () => Promise<unknown>;
  };
}

/** A request as the server received it. */
export interface HttpBackendRequest {
  /** With its query: `/v1/chat/completions`. */
  readonly path: string;
  /** The body, which must be JSON. */
  readonly body: Readonly<Record<string, unknown>>;
}

/** A reply as the server sends it. */
export interface HttpBackendBody {
  /** Default: `application/json`; for a stream `text/event-stream`. */
  readonly type?: string;
  readonly text: string;
}

/** Options of {@link httpBackend}. */
export interface HttpBackendOptions {
  /** Creates the provider for a server at this URL (`http://127.0.0.1:43817`); it must not retry by itself. */
  readonly create: (url: string) => LLMProvider;
  /** Encodes a reply for the wire; the request determines whether it is streamed. */
  readonly encode: (reply: ModelReply, request: HttpBackendRequest) => HttpBackendBody;
  /** Encodes a failure; default: `{ error: { message } }`. */
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
 * A server on loopback for {@link providerConformance}, with its provider. The server simulates the network: bytes cut
 * anywhere, lost connections, silence, refusals. You encode the replies.
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
      let text = '';
      for await (const part of incoming.setEncoding('utf8')) text += String(part);
      const body = JSON.parse(text || '{}') as HttpBackendRequest['body'];
      sent.push(body);
      await answer(response, { request: { path: incoming.url ?? '', body }, turn, options });
    } catch {
      response.destroy();
    }
  });
  // On a busy machine, an idle connection could be closed at the moment of its reuse.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
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
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(
  response: ServerResponse,
  exchange: {
    readonly request: HttpBackendRequest;
    readonly turn: ModelTurn | undefined;
    readonly options: HttpBackendOptions;
  },
): Promise<void> {
  const { request, turn, options } = exchange;
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
  { encodeFailure = ({ message }) => JSON.stringify({ error: { message } }) }: HttpBackendOptions,
): void {
  const { status, retryAfter } = failure;
  if (retryAfter !== undefined) response.setHeader('retry-after', String(retryAfter));
  response.writeHead(status, { 'content-type': 'application/json' }).end(encodeFailure(failure));
}

/**
 * Resolves when the bytes have arrived, so that later bytes arrive separately and a lost connection loses none of them.
 */
async function write(response: ServerResponse, bytes: Uint8Array): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    response.write(bytes, (error) => (error ? reject(error) : resolve()));
  });
  // Into the socket and out of it: server and client share an event loop.
  for (let turns = 0; turns < 2; turns += 1) await new Promise((resolve) => setImmediate(resolve));
}
