import type { LanguageModelV4Content, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { describe, expect, test } from '@jest/globals';
import {
  convertToModelMessages,
  generateText,
  isStepCount,
  type ModelMessage,
  streamText,
  type ToolSet,
  type UIMessage,
} from 'ai';
import { convertArrayToReadableStream, MockLanguageModelV4 } from 'ai/test';
import {
  defineTool,
  InvalidOptionsError,
  type Tool,
  type ToolContext,
  ToolRegistry,
  ToolResult,
} from 'toolwright';
import { toAiSdkTools } from 'toolwright/ai-sdk';
import { collect } from '../providers/loopback-server.js';

const NO_COUNT = { total: 1, noCache: undefined, cacheRead: undefined, cacheWrite: undefined };
const USAGE = { inputTokens: NO_COUNT, outputTokens: { total: 1, text: undefined, reasoning: undefined } };
const PIXEL = 'iVBORw0KGgo=';

/** A model that makes one or more calls and then says that it is done. */
function modelCalling(...calls: readonly (readonly [tool: string, input: unknown])[]): MockLanguageModelV4 {
  const content = calls.map(([toolName, input], at): LanguageModelV4Content & { type: 'tool-call' } => ({
    type: 'tool-call',
    toolCallId: `c${at}`,
    toolName,
    input: typeof input === 'string' ? input : JSON.stringify(input),
  }));
  const isDone = (prompt: readonly { readonly role: string }[]) => prompt.at(-1)?.role === 'tool';
  const stop = { unified: 'stop', raw: undefined } as const;
  const use = { unified: 'tool-calls', raw: undefined } as const;
  const streamed = (parts: LanguageModelV4StreamPart[]) => ({ stream: convertArrayToReadableStream(parts) });
  return new MockLanguageModelV4({
    doGenerate: async ({ prompt }) =>
      isDone(prompt)
        ? { content: [{ type: 'text', text: 'Done' }], finishReason: stop, usage: USAGE, warnings: [] }
        : { content, finishReason: use, usage: USAGE, warnings: [] },
    doStream: async ({ prompt }) =>
      isDone(prompt)
        ? streamed([{ type: 'finish', finishReason: stop, usage: USAGE }])
        : streamed([...content, { type: 'finish', finishReason: use, usage: USAGE }]),
  });
}

function generate(model: MockLanguageModelV4, tools: ToolSet, more: object = {}) {
  return generateText({ model, tools, stopWhen: isStepCount(3), prompt: 'Go', ...more });
}

/** The tool results that the model received. */
function told(model: MockLanguageModelV4): unknown[] {
  const sent = [...model.doGenerateCalls, ...model.doStreamCalls].at(-1)?.prompt.at(-1);
  return sent?.role === 'tool'
    ? sent.content.map((part) => (part.type === 'tool-result' ? part.output : part))
    : [];
}

const seen: unknown[] = [];
const add = defineTool({
  name: 'add',
  description: 'Adds',
  parameters: {
    type: 'object',
    properties: { a: { type: 'integer' }, b: { type: 'integer' } },
    required: ['a', 'b'],
  },
  execute: ({ a, b }: { a: number; b: number }, { callId, data }: ToolContext) => {
    seen.push([callId, data]);
    return a + b;
  },
});

function registryOf(...tools: readonly Tool[]): ToolRegistry {
  return new ToolRegistry().register(...tools);
}

function execute(toolset: ToolSet, name: string, input: unknown, more: object = {}): unknown {
  const options = { toolCallId: 'c0', messages: [], context: undefined as never, ...more };
  return toolset[name]?.execute?.(input as never, options);
}

describe('toAiSdkTools with generateText', () => {
  test('toAiSdkTools passes names, descriptions and schemas on unchanged', async () => {
    const model = modelCalling();
    await generate(model, toAiSdkTools(registryOf(add)));
    expect(model.doGenerateCalls[0]?.tools).toEqual([
      { type: 'function', name: 'add', description: 'Adds', inputSchema: add.parameters },
    ]);
  });

  test('toAiSdkTools validates and coerces arguments, and passes the id and the scope of the call', async () => {
    seen.length = 0;
    const model = modelCalling(['add', { a: '1', b: 2 }]);
    const toolset = toAiSdkTools(registryOf(add), ({ toolCallId, tool, context }) => ({
      data: { toolCallId, tool, context },
    }));
    const run = await generate(model, toolset, { toolsContext: { add: { tenant: 't1' } } });
    expect(run.text).toBe('Done');
    expect(told(model)).toEqual([{ type: 'text', value: '3' }]);
    expect(seen).toEqual([['c0', { toolCallId: 'c0', tool: 'add', context: { tenant: 't1' } }]]);
    expect(run.steps[0]?.toolResults[0]?.output).toEqual({ status: 'success', isError: false, text: '3' });
  });

  test('toAiSdkTools returns the texts of the registry for invalid arguments, failures and refusals', async () => {
    const fail = defineTool({
      name: 'fail',
      description: 'Fails',
      execute: () => {
        throw new Error('the shop is closed');
      },
    });
    const model = modelCalling(['add', { a: 'x' }], ['fail', {}], ['add', { a: 1, b: 1, c: 1 }]);
    const policy = ({ tool }: { readonly tool: { readonly name: string } }) => tool.name !== 'secret';
    const registry = registryOf(add, fail, { ...add, name: 'secret' });
    await generate(model, toAiSdkTools(registry, {}, { policy }));
    expect(told(model)).toEqual([
      {
        type: 'error-text',
        value:
          'Validation failed for tool \'add\':\n  - a: must be integer\n  - b: is required\nReceived: {"a":"x"}',
      },
      { type: 'error-text', value: 'the shop is closed' },
      { type: 'text', value: '2\n\nIgnored: c is not an argument of add.' },
    ]);
    const refused = modelCalling(['secret', { a: 1, b: 1 }]);
    await generate(refused, toAiSdkTools(registry, {}, { policy }));
    expect(told(refused)).toMatchObject([
      { type: 'error-text', value: expect.stringMatching(/not allowed/) },
    ]);
  });

  test('toAiSdkTools returns images and files to the model, and text for the user to the application', async () => {
    const draw = defineTool({
      name: 'draw',
      description: 'Draws',
      execute: () =>
        new ToolResult({
          forLLM: 'One pixel',
          forUser: 'Look!',
          content: [
            { type: 'text', content: 'One pixel' },
            { type: 'image', data: PIXEL, mimeType: 'image/png' },
            { type: 'file', data: 'YQ==', mimeType: 'text/plain', filename: 'a.txt' },
          ],
          details: { secret: true },
        }),
    });
    const model = modelCalling(['draw', {}]);
    const run = await generate(model, toAiSdkTools(registryOf(draw)));
    const data = (data: string) => ({ type: 'data', data });
    expect(told(model)).toEqual([
      {
        type: 'content',
        value: [
          { type: 'text', text: 'One pixel' },
          { type: 'file', data: data(PIXEL), mediaType: 'image/png' },
          { type: 'file', data: data('YQ=='), mediaType: 'text/plain', filename: 'a.txt' },
        ],
      },
    ]);
    const output = run.steps[0]?.toolResults[0]?.output;
    expect(output).toMatchObject({ text: 'One pixel', forUser: 'Look!' });
    expect(JSON.parse(JSON.stringify(output))).toEqual(output);
    expect(JSON.stringify(output)).not.toContain('secret');
  });

  test('toAiSdkTools aborts the call when the run is aborted', async () => {
    const controller = new AbortController();
    const aborted = Promise.withResolvers<unknown>();
    const wait = defineTool({
      name: 'wait',
      description: 'Waits',
      execute: (_: object, { signal }: ToolContext) => {
        signal.addEventListener('abort', () => aborted.resolve(signal.aborted));
        controller.abort();
        return new Promise(() => {});
      },
    });
    const toolset = toAiSdkTools(registryOf(wait));
    const run = generate(modelCalling(['wait', {}]), toolset, { abortSignal: controller.signal });
    await expect(run).rejects.toThrow();
    expect(await aborted.promise).toBe(true);
  });

  test('toAiSdkTools does not execute client tools', async () => {
    const locate = defineTool({
      name: 'locate',
      description: 'Where',
      execution: 'client',
      execute: () => 'never',
    });
    const model = modelCalling(['locate', {}]);
    const toolset = toAiSdkTools(registryOf(locate));
    const run = await generate(model, toolset);
    expect(run.toolCalls.map(({ toolName }) => toolName)).toEqual(['locate']);
    expect(run.steps).toHaveLength(1);
    for (const [output, expected] of [
      ['Oslo', { type: 'text', value: 'Oslo' }],
      [{ lat: 1 }, { type: 'json', value: { lat: 1 } }],
    ])
      expect(await toolset.locate?.toModelOutput?.({ toolCallId: 'c0', input: {}, output })).toEqual(
        expected,
      );
  });

  test('toAiSdkTools returns an error to the model if a tool asks the user a question', async () => {
    const book = defineTool({
      name: 'book',
      description: 'Books',
      execute: async (_: object, context: ToolContext) => context.ask({ message: 'Which day?' }),
    });
    const model = modelCalling(['book', {}]);
    await generate(model, toAiSdkTools(registryOf(book)));
    expect(told(model)).toEqual([
      { type: 'error-text', value: "The call of 'book' waits for an answer, which cannot be given here." },
    ]);
  });

  test('toAiSdkTools converts stored UI messages to model messages', async () => {
    const toolset = toAiSdkTools(registryOf(add));
    const output = { status: 'error', isError: true, text: 'the shop is closed' };
    const ui: Omit<UIMessage, 'id'>[] = [
      {
        role: 'assistant',
        parts: [{ type: 'tool-add', toolCallId: 'c0', state: 'output-available', input: {}, output }],
      },
    ];
    const messages = await convertToModelMessages(ui, { tools: toolset });
    expect(messages.at(-1)?.content).toMatchObject([
      { output: { type: 'error-text', value: 'the shop is closed' } },
    ]);
  });

  test('toAiSdkTools refuses an argument that is not a registry, an invalid scope and unknown options', () => {
    expect(() => toAiSdkTools([add] as never)).toThrow(InvalidOptionsError);
    expect(() => toAiSdkTools(registryOf(add), { user: 1 } as never)).toThrow('data: { user }');
    expect(() => toAiSdkTools(registryOf(add), {}, { approvals: undefined })).toThrow(InvalidOptionsError);
  });
});

describe('toAiSdkTools with streamText', () => {
  const walk = defineTool({
    name: 'walk',
    description: 'Walks',
    execute: async (_: object, context: ToolContext) => {
      context.progress({ metres: 1 });
      context.progress('two');
      return 'there';
    },
  });

  test('toAiSdkTools streams progress as preliminary results, and then the result', async () => {
    const heard: unknown[] = [];
    const model = modelCalling(['walk', {}]);
    const run = streamText({
      model,
      tools: toAiSdkTools(registryOf(walk), { onUpdate: (update) => heard.push(update) }),
      stopWhen: isStepCount(3),
      prompt: 'Go',
    });
    const results = (await collect(run.stream)).flatMap((part) =>
      part.type === 'tool-result' ? [[part.preliminary ?? false, part.output]] : [],
    );
    const progress = { status: 'progress', isError: false, text: '' };
    const done = { status: 'success', isError: false, text: 'there' };
    expect(results).toEqual([
      [true, { ...progress, update: { metres: 1 } }],
      [true, { ...progress, update: 'two' }],
      [true, done],
      [false, done],
    ]);
    expect(heard).toEqual([{ metres: 1 }, 'two']);
    expect(told(model)).toEqual([{ type: 'text', value: 'there' }]);
  });

  test('toAiSdkTools returns no preliminary results for a tool without a context parameter', async () => {
    const quick = defineTool({ name: 'quick', description: 'Quick', execute: () => 'now' });
    const toolset = toAiSdkTools(registryOf(quick));
    expect(await execute(toolset, 'quick', {})).toMatchObject({ text: 'now' });
  });
});

describe('toAiSdkTools and approvals', () => {
  const refunds: unknown[] = [];
  const refund = defineTool({
    name: 'refund',
    description: 'Refunds',
    parameters: { type: 'object', properties: { cents: { type: 'integer' } }, required: ['cents'] },
    approval: ({ cents }) => Number(cents) > 100,
    execute: ({ cents }: { cents: number }) => {
      refunds.push(cents);
      return `refunded ${cents}`;
    },
  });
  const WAYS = ['generateText', 'streamText'] as const;

  /** Runs until an approval is requested, answers it and runs again, as a second request would. */
  async function decide(
    way: (typeof WAYS)[number],
    { model, toolset, approved }: { model: MockLanguageModelV4; toolset: () => ToolSet; approved: boolean },
  ): Promise<ModelMessage[]> {
    const messages: ModelMessage[] = [{ role: 'user', content: 'Go' }];
    const go = async () => {
      const given = { model, tools: toolset(), stopWhen: isStepCount(3), messages };
      const run = way === 'generateText' ? await generateText(given) : streamText(given);
      messages.push(...JSON.parse(JSON.stringify(await run.responseMessages)));
      return run.content;
    };
    const asked = (await go()).flatMap((part) => (part.type === 'tool-approval-request' ? [part] : []));
    expect(asked).toHaveLength(1);
    const [{ approvalId = '' } = {}] = asked;
    messages.push({
      role: 'tool',
      content: [{ type: 'tool-approval-response', approvalId, approved, reason: 'because' }],
    });
    await go();
    return messages;
  }

  test.each(WAYS)('toAiSdkTools runs an approved call once, with %s', async (way) => {
    refunds.length = 0;
    const model = modelCalling(['refund', { cents: '500' }]);
    // Another process has no data of the first request.
    await decide(way, { model, toolset: () => toAiSdkTools(registryOf(refund)), approved: true });
    expect(refunds).toEqual([500]);
    expect(told(model)).toEqual([{ type: 'text', value: 'refunded 500' }]);
  });

  test.each(WAYS)('toAiSdkTools does not run a denied call and informs the model, with %s', async (way) => {
    refunds.length = 0;
    const model = modelCalling(['refund', { cents: 500 }]);
    await decide(way, { model, toolset: () => toAiSdkTools(registryOf(refund)), approved: false });
    expect(refunds).toEqual([]);
    expect(told(model)).toMatchObject([{ type: 'execution-denied', reason: 'because' }]);
  });

  test('toAiSdkTools requests no approval for calls that do not need it or cannot run', async () => {
    refunds.length = 0;
    const calls: unknown[] = [];
    const logger = { debug() {}, info() {}, error() {}, warn: (message: string) => calls.push(message) };
    const registry = new ToolRegistry({ logger, policy: ({ arguments: { cents } }) => cents !== 666 });
    const toolset = toAiSdkTools(
      registry.register(refund),
      {},
      {
        policy: ({ arguments: { cents } }) => cents !== 777,
      },
    );
    const needs = async (cents: unknown) => {
      const { needsApproval } = toolset.refund ?? {};
      if (typeof needsApproval !== 'function') throw new Error('it is always the same');
      return needsApproval({ cents }, { toolCallId: 'c0', messages: [], context: undefined });
    };
    expect([await needs(50), await needs('50'), await needs(500), await needs('500')]).toEqual([
      false,
      false,
      true,
      true,
    ]);
    expect([await needs('many'), await needs(666), await needs(777)]).toEqual([false, false, false]);
    expect([refunds, calls]).toEqual([[], []]);
  });

  test('toAiSdkTools requests an approval that a policy of the registry requires', async () => {
    const registry = new ToolRegistry({
      policy: ({ tool }) => (tool.name === 'send' ? { ask: true } : true),
    });
    for (const name of ['send', 'find'])
      registry.register(defineTool({ name, description: 'Works.', execute: () => 'done' }));
    const toolset = toAiSdkTools(registry);
    const needs = async (name: string) => {
      const { needsApproval } = toolset[name] ?? {};
      return needsApproval?.({}, { toolCallId: 'c0', messages: [] });
    };
    expect([await needs('send'), await needs('find')]).toEqual([true, false]);
  });

  test('toAiSdkTools requests an approval if the approval function of the tool throws', async () => {
    const broken = defineTool({
      name: 'broken',
      description: 'Breaks',
      approval: () => {
        throw new Error('no idea');
      },
      execute: () => 'done',
    });
    const run = await generate(modelCalling(['broken', {}]), toAiSdkTools(registryOf(broken)));
    expect(run.content.map(({ type }) => type)).toEqual(['tool-call', 'tool-approval-request']);
  });

  test('toAiSdkTools refuses a call that toolApproval left undecided, unless the application approves', async () => {
    refunds.length = 0;
    const forgetful = { toolApproval: () => undefined };
    const model = modelCalling(['refund', { cents: 500 }]);
    await generate(model, toAiSdkTools(registryOf(refund)), forgetful);
    expect(refunds).toEqual([]);
    expect(told(model)).toEqual([
      { type: 'error-text', value: "The call of 'refund' waits for an answer, which cannot be given here." },
    ]);
    const trusted = toAiSdkTools(registryOf(refund), {}, { approvals: 'application' });
    await generate(modelCalling(['refund', { cents: 500 }]), trusted, forgetful);
    expect(refunds).toEqual([500]);
  });

  test('toAiSdkTools accepts an approval only for the requested call and only in the last message', async () => {
    refunds.length = 0;
    const toolset = toAiSdkTools(registryOf(refund));
    const asked = (toolCallId: string): ModelMessage => ({
      role: 'assistant',
      content: [{ type: 'tool-approval-request', approvalId: 'a1', toolCallId }],
    });
    const said = (approved: boolean): ModelMessage => ({
      role: 'tool',
      content: [{ type: 'tool-approval-response', approvalId: 'a1', approved }],
    });
    const user: ModelMessage = { role: 'user', content: 'Go' };
    for (const messages of [
      [],
      [user, said(true)],
      [user, asked('c9'), said(true)],
      [user, asked('c0'), said(false)],
      [user, asked('c0'), said(true), user],
    ])
      await execute(toolset, 'refund', { cents: 500 }, { messages });
    expect(refunds).toEqual([]);
    const messages = [user, asked('c0'), said(true)];
    await execute(toolset, 'refund', { cents: 500 }, { messages });
    expect(refunds).toEqual([500]);
  });
});
