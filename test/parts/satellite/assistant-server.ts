import {
  type AssistantHandlerOptions,
  type ChatMessage,
  createAssistantHandler,
  toNodeHandler,
} from 'toolwright/satellite';
import { ScriptedProvider, type ScriptedStep } from 'toolwright/testing';
import { type RunningServer, serve } from '../../setup/loopback.js';

/** An HTTP response with its parsed body. */
export interface WireAnswer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: what a test looks at is the test's business
  readonly body: any;
}

/** An assistant behind a real HTTP server with a scripted model. */
export class AssistantServer implements AsyncDisposable {
  readonly provider: ScriptedProvider;
  readonly #server: RunningServer;

  private constructor(provider: ScriptedProvider, server: RunningServer) {
    this.provider = provider;
    this.#server = server;
  }

  static async start(
    steps: readonly ScriptedStep[],
    options: Partial<AssistantHandlerOptions> = {},
  ): Promise<AssistantServer> {
    const provider = new ScriptedProvider(steps);
    const handler = createAssistantHandler({ provider, model: 'scripted', ...options });
    return new AssistantServer(provider, await serve(toNodeHandler(handler)));
  }

  get url(): string {
    return this.#server.url;
  }

  /** The messages that the model received, request by request. */
  get histories(): readonly (readonly { readonly role: string; readonly content: unknown }[])[] {
    return this.provider.requests.map(({ messages }) => messages);
  }

  /** Posts a body to `/v1/chat`. */
  post(body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<WireAnswer> {
    return this.send('/v1/chat', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  }

  /** Sends messages to a conversation. */
  say(conversationId: string, ...messages: readonly (ChatMessage | string)[]): Promise<WireAnswer> {
    return this.post({
      conversation_id: conversationId,
      messages: messages.map((one) => (typeof one === 'string' ? { role: 'user', content: one } : one)),
    });
  }

  async send(path: string, request: RequestInit = {}): Promise<WireAnswer> {
    const response = await fetch(`${this.url}${path}`, request);
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json');
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
  }
}

/** A reply of the model that requests a tool. */
export function requestText(name: string, args: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({ tool_request: { name, arguments: args } });
}

/** The result of a tool. */
export function toolResult(content: string, name = 'lookup_weather'): ChatMessage {
  return { role: 'tool_result', name, content };
}
