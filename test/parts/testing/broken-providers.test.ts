import { describe, expect, test } from '@jest/globals';
import {
  type AssistantMessage,
  InvalidOptionsError,
  type LLMRequest,
  type LLMResponse,
  type Message,
  ProviderError,
} from 'toolwright';
import {
  type ProviderBackend,
  type ProviderConformanceOptions,
  providerConformance,
} from 'toolwright/testing';
import { overAnthropic, overChat, PROVIDERS } from './conformance-backends.js';
import { type Spoiler, spoiled } from './spoiled-provider.js';

/** A breach of a rule, and the message that the case must report. */
interface Breach {
  /** The title of the case without the name and the method. */
  readonly title: string;
  readonly spoiler: () => Spoiler;
  /** Default: OpenAIProvider with Chat Completions. */
  readonly over?: (spoiler: Spoiler) => Promise<ProviderBackend>;
  /** The message for `chat` and for `stream`, or one for both. */
  readonly words: RegExp | readonly [RegExp | undefined, RegExp | undefined];
  /** The time limit if the reply never arrives. */
  readonly timeoutMs?: number;
}

const TOLD = /^P.stream: the joined text of all text-delta is/;
const INPUT = /^P.stream: the tool of call-input-start for \w+ is "look_up", but should be absent/;

const withoutUsage = (...names: string[]): Spoiler => ({
  response: ({ usage, ...response }) => ({
    ...response,
    usage: Object.fromEntries(
      Object.entries({ ...usage }).filter(([name]) => !names.includes(name)),
    ) as unknown as LLMResponse['usage'],
  }),
});

const withoutRequest = (...names: (keyof LLMRequest)[]): Spoiler => ({
  request: (request) =>
    Object.fromEntries(
      Object.entries(request).filter(([name]) => !names.some((other) => other === name)),
    ) as unknown as LLMRequest,
});

const messages = (change: (message: Message) => Message): Spoiler => ({
  request: (request) => ({ ...request, messages: request.messages.map(change) }),
});

/** Changes the arguments of the calls in the history. */
const withArguments = (change: (text: string) => string): Spoiler =>
  messages((message) =>
    message.role === 'assistant' && message.tool_calls
      ? {
          ...message,
          tool_calls: message.tool_calls.map((call) => ({
            ...call,
            function: { ...call.function, arguments: change(call.function.arguments) },
          })),
        }
      : message,
  );

/** Sends only the first part, the text, of a user message. */
const withoutUserParts = () =>
  messages((message) =>
    message.role === 'user' && typeof message.content !== 'string'
      ? { ...message, content: message.content.slice(0, 1) }
      : message,
  );

const withoutParts = () =>
  messages((message) => (message.role === 'tool' ? { ...message, parts: undefined } : message));

/** The response contains only the first call. */
const merged: Spoiler = {
  response: ({ toolCalls, ...response }) => ({ ...response, toolCalls: toolCalls.slice(0, 1) }),
};

const BREACHES: readonly Breach[] = [
  {
    title: 'returns the text of the model unchanged',
    spoiler: () => ({ response: (response) => ({ ...response, content: response.content.trim() }) }),
    words: [/content is "Grüße.*, but should be "Grüße/s, TOLD],
  },
  {
    title: 'returns a call with its tool and its arguments',
    spoiler: () => ({
      response: ({ toolCalls, ...response }) => ({
        ...response,
        toolCalls: toolCalls.map((call) => ({ ...call, arguments: JSON.stringify(call.arguments) })),
      }),
    }),
    words:
      /call 1 is {"name":"look_up","arguments":"{.*should be {"name":"look_up","arguments":{"city":"Oslo"/,
  },
  {
    title: 'returns parallel calls separately and in order',
    spoiler: () => merged,
    words: [/it returns 1 calls, but the model made 3/, INPUT],
  },
  {
    title: 'returns the ids that the model gave to its calls',
    spoiler: () => ({
      response: ({ toolCalls, ...response }) => ({
        ...response,
        toolCalls: toolCalls.map((call, at) => ({ ...call, id: `call_${at}` })),
      }),
    }),
    words: [/the list of ids is \["call_0","call_1"\], but should be \["call_a1","call_b2"\]/, INPUT],
  },
  {
    title: 'returns both the text and the calls of a reply',
    spoiler: () => ({
      response: (response) => (response.toolCalls.length > 0 ? { ...response, content: '' } : response),
    }),
    words: [/content is "", but should be "Grüße/s, TOLD],
  },
  {
    title: 'returns deeply nested arguments, and empty arguments',
    spoiler: () => ({
      response: ({ toolCalls, ...response }) => ({
        ...response,
        toolCalls: toolCalls.map((call) =>
          Object.keys(call.arguments).length === 0 ? { ...call, arguments: '' } : call,
        ),
      }),
    }),
    words: [
      /call 2 is .*"arguments":""}, but should be .*"arguments":{}}/,
      /the streamed input of call_b2 is "{}"/,
    ],
  },
  {
    title: 'returns arguments that are not a JSON object as text',
    spoiler: () => ({
      response: ({ toolCalls, ...response }) => ({
        ...response,
        toolCalls: toolCalls.map((call) => ({ ...call, arguments: {} })),
      }),
    }),
    words: [/the arguments of the call is {}, but should be "{/, /the streamed input of call_a1 is/],
  },
  {
    title: 'preserves the digits of long integers in arguments',
    spoiler: () => ({
      response: ({ toolCalls, ...response }) => ({
        ...response,
        toolCalls: toolCalls.map((call) => ({ ...call, arguments: JSON.parse(String(call.arguments)) })),
      }),
    }),
    words: /the arguments of the call are .*12345678901234567000.*without all digits/,
  },
  {
    title: 'reports the id and the model of a reply',
    spoiler: () => ({ response: ({ origin, ...response }) => response }),
    words: /origin is absent, but should be {"id":"reply_7","model":"test-model-2026-02-28"}/,
  },
  {
    title: 'reports that a reply was cut off, also if it has calls',
    spoiler: () => ({
      response: (response) => ({
        ...response,
        finishReason: response.toolCalls.length > 0 ? 'tool_calls' : response.finishReason,
      }),
    }),
    words: /finishReason of a truncated reply with a call is "tool_calls", but should be "length"/,
  },
  {
    title: 'counts the tokens',
    spoiler: () => withoutUsage('totalTokens'),
    words: /usage is {"inputTokens":1200,"outputTokens":340}, but should be/,
  },
  ...['cacheReadTokens', 'cacheWriteTokens', 'reasoningTokens'].map((part) => ({
    title: `counts ${part}`,
    spoiler: () => withoutUsage(part),
    words: new RegExp(`usage.${part} is absent, but should be \\d+`),
  })),
  {
    title: 'returns the reasoning separately from the text',
    spoiler: () => ({
      response: (response) => ({ ...response, content: `${response.reasoning}${response.content}` }),
    }),
    words: [/content is "Oslo first.*Hello", but should be "Hello"/, TOLD],
  },
  {
    title: 'joins texts and arguments that are split at any character',
    spoiler: () => ({
      part: (part) => (part.type === 'text-delta' ? [{ ...part, text: part.text.trimEnd() }] : [part]),
    }),
    words: [undefined, TOLD],
  },
  {
    title: 'streams the arguments of calls as they arrive',
    spoiler: () => ({ part: (part) => (part.type.startsWith('call-input') ? [] : [part]) }),
    words: [undefined, /its stream has no call-input-start for call_a1/],
  },
  {
    title: 'throws if a reply breaks off at any byte',
    spoiler: () => ({ failure: (error) => new Error('gone', { cause: error }) }),
    words: /`retryable` of the error for a lost connection is absent, but should be true/,
  },
  {
    title: 'offers only the tools of the request, not those of earlier requests',
    spoiler: () => withoutRequest('tools'),
    words: /the model does not receive "look_up"/,
  },
  {
    title: 'sends the results of calls together with the calls',
    spoiler: () => ({
      request: (request) => ({
        ...request,
        messages: request.messages.filter(({ role }) => role !== 'tool'),
      }),
    }),
    words: /the model does not receive "Result of/,
  },
  {
    title: 'sends each result with the id of its call',
    spoiler: () =>
      messages((message) =>
        message.role === 'tool'
          ? { ...message, tool_call_id: message.tool_call_id === 'call_a1' ? 'call_b2' : 'call_a1' }
          : message,
      ),
    words: /the ids of calls with Result number 0 is \["call_b2"\], but should be \["call_a1"\]/,
  },
  {
    title: 'sends the results of parallel calls in one message',
    // Chat Completions needs one message per result; an API such as Anthropic’s refuses that.
    spoiler: () => ({}),
    words: /the results of two calls of one reply are sent in separate messages/,
  },
  {
    title: 'marks results that are errors',
    spoiler: () =>
      messages((message) => (message.role === 'tool' ? { ...message, isError: undefined } : message)),
    over: (spoiler) => overAnthropic((provider) => spoiled(provider, spoiler)),
    words: /the model receives the same request for a result with and without `isError: true`/,
  },
  {
    title: 'sends the arguments of earlier calls in the form of its API',
    spoiler: () => withArguments((text) => JSON.stringify(JSON.parse(text))),
    words: /it throws “.*JSON/,
  },
  {
    title: 'preserves the digits of long integers in earlier calls',
    spoiler: () => withArguments((text) => JSON.stringify(JSON.parse(text))),
    words: /the model does not receive the digits 12345678901234567891 of an earlier call/,
  },
  {
    title: 'sends system messages',
    spoiler: () => ({
      request: (request) => ({
        ...request,
        messages: request.messages.filter(({ role }) => role !== 'system'),
      }),
    }),
    words: /the model does not receive "Answer in Norwegian"/,
  },
  {
    title: 'sends the images of user messages',
    spoiler: withoutUserParts,
    words: /the model does not receive the image of a user message/,
  },
  {
    title: 'sends the files of user messages',
    spoiler: withoutUserParts,
    words: /the model does not receive the file of a user message/,
  },
  {
    title: 'sends the images of results',
    spoiler: withoutParts,
    words: /the model does not receive the image of the result/,
  },
  {
    title: 'sends the files of results',
    spoiler: withoutParts,
    words: /the model does not receive the file of the result/,
  },
  {
    title: 'sends the `providerItems` of a reply back, byte for byte',
    spoiler: () =>
      messages((message) => {
        const { providerItems, ...rest } = message as AssistantMessage;
        return rest;
      }),
    words: /the model does not receive "gAAAAAB/,
  },
  {
    title: 'does not send the reasoning of messages',
    spoiler: () =>
      messages((message) =>
        message.role === 'assistant'
          ? { ...message, content: `${message.reasoning} ${message.content}` }
          : message,
      ),
    words: /the model receives the `reasoning` of a message/,
  },
  {
    title: 'sends the options of the request',
    spoiler: () => withoutRequest('options'),
    words:
      /the model receives the same request for {"options":{"seed":7}} and {"options":{"temperature":0.5,"seed":7}}/,
  },
  {
    title: 'limits the tokens of the reply',
    spoiler: () => withoutRequest('maxOutputTokens'),
    words: /the model receives the same request for {"maxOutputTokens":2049} and {"maxOutputTokens":1025}/,
  },
  {
    title: 'sends which tools the model may call',
    spoiler: () => withoutRequest('toolChoice'),
    words: /the model receives the same request for {"toolChoice":"none"} and {}/,
  },
  {
    title: 'sends the list of tools from which the model may choose',
    spoiler: () => withoutRequest('toolChoice'),
    words: /the model receives the same request for {"toolChoice":{"tools":\["look_up"\]}} and {}/,
  },
  {
    title: 'sends whether a reply may have several calls',
    spoiler: () => withoutRequest('parallelToolCalls'),
    words: /the model receives the same request for {"parallelToolCalls":false}/,
  },
  {
    title: 'sends the response format',
    spoiler: () => withoutRequest('responseFormat'),
    words: /the model receives the same request for {"responseFormat":{"type":"json"}} and {}/,
  },
  {
    title: 'sends the schema of the reply',
    spoiler: () => ({
      request: ({ responseFormat, ...request }) =>
        responseFormat ? { ...request, responseFormat: { type: 'json' } } : request,
    }),
    words: /the model does not receive the schema of its reply/,
  },
  {
    title: 'does not change the request',
    spoiler: () => ({
      request: (request) => {
        (request.messages as Message[]).unshift({ role: 'system', content: 'Be kind' });
        return request;
      },
    }),
    words: /it changes the messages or tools of the request/,
  },
  {
    title: 'throws errors that state whether to retry',
    spoiler: () => ({
      failure: (error) =>
        new ProviderError('refused', { retryable: false, status: (error as ProviderError).status }),
    }),
    words: /`retryable` of the error for status 408 is false, but should be true/,
  },
  {
    title: 'reports how long the server asks to wait',
    spoiler: () => ({ failure: () => new ProviderError('refused', { retryable: true, retryAfterMs: 7 }) }),
    words: /`retryAfterMs` of the error for status 429 with retry-after: 7 is 7, but should be 7000/,
  },
  {
    title: 'does not send a request that is already aborted',
    spoiler: () => withoutRequest('signal'),
    words: /an aborted request ends without an error/,
  },
  {
    title: 'ends a request that is aborted before the reply',
    spoiler: () => withoutRequest('signal'),
    words: /There was no answer within 300 ms/,
    timeoutMs: 300,
  },
  {
    title: 'ends a request that is aborted in the middle of the reply',
    spoiler: () => withoutRequest('signal'),
    words: /There was no answer within 300 ms/,
    timeoutMs: 300,
  },
  {
    title: 'streams text as it arrives, and throws if it is aborted during the stream',
    spoiler: () => ({ failure: () => undefined }),
    words: [undefined, /an aborted request ends without an error/],
  },
  {
    title: 'keeps two simultaneous replies separate',
    spoiler: () => {
      let last: LLMResponse | undefined;
      return {
        response: (response) => {
          last ??= response;
          return last;
        },
      };
    },
    words: [/content of the slow reply is "the fast reply", but should be "the slow reply"/, TOLD],
  },
];

type Fetch = typeof globalThis.fetch;

/** A `fetch` that changes the bytes of the bodies. */
function through(change: (body: ReadableStream<Uint8Array>) => ReadableStream<Uint8Array>): Fetch {
  return async (input, init) => {
    const { status, headers, body } = await fetch(input, init);
    return new Response(body && change(body), { status, headers });
  };
}

/** Decodes each chunk separately. */
const piecewise = through((body) =>
  body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform: (bytes, controller) =>
        controller.enqueue(new TextEncoder().encode(new TextDecoder().decode(bytes))),
    }),
  ),
);

/** Treats a lost connection as the end of the reply. */
const quiet = through((body) => {
  const reader = body.getReader();
  return new ReadableStream({
    async pull(controller) {
      const end = new TextEncoder().encode('\n\ndata: [DONE]\n\n');
      const { done, value } = await reader.read().catch(() => ({ done: true, value: end }));
      if (value) controller.enqueue(value);
      if (done) controller.close();
    },
  });
});

/** Treats the end of the body as the end of the reply. */
const trusting = through((body) =>
  body.pipeThrough(
    new TransformStream({
      flush: (controller) =>
        controller.enqueue(
          new TextEncoder().encode(
            '\n\ndata: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
          ),
        ),
    }),
  ),
);

/** Ignores an error event inside a stream. */
const deaf = through((body) =>
  body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(
      new TransformStream<string, string>({
        transform: (text, controller) => controller.enqueue(text.replace(/^data: {"error".*$/m, ': ignored')),
      }),
    )
    .pipeThrough(new TextEncoderStream()),
);

const DECODER = 'reads a reply that is split at any byte';
const DEAF = 'throws an error that the server reports within a stream';

/** Runs the case with this title, and returns its error message or 'passed'. */
async function verdict(title: string, options: Omit<ProviderConformanceOptions, 'name'>): Promise<string> {
  const found = providerConformance({ name: 'P', ...options }).find((entry) => entry.title === title);
  if (found === undefined) throw new Error(`there is no case '${title}'`);
  try {
    await found.run();
  } catch (error) {
    if (error instanceof Error) return error.message;
  }
  return 'passed';
}

const TITLES = providerConformance({ name: 'P', backend: () => overChat() }).map(({ title }) => title);

function overSpoiledChat(spoiler: Spoiler): Promise<ProviderBackend> {
  return overChat((provider) => spoiled(provider, spoiler));
}

describe('providerConformance', () => {
  const all = BREACHES.flatMap(({ title, spoiler, over, words, timeoutMs }) => {
    const [chat, stream] = words instanceof RegExp ? [words, words] : words;
    const one = (method: string, expected: RegExp | undefined) =>
      expected ? [{ title: `P.${method} ${title}`, expected, spoiler, over, timeoutMs }] : [];
    return [...one('chat', chat), ...one('stream', stream)];
  });

  test.each(all)('providerConformance finds the error: $title', async ({ title, expected, ...how }) => {
    const { over = overSpoiledChat } = how;
    const backend = () => over(how.spoiler());
    const said = await verdict(title, { backend, timeoutMs: how.timeoutMs ?? 60_000 });
    expect(said).toMatch(expected);
    expect(said).toMatch(/\nRule: .+\.$/);
  });

  test.each([
    ['P.chat', piecewise, DECODER, /content is/],
    ['P.stream', piecewise, DECODER, /content is/],
    ['P.stream', deaf, DEAF, /a stream that reports an error ends with a reply/],
    ['P.stream', quiet, 'throws if a reply breaks off at any byte', /content is|toolCalls is/],
    ['P.stream', trusting, 'throws if a reply breaks off at any byte', /content is|toolCalls is/],
  ])(
    'providerConformance finds the error of a %s that misreads the bytes',
    async (method, fetch, title, words) => {
      const said = await verdict(`${method} ${title}`, { backend: () => overChat(undefined, { fetch }) });
      expect(said).toMatch(words);
    },
  );

  test('providerConformance has only cases that a broken provider here fails', () => {
    const tried = [
      ...all.map(({ title }) => title),
      `P.chat ${DECODER}`,
      `P.stream ${DECODER}`,
      `P.stream ${DEAF}`,
    ];
    expect([...TITLES].sort()).toEqual(tried.sort());
    expect(new Set(TITLES).size).toBe(TITLES.length);
  });

  test('providerConformance skips and reports features that a provider does not have', () => {
    const cases = providerConformance({
      name: 'P',
      backend: () => overChat(),
      without: ['streaming', 'files'],
    });
    expect(cases.some(({ title }) => title.startsWith('P.stream') || title.includes('files'))).toBe(false);
    expect(cases.length + cases.leftOut.length).toBe(TITLES.length);
    expect(cases.leftOut).toContainEqual({ title: 'P.chat sends the files of results', without: ['files'] });
    expect(cases.leftOut).toContainEqual({
      title: 'P.stream sends the files of results',
      without: ['streaming', 'files'],
    });
  });

  test('providerConformance reports an error that a provider throws, and sets it as the cause', async () => {
    const failure = new Error('no such model');
    const backend = () =>
      overChat((provider) => ({ ...spoiled(provider, {}), chat: () => Promise.reject(failure) }));
    const [first] = providerConformance({ name: 'P', backend });
    await expect(first?.run()).rejects.toMatchObject({
      message: expect.stringMatching(/^P.chat: it throws “no such model”\.\nRule: /),
      cause: failure,
    });
  });

  test('providerConformance suggests the values of `without` for missing features', async () => {
    const chatOnly = () => overChat((provider) => ({ chat: (request) => provider.chat(request) }));
    expect(await verdict('P.stream counts the tokens', { backend: chatOnly })).toMatch(
      /without: \['streaming'\]/,
    );
    const [scripted] = PROVIDERS.filter(({ name }) => name === 'ScriptedProvider');
    if (scripted === undefined) throw new Error('there is no ScriptedProvider');
    expect(await verdict('P.chat sends the images of results', { backend: scripted.backend })).toMatch(
      /without: \['sent'\]|does not receive/,
    );
  });

  test('providerConformance throws for invalid options', () => {
    const wrong = {
      name: '',
      backend: 'x',
      without: ['stream'],
      timeout: 1,
    } as unknown as ProviderConformanceOptions;
    expect(() => providerConformance(wrong)).toThrow(InvalidOptionsError);
  });
});
