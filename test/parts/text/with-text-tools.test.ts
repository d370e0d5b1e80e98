import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type LLMProvider,
  type LLMRequest,
  type LLMResponse,
  type LLMStreamPart,
  type Message,
  type ToolSchema,
  withTextTools,
} from 'toolwright';
import { runs } from '../../setup/runs.js';
import { modelText, NAMES } from './model-texts.js';

const TOOLS: readonly ToolSchema[] = NAMES.map((name) => ({
  type: 'function',
  function: { name, description: `About ${name}`, parameters: { type: 'object', properties: {} } },
}));

/** A provider that returns the given texts in chunks of this size and records its requests. */
function scripted(reply: Partial<LLMResponse>, size = Number.POSITIVE_INFINITY) {
  const requests: LLMRequest[] = [];
  const response: LLMResponse = { content: '', toolCalls: [], finishReason: 'stop', ...reply };
  const provider: LLMProvider = {
    async chat(request) {
      requests.push(request);
      return response;
    },
    async *stream(request) {
      requests.push(request);
      const { content } = response;
      for (let at = 0; at < content.length; at += size) {
        yield { type: 'text-delta', text: content.slice(at, at + size) };
      }
      yield { type: 'response', response };
    },
  };
  return { provider, requests };
}

function request(
  messages: readonly Message[] = [{ role: 'user', content: 'Hi' }],
  tools = TOOLS,
): LLMRequest {
  return { model: 'm', messages, tools, options: {} };
}

/** The messages that the wrapped provider receives for a history. */
async function sent(given: LLMRequest): Promise<LLMRequest> {
  const { provider, requests } = scripted({});
  await withTextTools(provider).chat(given);
  return requests[0]!;
}

async function streamed(provider: LLMProvider, given = request()) {
  const parts: LLMStreamPart[] = [];
  for await (const part of provider.stream!(given)) parts.push(part);
  const deltas = parts.flatMap((part) => (part.type === 'text-delta' ? [part.text] : []));
  const responses = parts.flatMap((part) => (part.type === 'response' ? [part.response] : []));
  return { deltas, responses };
}

const CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>';

describe('the request to the model', () => {
  test('the tools are described in a system message, and no native tools are sent', async () => {
    const { messages, ...rest } = await sent(request());
    expect(rest).toEqual({ model: 'm', options: {} });
    expect(messages).toHaveLength(2);
    expect(messages[0]?.role).toBe('system');
    for (const tool of TOOLS) expect(messages[0]?.content).toContain(JSON.stringify(tool));
    expect(messages[0]?.content).toContain('<tool_call>');
    expect(messages[1]).toEqual({ role: 'user', content: 'Hi' });
  });

  test('a leading system message is extended, because templates accept only one', async () => {
    const { messages } = await sent(
      request([
        { role: 'system', content: 'Be kind.' },
        { role: 'user', content: 'Hi' },
      ]),
    );
    expect(messages.map(({ role }) => role)).toEqual(['system', 'user']);
    expect(messages[0]?.content).toMatch(/^Be kind\.\n\n# Tools/);
  });

  test('instructions in the history are not repeated', async () => {
    const once = await sent(request());
    expect((await sent({ ...request(), messages: once.messages })).messages).toEqual(once.messages);
  });

  test('without tools there are no instructions, and no text is parsed as a call', async () => {
    const { provider, requests } = scripted({ content: CALL });
    const response = await withTextTools(provider).chat(request(undefined, []));
    expect(requests[0]?.messages).toEqual([{ role: 'user', content: 'Hi' }]);
    expect(response).toEqual({ content: CALL, toolCalls: [], finishReason: 'stop' });
  });

  test('custom instructions replace the built-in ones', async () => {
    const { provider, requests } = scripted({});
    await withTextTools(provider, { instructions: (tools) => `Use ${tools.length}.` }).chat(request());
    expect(requests[0]?.messages[0]).toEqual({ role: 'system', content: 'Use 3.' });
  });

  test('calls and results in the history become text, with all results of a turn in one message', async () => {
    const toolCall = (id: string, args: string) =>
      ({ id, type: 'function', function: { name: 'add', arguments: args } }) as const;
    const { messages } = await sent(
      request([
        { role: 'user', content: 'Hi' },
        {
          role: 'assistant',
          content: 'Sure.',
          tool_calls: [toolCall('x', '{"a":1}'), toolCall('y', 'oops')],
        },
        { role: 'tool', content: '3</tool_response>', tool_call_id: 'x' },
        { role: 'tool', content: 'no', tool_call_id: 'gone' },
        { role: 'assistant', content: null, tool_calls: [toolCall('z', '{}')] },
        { role: 'tool', content: '4', tool_call_id: 'z' },
      ]),
    );
    const call = (args: string) => `<tool_call>\n{"name": "add", "arguments": ${args}}\n</tool_call>`;
    const response = (json: string) => `<tool_response>\n${json}\n</tool_response>`;
    expect(messages.slice(1)).toEqual([
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: `Sure.\n${call('{"a":1}')}\n${call('"oops"')}` },
      {
        role: 'user',
        content: `${response('{"name":"add","content":"3<\\/tool_response>"}')}\n${response('{"content":"no"}')}`,
      },
      { role: 'assistant', content: call('{}') },
      { role: 'user', content: response('{"name":"add","content":"4"}') },
    ]);
  });

  test('other messages are passed on as the same objects, and the input is not changed', async () => {
    const given = request([
      { role: 'user', content: [{ type: 'image' }] },
      { role: 'assistant', content: 'Yes' },
      { role: 'system', content: 'Later' },
    ]);
    const before = structuredClone(given);
    const { messages } = await sent(given);
    expect(messages.slice(1).every((message, index) => message === given.messages[index])).toBe(true);
    expect(given).toEqual(before);
  });

  test('options for native tools are removed; the other options and the signal are passed on', async () => {
    const { signal } = new AbortController();
    const options = { temperature: 0, tool_choice: 'auto', parallel_tool_calls: true };
    const asked = await sent({ ...request(), options, signal });
    expect(asked.options).toEqual({ temperature: 0 });
    expect(asked.signal).toBe(signal);
  });

  test('a symbol marks the wrapper, so that another copy of the package recognizes it', () => {
    const mark = Symbol.for('toolwright.TextTools');
    const { provider } = scripted({});
    expect([mark in provider, mark in withTextTools(provider)]).toEqual([false, true]);
  });
});

describe('the response', () => {
  test('calls are removed from the text', async () => {
    const { provider } = scripted({
      content: `Let me see.\n${CALL}\n`,
      usage: { inputTokens: 1, outputTokens: 2, totalTokens: 3 },
    });
    expect(await withTextTools(provider).chat(request())).toEqual({
      content: 'Let me see.',
      toolCalls: [{ id: 'call_1', name: 'add', arguments: { a: 1 } }],
      finishReason: 'tool_calls',
      usage: { inputTokens: 1, outputTokens: 2, totalTokens: 3 },
    });
  });

  test('text without calls is returned unchanged, including white space and brackets', async () => {
    const { provider } = scripted({ content: ' {"name":"rm","arguments":{}} \n' });
    const response = await withTextTools(provider).chat(request());
    expect(response).toEqual({
      content: ' {"name":"rm","arguments":{}} \n',
      toolCalls: [],
      finishReason: 'stop',
    });
  });

  test.each(['length', 'content_filter'] as const)(
    'the finish reason %s is not changed',
    async (finishReason) => {
      const { provider } = scripted({ content: CALL, finishReason });
      const response = await withTextTools(provider).chat(request());
      expect(response.finishReason).toBe(finishReason);
      expect(response.toolCalls).toHaveLength(1);
    },
  );

  test('ids continue from the history', async () => {
    const tool_calls = [
      { id: 'call_4', type: 'function', function: { name: 'add', arguments: '{}' } },
    ] as const;
    const given = request([{ role: 'assistant', content: null, tool_calls }]);
    const response = await withTextTools(scripted({ content: `${CALL}${CALL}` }).provider).chat(given);
    expect(response.toolCalls.map(({ id }) => id)).toEqual(['call_5', 'call_6']);
  });

  test('native calls of the wrapped provider are returned', async () => {
    const native = { id: 'call_1', name: 'add', arguments: {} };
    const response = await withTextTools(scripted({ content: CALL, toolCalls: [native] }).provider).chat(
      request(),
    );
    expect(response.toolCalls).toEqual([native, { id: 'call_2', name: 'add', arguments: { a: 1 } }]);
  });

  test('errors of the wrapped provider are rethrown', async () => {
    const failing = withTextTools({ chat: () => Promise.reject(new Error('down')) });
    await expect(failing.chat(request())).rejects.toThrow('down');
  });
});

describe('streaming', () => {
  test('a provider without stream gives a wrapper without stream', () => {
    expect(withTextTools({ chat: scripted({}).provider.chat })).not.toHaveProperty('stream');
  });

  test('text is passed on immediately, but a call never', async () => {
    const { deltas, responses } = await streamed(
      withTextTools(scripted({ content: `Let me see: a < b. ${CALL} Done.` }, 4).provider),
    );
    expect(deltas.slice(0, 3)).toEqual(['Let', ' me s', 'ee:']);
    expect(deltas.join('')).toBe('Let me see: a < b.  Done.');
    expect(responses).toHaveLength(1);
    expect(responses[0]?.toolCalls).toEqual([{ id: 'call_1', name: 'add', arguments: { a: 1 } }]);
  });

  test('reasoning is passed on as it arrives', async () => {
    const { deltas, responses } = await streamed(
      withTextTools(scripted({ content: `<think>${CALL}</think>No.` }, 7).provider),
    );
    expect(deltas.length).toBeGreaterThan(5);
    expect(responses[0]).toEqual({
      content: `<think>${CALL}</think>No.`,
      toolCalls: [],
      finishReason: 'stop',
    });
  });

  test('the text comes from the response if the provider sends no deltas', async () => {
    const response: LLMResponse = { content: `Yes. ${CALL}`, toolCalls: [], finishReason: 'stop' };
    const silent: LLMProvider = {
      chat: async () => response,
      async *stream() {
        yield { type: 'response', response };
      },
    };
    const { deltas, responses } = await streamed(withTextTools(silent));
    expect(deltas.join('')).toBe('Yes.');
    expect(responses[0]?.toolCalls).toHaveLength(1);
  });

  test('leaving the stream ends the stream of the wrapped provider', async () => {
    let isClosed = false;
    const endless: LLMProvider = {
      chat: async () => ({ content: '', toolCalls: [], finishReason: 'stop' }),
      async *stream() {
        try {
          for (;;) yield { type: 'text-delta', text: 'on and ' };
        } finally {
          isClosed = true;
        }
      },
    };
    for await (const _ of withTextTools(endless).stream!(request())) break;
    expect(isClosed).toBe(true);
  });

  test('chunks of 1, 3 and 7 characters give the same result as the whole text', async () => {
    await fc.assert(
      fc.asyncProperty(modelText, fc.constantFrom(1, 3, 7), async (content, size) => {
        const wrapped = withTextTools(scripted({ content }, size).provider);
        const whole = await wrapped.chat(request());
        const { deltas, responses } = await streamed(wrapped);
        expect(responses).toEqual([whole]);
        expect(deltas.join('')).toBe(whole.content);
        expect(deltas).not.toContain('');
      }),
      { numRuns: runs(1000) },
    );
  });
});
