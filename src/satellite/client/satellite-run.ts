import type { SafeLog } from '../../call/log.js';
import { answerText } from '../../call/result-text.js';
import type { CallRecord, CallScope } from '../../contract/call.js';
import { ToolwrightError } from '../../errors/toolwright-error.js';
import { errorMessage } from '../../kernel/error-message.js';
import type { LoopEvent } from '../../loop/events.js';
import type { ToolRequest } from '../../text/tool-call-parser.js';
import type { ChatMessage } from '../chat-protocol.js';
import type { ChatTransport, Reply } from './chat-transport.js';

/** What one run of a satellite works with. */
interface SatelliteRunServices extends Pick<CallScope, 'channel' | 'chatId' | 'data' | 'container'> {
  readonly conversationId: string;
  readonly transport: ChatTransport;
  readonly maxIterations: number;
  readonly log: SafeLog;
  readonly signal?: AbortSignal;
  readonly onEvent?: SatelliteListener;
  readonly call: (request: ToolRequest, scope: CallScope) => Promise<CallRecord>;
}

/** One `send` or `resume`: ask, run, answer, until there is a plain answer. */
export class SatelliteRun {
  readonly #services: SatelliteRunServices;
  readonly #toolCalls: CallRecord[] = [];
  #iterations = 0;

  constructor(services: SatelliteRunServices) {
    this.#services = services;
  }

  send(text: string): Promise<SatelliteOutcome> {
    return this.#finish(() => this.#post({ role: 'user', content: text }));
  }

  resume(): Promise<SatelliteOutcome> {
    const { transport, conversationId } = this.#services;
    return this.#finish(() => transport.get(conversationId, this.#listener()));
  }

  async #finish(first: () => Promise<Reply>): Promise<SatelliteOutcome> {
    const { conversationId, signal } = this.#services;
    this.#emit({ type: 'run-start', conversationId });
    let outcome: SatelliteOutcome;
    try {
      signal?.throwIfAborted();
      outcome = await this.#answerRequests(await first());
    } catch (cause) {
      const name = signal?.aborted ? 'RunAborted' : 'ProviderFailed';
      const error = new ToolwrightError(name, errorMessage(cause), { cause });
      outcome = { ...this.#progress(), status: signal?.aborted ? 'aborted' : 'failed', error };
    }
    this.#emit({ type: 'run-end', outcome });
    return outcome;
  }

  async #answerRequests(first: Reply): Promise<SatelliteOutcome> {
    const { maxIterations, signal } = this.#services;
    let reply = first;
    for (;;) {
      const { tool_request: request, message, finish_reason: finishReason } = reply.response;
      if (request === undefined)
        return { ...this.#progress(), status: 'completed', content: message.content, finishReason };
      if (this.#iterations >= maxIterations) {
        const problem = `${maxIterations} requests were made, and the assistant still asks for ${request.name}`;
        const error = new ToolwrightError('ToolLoopLimitReached', problem);
        return { ...this.#progress(), status: 'limit', pending: request, error };
      }
      const record = await this.#call(request, reply.turnId);
      // A result of an abort is nothing the tool has said; the request stays pending.
      signal?.throwIfAborted();
      reply = await this.#post(
        { role: 'tool_result', name: request.name, content: answerText(record) },
        reply,
      );
    }
  }

  async #post(message: ChatMessage, answered?: Reply): Promise<Reply> {
    const { transport, conversationId } = this.#services;
    this.#emit({ type: 'step-start', iteration: this.#iterations + 1 });
    const request = { conversation_id: conversationId, messages: [message] };
    const reply = await transport.post(request, answered?.turnId, this.#listener());
    this.#iterations += 1;
    return reply;
  }

  async #call(request: ToolRequest, turnId: string | undefined): Promise<CallRecord> {
    const { call, channel, chatId, data, container, signal, conversationId } = this.#services;
    // The name of the turn that asked: the same after a restart, so that a tool can know a repeated call.
    const callId = turnId ?? `call_${this.#toolCalls.length + 1}`;
    const about = { callId, tool: request.name, arguments: request.arguments };
    this.#emit({ type: 'call-start', ...about });
    const record = await call(request, {
      ...{ channel, chatId, data, container, signal, conversationId, callId },
      onUpdate: (update) => this.#emit({ type: 'call-progress', ...about, update }),
    });
    this.#toolCalls.push(record);
    this.#emit({ type: 'call-end', callId, tool: request.name, result: record.result, record });
    return record;
  }

  #progress() {
    const { conversationId } = this.#services;
    return { conversationId, content: '', iterations: this.#iterations, toolCalls: this.#toolCalls };
  }

  #listener() {
    return {
      signal: this.#services.signal,
      onText: (text: string) => this.#emit({ type: 'text-delta', text }),
      onRetry: (retry: { readonly attempt: number; readonly delayMs: number; readonly error: Error }) =>
        this.#emit({ type: 'retry', ...retry }),
    };
  }

  #emit(event: SatelliteEvent): void {
    const { onEvent, log } = this.#services;
    const fail = (error: unknown): void =>
      log.warn('Satellite listener failed', { event: event.type, error });
    try {
      // A listener may be an async function, and nobody else would hear of its failure.
      Promise.resolve(onEvent?.(event)).catch(fail);
    } catch (error) {
      fail(error);
    }
  }
}

/**
 * What happens while a satellite works, in order: the events of the loop, besides `retry` where a request is
 * sent again; text of the step before it was in vain and will be written anew.
 */
export type SatelliteEvent =
  | { readonly type: 'run-start'; readonly conversationId: string }
  | Extract<
      LoopEvent,
      { readonly type: 'step-start' | 'text-delta' | 'call-start' | 'call-progress' | 'call-end' }
    >
  | { readonly type: 'retry'; readonly attempt: number; readonly delayMs: number; readonly error: Error }
  | { readonly type: 'run-end'; readonly outcome: SatelliteOutcome };

/** Hears of events, and is not waited for; what it throws is logged and changes nothing. */
export type SatelliteListener = (event: SatelliteEvent) => unknown;

/** What every outcome tells. */
interface Progress {
  /** What `resume` and the next `send` take. */
  readonly conversationId: string;
  /** The assistant's words; `''` unless `completed`. */
  readonly content: string;
  /** Requests that were answered. */
  readonly iterations: number;
  /** Every call that was made here, failed ones included, in order. */
  readonly toolCalls: readonly CallRecord[];
}

/**
 * How a satellite's work ended: `completed` with a plain answer; `limit` after `maxIterations` requests, with the
 * tool request still pending on the server; `aborted`; or `failed`, with an {@link AssistantError} as the error's
 * cause. After all but `completed`, `resume` goes on where it was.
 */
export type SatelliteOutcome =
  | (Progress & { readonly status: 'completed'; readonly finishReason: string })
  | (Progress & { readonly status: 'limit'; readonly pending: ToolRequest; readonly error: ToolwrightError })
  | (Progress & { readonly status: 'aborted' | 'failed'; readonly error: ToolwrightError });
