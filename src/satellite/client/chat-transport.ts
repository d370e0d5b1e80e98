import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { errorMessage } from '../../invocation/error-message.js';
import { MAX_TIMER_MS } from '../../invocation/max-timer-ms.js';
import type { ChatRequest } from '../chat-protocol.js';
import { AssistantError } from './assistant-error.js';
import { type Reply, readReply } from './read-reply.js';

/** Where the assistant is, and how often it is tried. */
export interface TransportOptions {
  readonly url: string | URL;
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly maxRetries: number;
  /** For one request, until its whole reply is there. */
  readonly timeoutMs: number;
  readonly maxReplyBytes: number;
}

/** Who waits for a reply. */
export interface ReplyListener {
  readonly signal?: AbortSignal;
  readonly onText?: (text: string) => void;
  readonly onRetry?: (retry: {
    readonly attempt: number;
    readonly delayMs: number;
    readonly error: Error;
  }) => void;
}

const LONGEST_DELAY_MS = 30_000;

/**
 * Sends requests until a reply comes through. It is safe to send one again, also where nobody knows whether the
 * first arrived: its `Idempotency-Key` names the turn, and the server answers a turn that it has with its reply.
 */
export class ChatTransport {
  readonly #options: TransportOptions;
  readonly #address: string;

  constructor(options: TransportOptions) {
    this.#options = options;
    this.#address = `${String(options.url).replace(/\/+$/, '')}/v1/chat`;
  }

  /** `after` is the turn that a result answers: where the conversation has gone on, it is refused. */
  post(request: ChatRequest, after: string | undefined, listener: ReplyListener): Promise<Reply> {
    const headers = {
      accept: 'text/event-stream',
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
      ...(after === undefined ? {} : { 'if-match': `"${after}"` }),
    };
    const body = JSON.stringify(request);
    return this.#send(this.#address, { method: 'POST', headers, body }, listener);
  }

  get(conversationId: string, listener: ReplyListener): Promise<Reply> {
    return this.#send(`${this.#address}/${encodeURIComponent(conversationId)}`, {}, listener);
  }

  async #send(address: string, request: RequestInit, listener: ReplyListener): Promise<Reply> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#sendOnce(address, request, listener);
      } catch (thrown) {
        listener.signal?.throwIfAborted();
        const error = toAssistantError(thrown);
        if (attempt > this.#options.maxRetries || !isPassing(error)) throw error;
        const delayMs = delayBefore(attempt, error);
        listener.onRetry?.({ attempt, delayMs, error });
        await wait(delayMs, undefined, { signal: listener.signal });
      }
    }
  }

  async #sendOnce(address: string, request: RequestInit, { signal, onText }: ReplyListener): Promise<Reply> {
    const { token, headers, timeoutMs, maxReplyBytes } = this.#options;
    const own = token === undefined ? headers : { ...headers, authorization: `Bearer ${token}` };
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), Math.min(timeoutMs, MAX_TIMER_MS));
    // A redirected POST would arrive as something else.
    const options = {
      ...request,
      headers: { ...own, ...request.headers },
      signal: signal ? AbortSignal.any([signal, late.signal]) : late.signal,
      redirect: 'manual',
    } as const;
    try {
      return await readReply(await fetch(address, options), { onText, maxBytes: maxReplyBytes });
    } catch (cause) {
      if (!late.signal.aborted) throw cause;
      const problem = `the assistant gave no whole reply within ${timeoutMs} ms`;
      throw new AssistantError('timed_out', problem, { cause });
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Nobody is there yet, or somebody in between says so, or too many ask at once. */
function isPassing({ code, status = 0 }: AssistantError): boolean {
  if (code === 'unreachable' || code === 'conflict' || code === 'rate_limited') return true;
  // The server's provider has had its own retries.
  return code !== 'provider_failed' && [429, 502, 503, 504].includes(status);
}

function delayBefore(attempt: number, { retryAfterMs }: AssistantError): number {
  // Many satellites that lost one server must not all come back at the same moment.
  const growing = Math.min(250 * 2 ** (attempt - 1), 5000) * (0.5 + Math.random() / 2);
  return Math.min(Math.max(growing, retryAfterMs ?? 0), LONGEST_DELAY_MS);
}

function toAssistantError(thrown: unknown): AssistantError {
  if (thrown instanceof AssistantError) return thrown;
  // `fetch failed` says nothing; its cause does.
  const reason = (thrown as Partial<Error> | undefined)?.cause ?? thrown;
  return new AssistantError('unreachable', `the assistant cannot be reached: ${errorMessage(reason)}`, {
    cause: thrown,
  });
}
