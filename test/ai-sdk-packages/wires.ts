import type { ServerResponse } from 'node:http';
import { EventStreamCodec } from '@smithy/eventstream-codec';
import { CITIES, halves, type Method } from '../parts/ai-sdk/talk.js';
import { type Answer, events, json, page } from '../parts/providers/loopback-server.js';

/** The thinking of the model, its text before two calls of `weather`, and its text after their results. */
export const THOUGHT = 'Two cities, two calls.';
export const LOOKS = 'I look it up.';
export const LAST = 'Oslo is cold, Rome is warm.';

/** An API of a provider with replies as in its public reference. */
export interface Wire {
  /** The path of a request, without the server. */
  path(method: Method): string;
  /** Returns the reply with thinking, text and two calls, and the final reply. */
  replies(method: Method): readonly Answer[];
}

const half = <Part>(text: string, part: (text: string) => Part) => halves(text).map(part);

/** Ids of Mistral have nine letters and digits. */
export const MISTRAL_IDS = ['D681PevKs', 'ez0RXu4Fp'] as const;

/** https://docs.mistral.ai/api/endpoint/chat, and its reasoning at https://docs.mistral.ai/capabilities/reasoning */
export const mistral: Wire = {
  path: () => '/v1/chat/completions',
  replies: (method) => {
    const head = { id: 'f798ebd5', created: 1_764_000_000, model: 'mistral-large-latest' };
    const usage = { prompt_tokens: 50, total_tokens: 85, completion_tokens: 35 };
    const thinking = (text: string) => ({ type: 'thinking', thinking: [{ type: 'text', text }] });
    const tool_calls = CITIES.map((city, index) => ({
      id: MISTRAL_IDS[index],
      function: { name: 'weather', arguments: JSON.stringify({ city }) },
      index,
    }));
    if (method === 'chat') {
      const whole = (message: unknown, finish_reason: string) =>
        json({ ...head, object: 'chat.completion', usage, choices: [{ index: 0, message, finish_reason }] });
      const content = [
        { ...thinking(THOUGHT), closed: true },
        { type: 'text', text: LOOKS },
      ];
      return [
        whole({ role: 'assistant', content, tool_calls }, 'tool_calls'),
        whole({ role: 'assistant', content: LAST, tool_calls: null }, 'stop'),
      ];
    }
    const chunk = (delta: unknown, finish_reason: string | null = null, more = {}) => ({
      ...head,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta, finish_reason }],
      ...more,
    });
    const start = chunk({ role: 'assistant', content: '' });
    return [
      events([
        start,
        ...half(THOUGHT, (text) => chunk({ content: [thinking(text)] })),
        ...half(LOOKS, (content) => chunk({ content })),
        chunk({ content: '', tool_calls }, 'tool_calls', { usage }),
      ]),
      events([
        start,
        ...half(LAST, (content) => chunk({ content })),
        chunk({ content: '' }, 'stop', { usage }),
      ]),
    ];
  },
};

export const SIGNATURE = 'EqQBCkYIBRgCKkDx+/9a0==';
const MODEL = 'us.anthropic.claude-sonnet-4-5-20250929-v1:0';

/** https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html and …_ConverseStream.html */
export const bedrock: Wire = {
  path: (method) =>
    `/model/${encodeURIComponent(MODEL)}/${method === 'chat' ? 'converse' : 'converse-stream'}`,
  replies: (method) => {
    const usage = { inputTokens: 20, cacheReadInputTokens: 30, outputTokens: 35, totalTokens: 85 };
    const calls = CITIES.map((city, at) => ({
      toolUseId: `tooluse_${at}`,
      name: 'weather',
      input: { city },
    }));
    const metrics = { latencyMs: 1_275 };
    if (method === 'chat') {
      const whole = (content: readonly unknown[], stopReason: string) =>
        json({ metrics, usage, stopReason, output: { message: { role: 'assistant', content } } });
      const reasoningText = { text: THOUGHT, signature: SIGNATURE };
      return [
        whole(
          [
            { reasoningContent: { reasoningText } },
            { text: LOOKS },
            ...calls.map((toolUse) => ({ toolUse })),
          ],
          'tool_use',
        ),
        whole([{ text: LAST }], 'end_turn'),
      ];
    }
    const stream = (blocks: readonly (readonly Event[])[], stopReason: string) =>
      eventStream([
        ['messageStart', { role: 'assistant' }],
        ...blocks.flatMap((block, contentBlockIndex) =>
          [...block, ['contentBlockStop', {}] as const].map(
            ([type, event]): Event => [type, { contentBlockIndex, ...event }],
          ),
        ),
        ['messageStop', { stopReason }],
        ['metadata', { usage, metrics }],
      ]);
    const delta = (content: unknown): Event => ['contentBlockDelta', { delta: content }];
    return [
      stream(
        [
          [
            ...half(THOUGHT, (text) => delta({ reasoningContent: { text } })),
            delta({ reasoningContent: { signature: SIGNATURE } }),
          ],
          half(LOOKS, (text) => delta({ text })),
          ...calls.map(({ input, ...toolUse }): readonly Event[] => [
            ['contentBlockStart', { start: { toolUse } }],
            ...half(JSON.stringify(input), (text) => delta({ toolUse: { input: text } })),
          ]),
        ],
        'tool_use',
      ),
      stream([half(LAST, (text) => delta({ text }))], 'end_turn'),
    ];
  },
};

type Event = readonly [type: string, event: Readonly<Record<string, unknown>>];

/** Writes the framing of https://smithy.io/2.0/aws/amazon-eventstream.html with the codec of AWS. */
function eventStream(all: readonly Event[]): Answer {
  const codec = new EventStreamCodec(
    (bytes) => Buffer.from(bytes).toString('utf8'),
    (text) => Buffer.from(text, 'utf8'),
  );
  const string = (value: string) => ({ type: 'string' as const, value });
  return (response: ServerResponse) => {
    response.writeHead(200, { 'content-type': 'application/vnd.amazon.eventstream' });
    for (const [type, event] of all)
      response.write(
        codec.encode({
          headers: {
            ':event-type': string(type),
            ':content-type': string('application/json'),
            ':message-type': string('event'),
          },
          body: Buffer.from(JSON.stringify(event)),
        }),
      );
    response.end();
  };
}

/** Ollama with its OpenAI-compatible API: https://docs.ollama.com/api/openai-compatibility */
export const ollamaCompatible: Wire = {
  path: () => '/v1/chat/completions',
  replies: (method) => {
    const head = {
      id: 'chatcmpl-352',
      created: 1_764_000_000,
      model: 'qwen3',
      system_fingerprint: 'fp_ollama',
    };
    const usage = { prompt_tokens: 50, completion_tokens: 35, total_tokens: 85 };
    const tool_calls = CITIES.map((city, index) => ({
      id: `call_${index}`,
      index,
      type: 'function',
      function: { name: 'weather', arguments: JSON.stringify({ city }) },
    }));
    if (method === 'chat') {
      const whole = (message: unknown, finish_reason: string) =>
        json({ ...head, object: 'chat.completion', usage, choices: [{ index: 0, message, finish_reason }] });
      return [
        whole({ role: 'assistant', content: LOOKS, reasoning: THOUGHT, tool_calls }, 'tool_calls'),
        whole({ role: 'assistant', content: LAST }, 'stop'),
      ];
    }
    const chunk = (delta: Record<string, unknown>, finish_reason: string | null = null) => ({
      ...head,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta: { role: 'assistant', ...delta }, finish_reason }],
    });
    // The server sends the usage of a stream only if the request contains `include_usage`.
    const stream =
      (...chunks: readonly unknown[]): Answer =>
      (response, request) => {
        const streamOptions = request.body.stream_options as { readonly include_usage?: boolean } | undefined;
        const last = { ...head, object: 'chat.completion.chunk', choices: [], usage };
        events(streamOptions?.include_usage ? [...chunks, last] : chunks)(response, request);
      };
    return [
      stream(
        ...half(THOUGHT, (reasoning) => chunk({ content: '', reasoning })),
        ...half(LOOKS, (content) => chunk({ content })),
        chunk({ content: '', tool_calls }),
        chunk({ content: '' }, 'tool_calls'),
      ),
      stream(...half(LAST, (content) => chunk({ content })), chunk({ content: '' }, 'stop')),
    ];
  },
};

/** Ollama’s own API: https://docs.ollama.com/api/chat */
export const ollama: Wire = {
  path: () => '/api/chat',
  replies: (method) => {
    const line = (message: Record<string, unknown>, more: Record<string, unknown> = { done: false }) => ({
      model: 'qwen3',
      created_at: '2026-11-20T10:00:00.000000Z',
      message: { role: 'assistant', content: '', ...message },
      ...more,
    });
    const end = {
      done: true,
      done_reason: 'stop',
      total_duration: 174_560_334,
      load_duration: 101_397_084,
      prompt_eval_count: 50,
      prompt_eval_duration: 13_074_791,
      eval_count: 35,
      eval_duration: 52_479_709,
    };
    const tool_calls = CITIES.map((city, at) => ({
      id: `call_${at}`,
      function: { index: at, name: 'weather', arguments: { city } },
    }));
    if (method === 'chat')
      return [
        json(line({ content: LOOKS, thinking: THOUGHT, tool_calls }, end)),
        json(line({ content: LAST }, end)),
      ];
    const lines = (...all: readonly unknown[]) =>
      page(all.map((body) => `${JSON.stringify(body)}\n`).join(''), 'application/x-ndjson');
    return [
      lines(
        ...half(THOUGHT, (thinking) => line({ thinking })),
        ...half(LOOKS, (content) => line({ content })),
        line({ tool_calls }),
        line({}, end),
      ),
      lines(...half(LAST, (content) => line({ content })), line({}, end)),
    ];
  },
};
