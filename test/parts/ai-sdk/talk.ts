import {
  type AssistantMessage,
  defineTool,
  type LLMRequest,
  type LLMResponse,
  type Message,
  runToolLoop,
  streamToolLoop,
  type ToolLoopConfig,
  type ToolLoopResult,
} from 'toolwright';
import type { AiSdkProvider } from 'toolwright/ai-sdk';
import { type Answer, collect, LoopbackServer } from '../providers/loopback-server.js';

/** The two methods that send a request. */
export const METHODS = ['chat', 'stream'] as const;
export type Method = (typeof METHODS)[number];

/** The reply to a request, sent with either method. */
export async function ask(
  provider: AiSdkProvider,
  method: Method,
  request: LLMRequest,
): Promise<LLMResponse> {
  if (method === 'chat') return provider.chat(request);
  const last = (await collect(provider.stream(request))).at(-1);
  if (last?.type !== 'response') throw new Error('the stream ended without a response');
  return last.response;
}

/** A reply as a history stores it, after a round trip through JSON. */
export function asMessage({ content, toolCalls, reasoning, providerItems }: LLMResponse): AssistantMessage {
  const calls = toolCalls.map(({ id, name, arguments: args, providerItems: items }) => ({
    id,
    type: 'function',
    function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args) },
    providerItems: items,
  }));
  const message = { role: 'assistant', content, tool_calls: calls, reasoning, providerItems };
  return JSON.parse(JSON.stringify(message));
}

/** A server that returns these answers in turn. */
export function serve(...answers: readonly Answer[]): Promise<LoopbackServer> {
  const left = [...answers];
  return LoopbackServer.start((response, request) => left.shift()?.(response, request));
}

/** A tool that the models of these tests call for two cities. */
export const weather = defineTool({
  name: 'weather',
  description: 'The weather of a city',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  execute: ({ city }: { city: string }) => `${city}: ${city === 'Oslo' ? -3 : 21} degrees`,
});

export const CITIES = ['Oslo', 'Rome'] as const;

/** The results of the tool for both cities. */
export const RESULTS = ['Oslo: -3 degrees', 'Rome: 21 degrees'] as const;

/** The parts into which a stream splits a text. */
export function halves(text: string): readonly string[] {
  const middle = Math.floor(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)];
}

/** Runs the loop with the tool that its model calls, with either method. */
export async function run(
  method: Method,
  config: Omit<ToolLoopConfig, 'tools'>,
  messages: readonly Message[],
): Promise<ToolLoopResult> {
  const full = { ...config, tools: [weather] };
  if (method === 'chat') return runToolLoop(full, messages);
  const end = (await collect(streamToolLoop(full, messages))).at(-1);
  if (end?.type !== 'run-end') throw new Error('the run did not end');
  return end.result;
}
