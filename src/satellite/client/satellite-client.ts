import { randomUUID } from 'node:crypto';
import type { CallRecord } from '../../contract/call-record.js';
import type { CallScope } from '../../contract/call-scope.js';
import type { ToolRequest } from '../../detection/parse-tool-request.js';
import { SafeLog } from '../safe-log.js';
import { ChatTransport } from './chat-transport.js';
import { checkClientOptions, type SatelliteClientOptions } from './satellite-client-options.js';
import type { SatelliteListener } from './satellite-event.js';
import type { SatelliteOutcome } from './satellite-outcome.js';
import { SatelliteRun } from './satellite-run.js';

/** What one `send` or `resume` brings along; tools find it in their context. */
export interface SatelliteRunOptions extends Pick<CallScope, 'channel' | 'chatId' | 'data' | 'container'> {
  readonly signal?: AbortSignal;
  readonly onEvent?: SatelliteListener;
}

/** Options of {@link SatelliteClient.send}. */
export interface SatelliteSendOptions extends SatelliteRunOptions {
  /** Which conversation to go on with, or the id of a new one; default: a new one. */
  readonly conversationId?: string;
}

/**
 * The satellite's side of the tool_request protocol: asks an assistant, runs what it requests on a
 * local registry, sends the results, and goes on until there is a plain answer. It keeps nothing: the
 * conversation is the server's, and its id is all that a program needs to go on after a restart.
 *
 * @example
 * ```ts
 * const satellite = new SatelliteClient({ url: 'https://assistant.example.org', tools: registry });
 * const outcome = await satellite.send('Is it raining in Lisbon?');
 * if (outcome.status !== 'completed') await satellite.resume(outcome.conversationId);
 * ```
 */
export class SatelliteClient {
  readonly #options: SatelliteClientOptions;
  readonly #transport: ChatTransport;

  /** @throws ToolDeclarationError (502) where the options are wrong. */
  constructor(options: SatelliteClientOptions) {
    checkClientOptions(options);
    this.#options = options;
    this.#transport = new ChatTransport({ ...options, maxRetries: options.maxRetries ?? 5 });
  }

  /**
   * Says something to the assistant and does what it asks for. Never rejects. A program that may be killed gives
   * the id of a new conversation itself, and keeps it before it sends.
   */
  send(text: string, options: SatelliteSendOptions = {}): Promise<SatelliteOutcome> {
    const { conversationId = randomUUID(), ...others } = options;
    return this.#run(conversationId, others).send(text);
  }

  /**
   * Goes on with a conversation where it is: runs the request that is pending, if there is one, or gives the last
   * answer again. A tool that ran before a crash, but whose result did not arrive, runs again, with the same
   * `context.callId`.
   */
  resume(conversationId: string, options: SatelliteRunOptions = {}): Promise<SatelliteOutcome> {
    return this.#run(conversationId, options).resume();
  }

  #run(conversationId: string, options: SatelliteRunOptions): SatelliteRun {
    const { maxIterations = 20, logger } = this.#options;
    return new SatelliteRun({
      conversationId,
      ...options,
      transport: this.#transport,
      maxIterations,
      log: new SafeLog(logger),
      call: (request, scope) => this.#call(request, scope),
    });
  }

  /** The whole staircase; what would have to wait for somebody is an error here, as in `execute`. */
  async #call({ name, arguments: args }: ToolRequest, scope: CallScope): Promise<CallRecord> {
    const { tools, maxResultChars = 100_000, logger } = this.#options;
    const call = { id: scope.callId ?? randomUUID(), name, arguments: args };
    const toolTimeoutMs = this.#options.toolTimeoutMs ?? tools.toolTimeoutMs ?? 120_000;
    const limits = { toolTimeoutMs, maxResultChars };
    const { record } = await tools.invoke(call, scope, logger ? { ...limits, logger } : limits);
    return record;
  }
}
