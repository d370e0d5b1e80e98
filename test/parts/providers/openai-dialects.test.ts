import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { LLMRequest } from 'toolwright';
import { OpenAIProvider } from 'toolwright/openai';
import { ChatReply } from '../../../src/models/openai/chat-completions.js';
import { completion, delta, events, json } from './loopback-server.js';
import { exchange, historyAfter, textOf } from './openai-dialogue.js';

type Fields = Readonly<Record<string, unknown>>;

const CALL = { id: 'c1', type: 'function', function: { name: 'look', arguments: '{"at":1}' } };
const SIGNED = { google: { thought_signature: 'c2lnbmVk' } };
const DETAILS = [
  { type: 'reasoning.text', text: 'Let me see.', signature: 'sig', format: 'anthropic-claude-v1', index: 0 },
  { type: 'reasoning.encrypted', data: 'gAAA', id: 'rs_1', index: 1 },
];
const THINKING = [
  { type: 'thinking', thinking: [{ type: 'text', text: 'Let me see.' }], closed: true },
  { type: 'text', text: 'Looking.' },
];

/** A schema that is already strict. */
const STRICT = {
  type: 'object',
  properties: { at: { type: 'integer' } },
  required: ['at'],
  additionalProperties: false,
};

interface Dialect {
  readonly model: string;
  /** The message as a complete, unstreamed reply contains it. */
  readonly whole: Fields;
  readonly deltas: readonly Fields[];
  /** The message as the next request sends it. */
  readonly replayed: Fields;
  readonly reasoning: string;
}

const DIALECTS: Readonly<Record<string, Dialect>> = {
  'reasoning_content of DeepSeek': {
    model: 'deepseek-v4-pro',
    whole: { content: '', reasoning_content: 'Let me see.', tool_calls: [CALL] },
    deltas: [
      { role: 'assistant', content: null, reasoning_content: '' },
      { reasoning_content: 'Let me' },
      { reasoning_content: ' see.' },
      { reasoning_content: null, tool_calls: [{ index: 0, ...CALL }] },
    ],
    replayed: { reasoning_content: 'Let me see.', tool_calls: [CALL] },
    reasoning: 'Let me see.',
  },
  'reasoning of Groq and Ollama': {
    model: 'qwen/qwen3-32b',
    whole: { content: 'Looking.', reasoning: 'Let me see.', tool_calls: [CALL] },
    deltas: [
      { reasoning: 'Let me ' },
      { reasoning: 'see.' },
      { content: 'Looking.' },
      { tool_calls: [CALL] },
    ],
    replayed: { content: 'Looking.', reasoning: 'Let me see.', tool_calls: [CALL] },
    reasoning: 'Let me see.',
  },
  'reasoning_details of OpenRouter': {
    model: 'anthropic/claude-sonnet-4.5',
    whole: { content: null, reasoning: 'Let me see.', reasoning_details: DETAILS, tool_calls: [CALL] },
    deltas: [
      {
        reasoning: 'Let me ',
        reasoning_details: [
          { type: 'reasoning.text', text: 'Let me ', format: 'anthropic-claude-v1', index: 0 },
        ],
      },
      { reasoning: 'see.', reasoning_details: [{ type: 'reasoning.text', text: 'see.', index: 0 }] },
      { reasoning_details: [{ type: 'reasoning.text', signature: 'sig', index: 0 }] },
      { reasoning_details: [DETAILS[1]] },
      { tool_calls: [CALL] },
    ],
    replayed: { reasoning_details: DETAILS, tool_calls: [CALL] },
    reasoning: 'Let me see.',
  },
  'thought signatures of Gemini': {
    model: 'gemini-3-pro-preview',
    whole: {
      content: '<thought>Let me see.</thought>Looking.',
      extra_content: { google: { thought: true } },
      tool_calls: [
        { ...CALL, extra_content: SIGNED },
        { ...CALL, id: 'c2' },
      ],
    },
    deltas: [
      { content: '<thought>Let me ', extra_content: { google: { thought: true } } },
      { content: 'see.', extra_content: { google: { thought: true } } },
      { content: '</thought>Looking.' },
      { tool_calls: [{ index: 0, ...CALL, extra_content: SIGNED }] },
      { tool_calls: [{ index: 1, ...CALL, id: 'c2' }] },
    ],
    replayed: {
      content: 'Looking.',
      tool_calls: [
        { ...CALL, extra_content: SIGNED },
        { ...CALL, id: 'c2' },
      ],
    },
    reasoning: 'Let me see.',
  },
  'a signed text of Gemini': {
    model: 'models/gemini-3-flash',
    whole: { content: 'Done.', extra_content: SIGNED },
    deltas: [{ content: 'Do' }, { content: 'ne.' }, { content: '', extra_content: SIGNED }],
    replayed: { content: 'Done.', extra_content: SIGNED },
    reasoning: '',
  },
  'thinking parts of Mistral': {
    model: 'magistral-medium-2509',
    whole: { content: THINKING, tool_calls: [CALL] },
    deltas: [
      { content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'Let me ' }] }] },
      { content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'see.' }], closed: true }] },
      { content: 'Look' },
      { content: [{ type: 'text', text: 'ing.' }] },
      { tool_calls: [CALL] },
    ],
    replayed: { content: THINKING, tool_calls: [CALL] },
    reasoning: 'Let me see.',
  },
};

function answerOf({ whole, deltas }: Dialect, method: 'chat' | 'stream') {
  return method === 'chat'
    ? json(completion(whole))
    : events([...deltas.map((fields) => delta(fields)), delta({}, 'stop')]);
}

async function secondBody(response: Awaited<ReturnType<typeof exchange>>['response'], model: string) {
  const { body } = await exchange(json(completion({ content: 'ok' })), {
    method: 'chat',
    model,
    messages: historyAfter(response),
  });
  return body.messages as readonly Fields[];
}

describe.each(Object.entries(DIALECTS))('OpenAIProvider and %s', (_name, dialect) => {
  test.each(['chat', 'stream'] as const)(
    '%s returns the reasoning, and the next request sends it back unchanged',
    async (method) => {
      const { response, parts } = await exchange(answerOf(dialect, method), { method, model: dialect.model });
      expect(response.reasoning ?? '').toBe(dialect.reasoning);
      expect(response.content).not.toMatch(/see|thought/);
      if (method === 'stream') {
        expect(textOf(parts, 'reasoning-delta')).toBe(dialect.reasoning);
        expect(textOf(parts, 'text-delta')).toBe(response.content);
      }
      const [, message] = await secondBody(response, dialect.model);
      expect(message).toEqual({ role: 'assistant', content: expect.anything(), ...dialect.replayed });
    },
  );
});

describe('OpenAIProvider.itemKey', () => {
  test.each([
    ['gpt-5', 'gpt-5'],
    ['openai/gpt-5.2-mini-2026-01-01', 'gpt-5'],
    ['GPT-4o', 'gpt-4'],
    ['o4-mini', 'o4'],
    ['ft:gpt-4.1:shop::7', 'gpt-4'],
    ['models/gemini-3-pro-preview', 'gemini-3'],
    ['gemini-2.5-flash', 'gemini-2'],
    ['anthropic/claude-sonnet-4.5', 'claude-sonnet-4'],
    ['deepseek-chat', 'deepseek-chat'],
    ['deepseek-v4-pro:free', 'deepseek-v4'],
    ['Qwen/Qwen3-235B-A22B', 'qwen3'],
    ['magistral-medium-2509', 'magistral-medium'],
    ['m', 'm'],
  ])('is the same for all models of a family: the key of %s is %s', (model, family) => {
    expect(new OpenAIProvider({ apiKey: 'k' }).itemKey(model)).toBe(`openai.chat/${family}`);
  });
});

describe('OpenAIProvider and histories of other models', () => {
  const foreign = historyAfter({
    content: '',
    toolCalls: [
      { id: 'c1', name: 'look', arguments: { at: 1 } },
      { id: 'c2', name: 'look', arguments: { at: 1 } },
    ],
    finishReason: 'tool_calls',
    reasoning: 'secret',
    providerItems: { 'openai.responses/gpt-5': { output: ['secret'] } },
  });

  async function sent(model: string, messages: LLMRequest['messages'] = foreign) {
    const { body } = await exchange(json(completion({ content: 'ok' })), { method: 'chat', model, messages });
    return body.messages as readonly Fields[];
  }

  test('the request contains no reasoning and no provider items of the other model', async () => {
    expect(JSON.stringify(await sent('gpt-5'))).not.toMatch(/secret|providerItems|"reasoning/);
  });

  test('Gemini 3 and later gets a signature that skips validation on the first call', async () => {
    const skip = { google: { thought_signature: 'skip_thought_signature_validator' } };
    const calls = [
      { ...CALL, extra_content: skip },
      { ...CALL, id: 'c2' },
    ];
    for (const model of ['gemini-3-pro', 'google/gemini-3.1-flash', 'gemini-4'])
      expect((await sent(model))[1]).toMatchObject({ tool_calls: calls });
    for (const model of ['gemini-2.5-pro', 'gpt-5'])
      expect((await sent(model))[1]).toMatchObject({ tool_calls: [CALL, { ...CALL, id: 'c2' }] });
    expect((await sent('gemini-2.5-pro'))[1]).not.toHaveProperty('tool_calls.0.extra_content');
  });

  test('DeepSeek and Kimi get an empty reasoning_content with calls, but only under the names of their own APIs', async () => {
    for (const model of ['deepseek-v4-pro', 'kimi-k2-thinking'])
      expect((await sent(model))[1]).toHaveProperty('reasoning_content', '');
    for (const model of ['deepseek-ai/DeepSeek-V3', 'gpt-5'])
      expect((await sent(model))[1]).not.toHaveProperty('reasoning_content');
  });

  test('a changed text is sent as changed, next to the original thinking', async () => {
    const [first, message, ...rest] = historyAfter({
      content: 'Looking.',
      toolCalls: [],
      finishReason: 'stop',
      providerItems: { 'openai.chat/magistral-medium': { content: THINKING } },
    });
    const changed = [first, { ...message, content: '[removed]' }, ...rest] as LLMRequest['messages'];
    const [, assistant] = await sent('magistral-medium', changed);
    expect(assistant?.content).toEqual([THINKING[0], { type: 'text', text: '[removed]' }]);
  });

  test('a custom call is sent back as a custom call', async () => {
    const custom = { id: 'c', type: 'custom', custom: { name: 'sql', input: 'SELECT 1' } };
    const { response } = await exchange(json(completion({ content: null, tool_calls: [custom] })), {
      method: 'chat',
    });
    expect((await sent('m', historyAfter(response)))[1]).toMatchObject({ tool_calls: [custom] });
  });
});

describe('OpenAIProvider streams the input of calls', () => {
  test('start, deltas and end of each call come before the response', async () => {
    const piece = (index: number, args: string, named: Fields = {}) =>
      delta({
        tool_calls: [
          { index, ...named, function: { arguments: args, ...(named.id ? { name: 'look' } : {}) } },
        ],
      });
    const { parts } = await exchange(
      events([
        piece(0, '', { id: 'a' }),
        piece(0, '{"at"'),
        piece(1, '{}', { id: 'b' }),
        piece(0, ':1}'),
        delta({}, 'tool_calls'),
      ]),
      { method: 'stream' },
    );
    expect(parts.slice(0, -1)).toEqual([
      { type: 'call-input-start', callId: 'a', tool: 'look' },
      { type: 'call-input-delta', callId: 'a', text: '{"at"' },
      { type: 'call-input-start', callId: 'b', tool: 'look' },
      { type: 'call-input-delta', callId: 'b', text: '{}' },
      { type: 'call-input-delta', callId: 'a', text: ':1}' },
      { type: 'call-input-end', callId: 'a' },
      { type: 'call-input-end', callId: 'b' },
    ]);
  });

  test('calls without an id or with a repeated id appear only in the response', async () => {
    const calls = [CALL, { ...CALL, id: '' }, { ...CALL, function: { name: 'see', arguments: '{}' } }];
    const { parts, response } = await exchange(json(completion({ content: null, tool_calls: calls })), {
      method: 'stream',
    });
    expect(parts.filter(({ type }) => type === 'call-input-start')).toEqual([
      { type: 'call-input-start', callId: 'c1', tool: 'look' },
    ]);
    expect(response.toolCalls).toHaveLength(3);
  });

  test('the deltas of a call join to its arguments, wherever they are split', () => {
    const args = fc.dictionary(fc.string(), fc.jsonValue()).map((value) => JSON.stringify(value));
    fc.assert(
      fc.property(args, fc.array(fc.nat({ max: 200 })), (text, cuts) => {
        const places = [0, ...cuts.map((cut) => cut % (text.length + 1)), text.length].sort((a, b) => a - b);
        const reply = new ChatReply('key');
        const pieces = places.slice(1).map((place, at) => text.slice(places[at], place));
        const parts = pieces.flatMap((piece, at) =>
          reply.add({
            choices: [
              {
                delta: {
                  tool_calls: [
                    {
                      index: 0,
                      ...(at === 0 ? { id: 'a' } : {}),
                      function: { ...(at === 0 ? { name: 'look' } : {}), arguments: piece },
                    },
                  ],
                },
              },
            ],
          }),
        );
        expect(parts.map((part) => (part.type === 'call-input-delta' ? part.text : '')).join('')).toBe(text);
        expect(reply.end()).toEqual([{ type: 'call-input-end', callId: 'a' }]);
      }),
    );
  });
});

describe('OpenAIProvider writes a Chat Completions request', () => {
  const look = {
    type: 'function',
    function: { name: 'look', description: 'Looks', parameters: {} },
  } as const;

  async function body(request: Partial<LLMRequest>) {
    return (await exchange(json(completion({ content: 'ok' })), { method: 'chat', ...request })).body;
  }

  test.each([
    ['auto', 'auto'],
    ['required', 'required'],
    ['none', 'none'],
    [{ tool: 'look' }, { type: 'function', function: { name: 'look' } }],
    [
      { tools: ['look'], mode: 'required' },
      {
        type: 'allowed_tools',
        allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'look' } }] },
      },
    ],
  ] as const)('the tool choice %j is translated', async (toolChoice, wire) => {
    expect((await body({ toolChoice, tools: [look] })).tool_choice).toEqual(wire);
    expect(await body({ toolChoice })).not.toHaveProperty('tool_choice');
  });

  test.each([
    [{ type: 'text' }, { type: 'text' }],
    [{ type: 'json' }, { type: 'json_object' }],
    [
      { type: 'json', schema: { type: 'object' }, name: 'order' },
      { type: 'json_schema', json_schema: { name: 'order', schema: { type: 'object' } } },
    ],
    [
      { type: 'json', schema: STRICT },
      { type: 'json_schema', json_schema: { name: 'reply', schema: STRICT, strict: true } },
    ],
  ] as const)('the response format %j is translated', async (responseFormat, wire) => {
    expect((await body({ responseFormat })).response_format).toEqual(wire);
  });

  test('parallel_tool_calls is sent, and options override the fields of the request', async () => {
    const request = { tools: [look], parallelToolCalls: false, toolChoice: 'required' } as const;
    expect(await body(request)).toMatchObject({ parallel_tool_calls: false, tool_choice: 'required' });
    const options = { parallel_tool_calls: true, tool_choice: 'none' };
    expect(await body({ ...request, options })).toMatchObject(options);
  });

  test('tools of the options come before the other tools', async () => {
    const search = { type: 'custom', custom: { name: 'sql' } };
    expect((await body({ tools: [look], options: { tools: [search] } })).tools).toEqual([search, look]);
  });
});

describe('OpenAIProvider reads token usage', () => {
  test.each([
    [
      {
        prompt_tokens: 10,
        completion_tokens: 5,
        prompt_tokens_details: { cached_tokens: 8, cache_write_tokens: 1 },
        completion_tokens_details: { reasoning_tokens: 3 },
      },
      {
        inputTokens: 10,
        outputTokens: 5,
        totalTokens: 15,
        cacheReadTokens: 8,
        cacheWriteTokens: 1,
        reasoningTokens: 3,
      },
    ],
    [
      { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15, prompt_cache_hit_tokens: 7 },
      { inputTokens: 10, outputTokens: 5, totalTokens: 15, cacheReadTokens: 7 },
    ],
    [
      {
        prompt_tokens: 10,
        completion_tokens: 5,
        total_tokens: 18,
        completion_tokens_details: { reasoning_tokens: 3 },
      },
      { inputTokens: 10, outputTokens: 8, totalTokens: 18, reasoningTokens: 3 },
    ],
  ])('of the body %j', async (usage, counted) => {
    const { response } = await exchange(json({ ...(completion({ content: 'ok' }) as object), usage }), {
      method: 'chat',
    });
    expect(response.usage).toEqual({ ...counted, raw: usage });
  });
});
