import { describe, expect, test } from '@jest/globals';
import {
  Conversation,
  complete,
  defineTool,
  type LLMProvider,
  type LLMRequest,
  type LLMResponse,
  type LLMStreamPart,
  type LoopEvent,
  type Message,
  type RunState,
  resumeToolLoop,
  runToolLoop,
  streamToolLoop,
} from 'toolwright';

const hello: readonly Message[] = [{ role: 'user', content: 'Hi' }];
const look = defineTool({ name: 'look', description: 'Looks', parameters: {}, execute: () => 'seen' });
const drop = defineTool({
  name: 'drop',
  description: 'Drops',
  parameters: {},
  approval: true,
  execute: () => 'dropped',
});

const SIGNATURE = { signature: 'abc==', blocks: [{ type: 'thinking', n: 1.5, text: 'ä\u2028' }] };

/** A reply that calls a tool, with items on the message and on its call. */
function thinking(tool: string, key = 'maker/m'): LLMResponse {
  return {
    content: 'Let me see.',
    reasoning: 'I should look.',
    toolCalls: [{ id: 'c1', name: tool, arguments: {}, providerItems: { [key]: 'of the call' } }],
    finishReason: 'tool_calls',
    rawFinishReason: 'tool_use',
    providerItems: { [key]: SIGNATURE },
  };
}

/** A provider with an item key, scripted replies, and its recorded requests. */
function maker(replies: readonly LLMResponse[], name = 'maker') {
  const requests: LLMRequest[] = [];
  const provider: LLMProvider = {
    chat: async (request) => {
      requests.push(request);
      return replies[requests.length - 1] ?? { content: 'Done.', toolCalls: [], finishReason: 'stop' };
    },
    itemKey: (model) => `${name}/${model}`,
  };
  return { provider, requests };
}

function assistantOf(request: LLMRequest | undefined): Message | undefined {
  return request?.messages.find(({ role }) => role === 'assistant');
}

const CARRIED = {
  role: 'assistant',
  content: 'Let me see.',
  tool_calls: [
    {
      id: 'c1',
      type: 'function',
      function: { name: 'look', arguments: '{}' },
      providerItems: { 'maker/m': 'of the call' },
    },
  ],
  providerItems: { 'maker/m': SIGNATURE },
};

describe('provider items', () => {
  test('runToolLoop sends items back with their message and call, and does not send reasoning', async () => {
    const { provider, requests } = maker([thinking('look')]);
    const run = await runToolLoop({ provider, model: 'm', tools: [look] }, hello);
    expect(assistantOf(requests[1])).toEqual(CARRIED);
    expect(run.messages[1]).toEqual({ ...CARRIED, reasoning: 'I should look.' });
  });

  test('runToolLoop copies items, so later changes to the provider’s object have no effect', async () => {
    const reply = thinking('look');
    const { provider, requests } = maker([reply]);
    const run = runToolLoop(
      {
        provider,
        model: 'm',
        tools: [
          { ...look, execute: () => Object.assign(reply.providerItems ?? {}, { 'maker/m': 'changed' }) },
        ],
      },
      hello,
    );
    await run;
    expect(assistantOf(requests[1])).toEqual(CARRIED);
  });

  test('runToolLoop sends neither items nor reasoning to a provider without itemKey', async () => {
    const { provider, requests } = maker([thinking('look')]);
    const { chat } = provider;
    await runToolLoop({ provider: { chat }, model: 'm', tools: [look] }, hello);
    expect(Object.keys(assistantOf(requests[1]) ?? {})).toEqual(['role', 'content', 'tool_calls']);
    expect(JSON.stringify(requests[1])).not.toContain('providerItems');
  });

  test('items stay in the history, but are not sent to another provider or model, with one warning', async () => {
    const first = await runToolLoop(
      { provider: maker([thinking('look')]).provider, model: 'm', tools: [look] },
      hello,
    );
    for (const [name, model] of [
      ['other', 'm'],
      ['maker', 'n'],
    ] as const) {
      const lines: unknown[] = [];
      const logger = { debug() {}, info() {}, warn: (...line: unknown[]) => lines.push(line), error() {} };
      const { provider, requests } = maker([thinking('look', `${name}/${model}`)], name);
      const config = { provider, model, tools: [look], logger };
      const run = await runToolLoop(config, [...first.messages, ...hello]);
      expect(assistantOf(requests[0])).not.toHaveProperty('providerItems');
      expect(JSON.stringify(requests[1])).not.toContain('maker/m"');
      expect(JSON.stringify(requests[1])).toContain(`"${name}/${model}"`);
      expect(lines.filter((line) => JSON.stringify(line).includes('left out of the request'))).toHaveLength(
        1,
      );
      expect(run.messages[1]).toHaveProperty('providerItems', { 'maker/m': SIGNATURE });
    }
  });

  test('a model that prepareStep sets for one step does not get the items of other models', async () => {
    const { provider, requests } = maker([thinking('look'), thinking('look', 'maker/n')]);
    const prepareStep = ({ step }: { step: number }) => (step === 2 ? { model: 'n' } : undefined);
    await runToolLoop({ provider, model: 'm', tools: [look], prepareStep }, hello);
    const carried = requests.map((request) => JSON.stringify(request.messages).includes('abc=='));
    expect(carried).toEqual([false, false, true]);
    expect(JSON.stringify(requests[2]?.messages)).not.toContain('maker/n');
  });

  test('resumeToolLoop restores items from a state that went through JSON', async () => {
    const config = { model: 'm', tools: [drop, look] };
    const suspended = await runToolLoop({ ...config, provider: maker([thinking('drop')]).provider }, hello);
    const state = JSON.parse(JSON.stringify(suspended.state)) as RunState;
    expect(state).toMatchObject({ version: 3, open: { reasoning: 'I should look.' } });
    const { provider, requests } = maker([]);
    const answers = state.pending.map(({ id }) => ({ id, approved: true }));
    const run = await resumeToolLoop({ ...config, provider }, state, answers);
    const carried = JSON.parse(JSON.stringify(CARRIED).replace('"look"', '"drop"'));
    expect(assistantOf(requests[0])).toEqual(carried);
    expect(run.messages[1]).toEqual({ ...carried, reasoning: 'I should look.' });
  });

  test('a call that was settled before the run was suspended keeps its items', async () => {
    const reply = thinking('drop');
    const settled = { id: 'c0', name: 'look', arguments: {}, providerItems: { 'maker/m': 7 } };
    const both = { ...reply, toolCalls: [settled, ...reply.toolCalls] };
    const config = { model: 'm', tools: [drop, look] };
    const { state } = await runToolLoop({ ...config, provider: maker([both]).provider }, hello);
    const { provider, requests } = maker([]);
    const answers = (state?.pending ?? []).map(({ id }) => ({ id, approved: true }));
    await resumeToolLoop({ ...config, provider }, JSON.parse(JSON.stringify(state)), answers);
    const message = assistantOf(requests[0]);
    const calls = message?.role === 'assistant' ? message.tool_calls : [];
    expect(calls?.map((call) => call.providerItems)).toEqual([
      { 'maker/m': 7 },
      { 'maker/m': 'of the call' },
    ]);
  });

  test('Conversation carries items across turns and snapshots', async () => {
    const { provider, requests } = maker([thinking('look')]);
    const config = { provider, model: 'm', tools: [look] };
    const conversation = new Conversation(config);
    await conversation.prompt('Hi');
    const snapshot = JSON.parse(JSON.stringify(conversation));
    const restored = Conversation.restore(config, snapshot);
    await restored.prompt('And now?');
    expect(assistantOf(requests[2])).toEqual(CARRIED);
    expect(restored.messages[1]).toEqual({ ...CARRIED, reasoning: 'I should look.' });
  });
});

describe('requests outside the steps of a run', () => {
  test('complete sends only the items of its provider', async () => {
    const { provider, requests } = maker([]);
    const message = {
      ...CARRIED,
      reasoning: 'I should look.',
      providerItems: { other: 1, ...CARRIED.providerItems },
    };
    const answered = [message, { role: 'tool', content: 'seen', tool_call_id: 'c1' }] as readonly Message[];
    await complete({ provider, model: 'm' }, { messages: [...hello, ...answered] });
    expect(assistantOf(requests[0])).toEqual(CARRIED);
  });

  test('the answer at the limit has no items and no calls', async () => {
    const { provider } = maker([thinking('look'), thinking('look')]);
    const config = { provider, model: 'm', tools: [look], maxIterations: 1, onLimit: 'answer' } as const;
    const { messages } = await runToolLoop(config, hello);
    expect(messages.at(-1)).toEqual({
      role: 'assistant',
      content: 'Let me see.',
      reasoning: 'I should look.',
    });
  });
});

describe('a streamed reply', () => {
  test('streamToolLoop reports reasoning and calls as they are written, then the end of the reply', async () => {
    const parts: readonly LLMStreamPart[] = [
      { type: 'reasoning-delta', text: 'I should ' },
      { type: 'reasoning-delta', text: '' },
      { type: 'call-input-start', callId: 'c1', tool: 'look' },
      { type: 'call-input-start', callId: '', tool: 'look' },
      { type: 'call-input-start', callId: 'c1', tool: 'look' },
      { type: 'call-input-delta', callId: 'c1', text: '{' },
      { type: 'call-input-delta', callId: 'c2', text: '{' },
      { type: 'call-input-delta', callId: 'c1', text: '}' },
      { type: 'call-input-end', callId: 'c1' },
      { type: 'response', response: { ...thinking('look'), usage: USAGE } },
    ];
    const { provider } = maker([]);
    let asked = 0;
    const stream: LLMProvider['stream'] = async function* (request) {
      asked += 1;
      if (asked === 1) yield* parts;
      else yield { type: 'response', response: await provider.chat(request) };
    };
    const events: LoopEvent[] = [];
    for await (const event of streamToolLoop(
      { provider: { ...provider, stream }, model: 'm', tools: [look] },
      hello,
    ))
      events.push(event);
    const ended = { iteration: 1, finishReason: 'tool_calls', rawFinishReason: 'tool_use', usage: USAGE };
    expect(events.slice(2, 8)).toEqual([
      { type: 'reasoning-delta', text: 'I should ' },
      { type: 'call-input-start', callId: 'c1', tool: 'look' },
      { type: 'call-input-delta', callId: 'c1', text: '{' },
      { type: 'call-input-delta', callId: 'c1', text: '}' },
      { type: 'call-input-end', callId: 'c1' },
      { type: 'reply-end', ...ended },
    ]);
    expect(events.filter(({ type }) => type === 'step-end')[0]).toEqual({ type: 'step-end', ...ended });
  });

  test('call-suspended carries the pending calls of the suspended run', async () => {
    const { provider } = maker([thinking('drop')]);
    const run = streamToolLoop({ provider, model: 'm', tools: [drop] }, hello);
    const told: unknown[] = [];
    for await (const event of run) if (event.type === 'call-suspended') told.push(...event.pending);
    expect(told).toEqual((await run.result).pending);
    expect(told).toHaveLength(1);
  });
});

const USAGE = {
  inputTokens: 10,
  outputTokens: 5,
  totalTokens: 15,
  cacheReadTokens: 4,
  cacheWriteTokens: 2,
  reasoningTokens: 3,
  raw: { any: 'thing' },
};

describe('usage', () => {
  test('runToolLoop sums cache and reasoning tokens, and omits counts that were never reported', async () => {
    const known = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
    const { provider } = maker([
      { ...thinking('look'), usage: USAGE },
      { ...thinking('look'), usage: { ...known, cacheReadTokens: 6 } },
      { content: 'Done.', toolCalls: [], finishReason: 'stop', usage: known },
    ]);
    const { usage } = await runToolLoop({ provider, model: 'm', tools: [look] }, hello);
    expect(usage).toEqual({
      inputTokens: 12,
      outputTokens: 7,
      totalTokens: 19,
      cacheReadTokens: 10,
      cacheWriteTokens: 2,
      reasoningTokens: 3,
    });
  });
});

describe('requests', () => {
  test('toolChoice is sent with each request, and a forced call becomes auto after the first call', async () => {
    for (const [toolChoice, then] of [
      ['none', 'none'],
      ['required', 'auto'],
      [{ tool: 'look' }, 'auto'],
      [
        { tools: ['look'], mode: 'required' },
        { tools: ['look'], mode: 'auto' },
      ],
    ] as const) {
      const { provider, requests } = maker([thinking('look')]);
      await runToolLoop({ provider, model: 'm', tools: [look], toolChoice, parallelToolCalls: false }, hello);
      expect(requests.map((request) => request.toolChoice)).toEqual([toolChoice, then]);
      expect(requests.map(({ parallelToolCalls }) => parallelToolCalls)).toEqual([false, false]);
    }
  });

  test.each([
    [
      { tool: 'lok' },
      "toolChoice names 'lok', which is not a tool of the run (did you mean `look`?)",
      "'look'",
    ],
    [
      { tools: ['look', 'mail'] },
      "toolChoice names 'mail', which is not a tool of the run",
      'one of look, drop',
    ],
  ])('a toolChoice with an unknown tool is refused before any request', async (toolChoice, problem, fix) => {
    const { provider, requests } = maker([]);
    const run = runToolLoop({ provider, model: 'm', tools: [look, drop], toolChoice }, hello);
    const fault = { where: 'the loop’s config', option: 'toolChoice', problem, fix };
    await expect(run).rejects.toMatchObject({ name: 'InvalidOptions', code: 521, faults: [fault] });
    expect(requests).toEqual([]);
  });

  test.each(['final_answer', 'search_tools'])('toolChoice may name the tool %s of the loop', async (tool) => {
    const { provider, requests } = maker([]);
    const output = { type: 'object', properties: {} } as const;
    await runToolLoop({ provider, model: 'm', tools: [look], output, toolChoice: { tool } }, hello);
    expect(requests[0]?.toolChoice).toEqual({ tool });
  });

  test('metadata has the conversation, the run and the step of a request', async () => {
    const { provider, requests } = maker([thinking('look')]);
    await runToolLoop({ provider, model: 'm', tools: [look] }, hello, { conversationId: 'k' });
    const [first, second] = requests.map(({ metadata }) => metadata);
    expect(first).toEqual({ conversationId: 'k', runId: expect.any(String), step: 1 });
    expect(second).toEqual({ ...first, step: 2 });
  });

  test('prepareStep sets model, tools, tool choice, messages and options of one request', async () => {
    const { provider, requests } = maker([thinking('look')]);
    const seen: unknown[] = [];
    await runToolLoop(
      {
        provider,
        model: 'm',
        tools: [look, drop],
        prepareStep: async ({ step, messages, model, usage }) => {
          seen.push([step, messages.length, model, usage.totalTokens]);
          if (step === 1) return undefined;
          return {
            tools: ['look'],
            toolChoice: 'required' as const,
            messages: [{ role: 'user' as const, content: 'Only this' }],
            llmOptions: { temperature: 0 },
          };
        },
      },
      hello,
    );
    expect(seen).toEqual([
      [1, 1, 'm', 0],
      [2, 3, 'm', 0],
    ]);
    expect(requests[0]?.tools).toHaveLength(2);
    expect(requests[1]).toMatchObject({
      messages: [{ role: 'user', content: 'Only this' }],
      options: { temperature: 0 },
      toolChoice: 'required',
    });
    expect(requests[1]?.tools?.map((tool) => tool.function.name)).toEqual(['look']);
  });

  test('prepareStep cannot remove the result of a call that it sends', async () => {
    const { provider, requests } = maker([thinking('look')]);
    const prepareStep = ({ step, messages }: { step: number; messages: readonly Message[] }) =>
      step === 2 ? { messages: messages.slice(0, 2) } : undefined;
    await runToolLoop({ provider, model: 'm', tools: [look], prepareStep }, hello);
    expect(requests[1]?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
  });

  test('prepareStep that returns an unknown option fails the run', async () => {
    const { provider } = maker([]);
    const prepareStep = () => ({ tool: 'look' }) as never;
    expect(await runToolLoop({ provider, model: 'm', prepareStep }, hello)).toMatchObject({
      status: 'failed',
      error: { name: 'RequestRefused', cause: { code: 521 } },
    });
  });

  test.each([
    ['tools', { tools: ['look', 'drp'] }],
    ['toolChoice', { toolChoice: { tool: 'drp' } }],
  ])('prepareStep that returns %s with an unknown tool fails the run', async (option, settings) => {
    const { provider, requests } = maker([]);
    const prepareStep = () => settings;
    const run = await runToolLoop({ provider, model: 'm', tools: [look, drop], prepareStep }, hello);
    const problem = `${option} names 'drp', which is not a tool of the run (did you mean \`drop\`?)`;
    const fault = { where: 'what prepareStep returns', option, problem, fix: "'drop'" };
    expect(run).toMatchObject({
      status: 'failed',
      error: { code: 536, message: expect.stringContaining(problem), cause: { code: 521, faults: [fault] } },
    });
    expect(requests).toEqual([]);
  });

  test('a resumed run accepts the name of a tool that it was not offered before', async () => {
    const first = maker([thinking('drop')]);
    const { state } = await runToolLoop({ provider: first.provider, model: 'm', tools: [drop] }, hello);
    const { provider, requests } = maker([]);
    const settings = { tools: ['drop', 'look'], toolChoice: { tools: ['drop', 'look'] } };
    const config = { provider, tools: [drop, look], prepareStep: () => settings };
    const answers = state?.pending.map(({ id }) => ({ id, approved: true })) ?? [];
    expect(await resumeToolLoop(config, state, answers)).toMatchObject({ status: 'completed' });
    expect(requests[0]?.tools?.map((tool) => tool.function.name)).toEqual(['drop']);
  });
});
