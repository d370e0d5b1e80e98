import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import {
  Conversations,
  defineTool,
  type LLMProvider,
  MemoryJobEngine,
  ProviderError,
  resumeToolLoop,
  runJobs,
  runToolLoop,
  ToolRegistry,
} from 'toolwright';
import { openTelemetry } from 'toolwright/opentelemetry';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { Recording } from './recording.js';

let recording: Recording;
beforeEach(() => {
  recording = new Recording();
});
afterEach(() => recording.end());

const add = defineTool({
  name: 'add',
  description: 'Adds',
  parameters: {
    type: 'object',
    properties: { a: { type: 'number' }, b: { type: 'number' } },
    required: ['a', 'b'],
  },
  execute: async ({ a, b }: { a: number; b: number }) => {
    await trace.getTracer('test').startActiveSpan('query', async (span) => span.end());
    return a + b;
  },
});

const messages = [{ role: 'user' as const, content: 'What is 1 + 2?' }];

test('openTelemetry records a run with its requests and calls, and the work of tools inside their calls', async () => {
  const telemetry = openTelemetry();
  const tools = new ToolRegistry({ telemetry }).register(add);
  const usage = { inputTokens: 5, outputTokens: 2, totalTokens: 7 };
  const provider = new ScriptedProvider([
    { toolCalls: [{ id: 'c1', name: 'add', arguments: { a: 1, b: 2 } }], usage },
    { content: '3', usage },
  ]);
  const run = await runToolLoop({ provider, model: 'gpt-5', tools, agentName: 'sums' }, messages);
  expect(run.content).toBe('3');
  expect(recording.family).toEqual([
    'chat gpt-5 < invoke_agent sums',
    'chat gpt-5 < invoke_agent sums',
    'execute_tool add < invoke_agent sums',
    'invoke_agent sums < -',
    'query < execute_tool add',
  ]);
  const kinds = recording.spans.map(({ name, kind }) => [name.split(' ')[0], kind]);
  expect(Object.fromEntries(kinds)).toEqual({
    invoke_agent: SpanKind.INTERNAL,
    chat: SpanKind.CLIENT,
    execute_tool: SpanKind.INTERNAL,
    query: SpanKind.INTERNAL,
  });
  expect(recording.spans.every(({ status }) => status.code === SpanStatusCode.UNSET)).toBe(true);
});

const ask = defineTool({
  name: 'pay',
  description: 'Pays',
  parameters: { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] },
  approval: true,
  execute: () => 'paid',
});

test('a resumed run links to the suspended run, and records how long and for what it waited', async () => {
  const tools = new ToolRegistry({ telemetry: openTelemetry() }).register(ask);
  const provider = new ScriptedProvider([
    { toolCalls: [{ id: 'c1', name: 'pay', arguments: { amount: 5 } }] },
    { content: 'done' },
  ]);
  const config = { provider, model: 'm', tools };
  const first = await runToolLoop(config, messages);
  const state = JSON.parse(JSON.stringify(first.state)) as typeof first.state;
  const before = recording.span('invoke_agent');
  expect(before.attributes).toMatchObject({
    'toolwright.run.status': 'suspended',
    'toolwright.run.waits_for': ['approval'],
  });
  expect(recording.span('execute_tool pay').attributes).toMatchObject({
    'toolwright.call.status': 'suspended',
    'toolwright.call.waits_for': ['approval'],
  });
  recording.forget();
  const answers = (first.pending ?? []).map(({ id }) => ({ id, approved: true }));
  const last = await resumeToolLoop(config, state, answers);
  expect(last.content).toBe('done');
  const after = recording.span('invoke_agent');
  expect(after.spanContext().traceId).not.toBe(before.spanContext().traceId);
  expect(after.links).toHaveLength(1);
  expect(after.links[0]).toMatchObject({
    context: { traceId: before.spanContext().traceId, spanId: before.spanContext().spanId },
    attributes: { 'toolwright.link': 'goes_on_from' },
  });
  expect(after.attributes['toolwright.run.waited']).toBeGreaterThanOrEqual(0);
  expect(after.attributes['toolwright.run.id']).toBe(before.attributes['toolwright.run.id']);
  expect(recording.span('execute_tool pay').attributes).toMatchObject({
    'toolwright.call.status': 'success',
    'toolwright.call.waited_for': ['approval'],
  });
  // The waiting call is counted once, where it was executed.
  const [calls] = (await recording.points()).filter(({ name }) => name === 'gen_ai.execute_tool.duration');
  expect(calls?.value).toMatchObject({ count: 1 });
});

test('a sub-agent is a child of the call that runs it', async () => {
  const telemetry = openTelemetry();
  const inner = new ScriptedProvider([{ content: 'found' }]);
  const research = defineTool({
    name: 'research',
    description: 'Asks another agent',
    parameters: { type: 'object', properties: {} },
    execute: async () =>
      (await runToolLoop({ provider: inner, model: 'small', agentName: 'researcher', telemetry }, messages))
        .content,
  });
  const provider = new ScriptedProvider([
    { toolCalls: [{ id: 'c1', name: 'research' }] },
    { content: 'done' },
  ]);
  await runToolLoop({ provider, model: 'm', tools: [research], agentName: 'boss', telemetry }, messages);
  expect(recording.family).toEqual([
    'chat m < invoke_agent boss',
    'chat m < invoke_agent boss',
    'chat small < invoke_agent researcher',
    'execute_tool research < invoke_agent boss',
    'invoke_agent boss < -',
    'invoke_agent researcher < execute_tool research',
  ]);
});

test('started work has its own trace, which links to its call', async () => {
  const telemetry = openTelemetry();
  const mail = defineTool({
    name: 'mail',
    description: 'Mails',
    parameters: { type: 'object', properties: {} },
    execute: (_args, context) =>
      context.background(async () => {
        await trace.getTracer('test').startActiveSpan('smtp', async (span) => span.end());
        return 'sent';
      }),
  });
  const provider = new ScriptedProvider([{ toolCalls: [{ id: 'c1', name: 'mail' }] }, { content: 'ok' }]);
  const completed = new Promise<string>((resolve) => {
    void runToolLoop(
      {
        provider,
        model: 'm',
        tools: [mail],
        telemetry,
        onAsyncResult: (_context, result) => resolve(result.forLLM),
      },
      messages,
    );
  });
  expect(await completed).toBe('sent');
  const call = recording.span('execute_tool mail');
  const task = recording.span('run_task mail');
  expect(call.attributes).toMatchObject({ 'toolwright.call.status': 'started' });
  expect(task.attributes['toolwright.task.id']).toBe(call.attributes['toolwright.task.id']);
  expect(task.spanContext().traceId).not.toBe(call.spanContext().traceId);
  expect(task.parentSpanContext).toBeUndefined();
  expect(task.links[0]?.context.spanId).toBe(call.spanContext().spanId);
  expect(recording.parentOf(recording.span('smtp'))).toBe('run_task mail');
  const [calls] = (await recording.points()).filter(({ name }) => name === 'gen_ai.execute_tool.duration');
  expect(calls?.value).toMatchObject({ count: 1 });
});

test('a turn of conversations has its own trace, which links to its own prompt', async () => {
  const tools = new ToolRegistry({ telemetry: openTelemetry() }).register(
    defineTool({
      name: 'mail',
      description: 'Mails',
      execute: (_args, context) => context.background(async () => 'sent'),
    }),
  );
  const begun = Promise.withResolvers<void>();
  const provider = new ScriptedProvider([
    async () => {
      await begun.promise;
      return { toolCalls: [{ name: 'mail', arguments: {} }] };
    },
    ...Array.from({ length: 4 }, () => ({ content: 'ok' })),
  ]);
  const config = { provider, model: 'm', tools };
  const conversations = await trace.getTracer('test').startActiveSpan('start', async (span) => {
    const created = new Conversations({ store: new MemoryRunStore(), config, maxConcurrency: 1 });
    span.end();
    return created;
  });
  const post = (id: string, name: string) =>
    trace.getTracer('test').startActiveSpan(name, async (span) => {
      await conversations.prompt(id, name);
      span.end();
    });
  await post('alice', 'first of alice');
  await post('bob', 'bob');
  await post('alice', 'second of alice');
  begun.resolve();
  for await (const { event } of conversations.events('alice'))
    if (event.type === 'turn-end' && event.turn.number === 3) break;
  await conversations.idle('bob');
  await conversations.close();
  const turns = recording.spans.filter(({ name }) => name === 'invoke_agent');
  expect(turns.map(({ parentSpanContext }) => parentSpanContext)).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
  const linked = turns.map(({ attributes, links }) => [
    attributes['toolwright.run.id'],
    ...links.map(({ context, attributes: about }) => [
      about?.['toolwright.link'],
      recording.spans.find((span) => span.spanContext().spanId === context.spanId)?.name,
    ]),
  ]);
  expect(linked).toEqual([
    ['alice.1', ['started_by', 'first of alice']],
    ['alice.2', ['started_by', 'second of alice']],
    ['alice.3', ['started_by', 'execute_tool mail']],
    ['bob.1', ['started_by', 'bob']],
  ]);
});

test('a job links to the call that enqueued it, and is one call where it runs', async () => {
  const telemetry = openTelemetry();
  const engine = new MemoryJobEngine();
  const store = new MemoryRunStore();
  const mail = defineTool({
    name: 'mail',
    description: 'Mails',
    parameters: { type: 'object', properties: {} },
    background: true,
    execute: () => 'sent',
  });
  const tools = new ToolRegistry({ telemetry, engine, store }).register(mail);
  const provider = new ScriptedProvider([{ toolCalls: [{ id: 'c1', name: 'mail' }] }, { content: 'ok' }]);
  await runToolLoop({ provider, model: 'm', tools }, messages);
  const enqueued = recording.span('execute_tool mail');
  recording.forget();
  const { promise: done, resolve } = Promise.withResolvers<void>();
  const worker = await runJobs({ engine, store, tools, onAsyncResult: () => resolve() });
  await done;
  await worker.close();
  await engine.close();
  const job = recording.span('execute_tool mail');
  expect(job.attributes['gen_ai.tool.call.id']).toBe('c1');
  expect(job.spanContext().traceId).not.toBe(enqueued.spanContext().traceId);
  expect(job.links).toHaveLength(1);
  expect(job.links[0]?.context).toMatchObject({
    traceId: enqueued.spanContext().traceId,
    spanId: enqueued.spanContext().spanId,
  });
});

test('retries, repairs, removed arguments and attempts are recorded where they happen', async () => {
  const telemetry = openTelemetry();
  const tools = new ToolRegistry({ telemetry }).register(add);
  let tries = 0;
  const flaky: LLMProvider = {
    identity: () => ({ name: 'openai', address: 'api.example.org', port: 443 }),
    async chat() {
      tries += 1;
      if (tries === 1) throw new ProviderError('busy', { status: 503, retryable: true, retryAfterMs: 1 });
      if (tries === 2)
        return {
          content: '',
          finishReason: 'tool_calls',
          toolCalls: [{ id: 'a', name: 'add', arguments: { a: 1 } }],
        };
      if (tries === 3)
        return {
          content: '',
          finishReason: 'tool_calls',
          toolCalls: [{ id: 'b', name: 'add', arguments: '{"a": "1", "b": 2, "note": "x"' }],
        };
      return { content: '3', finishReason: 'stop', toolCalls: [] };
    },
  };
  await runToolLoop({ provider: flaky, model: 'm', tools }, messages);
  const [retried] = recording.spans.filter(({ events }) => events.length > 0);
  expect(retried?.name).toBe('chat m');
  expect(retried?.events[0]).toMatchObject({
    name: 'toolwright.request.retry',
    attributes: { 'error.type': '503' },
  });
  expect(retried?.attributes).toMatchObject({
    'gen_ai.provider.name': 'openai',
    'server.address': 'api.example.org',
    'server.port': 443,
  });
  const calls = recording.spans.filter(({ name }) => name === 'execute_tool add');
  const byId = Object.fromEntries(
    calls.map(({ attributes }) => [attributes['gen_ai.tool.call.id'], attributes]),
  );
  expect(byId.a).toMatchObject({ 'toolwright.call.status': 'rejected', 'error.type': 'InvalidArguments' });
  expect(byId.b).toMatchObject({
    'toolwright.call.status': 'success',
    'toolwright.call.attempt': 2,
    'toolwright.call.removed_arguments': ['note'],
  });
  expect(byId.b?.['toolwright.call.repairs']).toHaveLength(2);
  expect(JSON.stringify(calls.map(({ attributes }) => attributes))).not.toMatch(/"x"/);
});

test('a fallback provider is called in its own request span', async () => {
  const telemetry = openTelemetry();
  const broken: LLMProvider = {
    chat: () => Promise.reject(new ProviderError('no', { status: 401, retryable: false })),
  };
  const other = new ScriptedProvider([{ content: 'hi' }]);
  const config = { provider: broken, model: 'm', fallback: [{ provider: other, model: 'n' }], telemetry };
  await runToolLoop(config, messages);
  expect(recording.family).toEqual(['chat m < invoke_agent', 'chat n < invoke_agent', 'invoke_agent < -']);
  expect(recording.span('chat m').attributes['error.type']).toBe('401');
  expect(recording.span('chat m').status.code).toBe(SpanStatusCode.ERROR);
  expect(recording.span('chat n').status.code).toBe(SpanStatusCode.UNSET);
  expect(recording.span('invoke_agent').status.code).toBe(SpanStatusCode.UNSET);
});

test('results of context.once and context.ask are recorded as replays when a call is executed again', async () => {
  const telemetry = openTelemetry();
  const book = defineTool({
    name: 'book',
    description: 'Books',
    parameters: { type: 'object', properties: {} },
    execute: async (_args, context) => {
      await context.once('hold', () => 'held');
      const sure = await context.ask({ message: 'Are you sure?', schema: { type: 'boolean' } });
      return sure ? 'booked' : 'left';
    },
  });
  const provider = new ScriptedProvider([{ toolCalls: [{ id: 'c1', name: 'book' }] }, { content: 'ok' }]);
  const config = { provider, model: 'm', tools: [book], telemetry };
  const first = await runToolLoop(config, messages);
  expect(recording.span('execute_tool book').events).toEqual([]);
  recording.forget();
  const answers = (first.pending ?? []).map(({ id }) => ({ id, value: true }));
  await resumeToolLoop(config, first.state, answers);
  const again = recording.span('execute_tool book');
  expect(again.attributes['toolwright.call.waited_for']).toEqual(['question']);
  expect(again.events.map(({ name, attributes }) => [name, attributes])).toEqual([
    ['toolwright.call.replay', { 'toolwright.call.replay.of': 'once', 'toolwright.call.replay.key': 'hold' }],
    ['toolwright.call.replay', { 'toolwright.call.replay.of': 'answer', 'toolwright.call.replay.key': '0' }],
  ]);
});

test('a resumed run records which calls already had results and are not executed again', async () => {
  const tools = new ToolRegistry({ telemetry: openTelemetry() }).register(ask, add);
  const provider = new ScriptedProvider([
    {
      toolCalls: [
        { id: 'c1', name: 'add', arguments: { a: 1, b: 2 } },
        { id: 'c2', name: 'pay', arguments: { amount: 5 } },
      ],
    },
    { content: 'done' },
  ]);
  const config = { provider, model: 'm', tools };
  const first = await runToolLoop(config, messages);
  recording.forget();
  const answers = (first.pending ?? []).map(({ id }) => ({ id, approved: true }));
  await resumeToolLoop(config, first.state, answers);
  expect(recording.names).not.toContain('execute_tool add');
  const [event] = recording.span('invoke_agent').events;
  expect([event?.name, event?.attributes]).toEqual([
    'toolwright.run.settled_before',
    { 'toolwright.run.settled_before.call_ids': ['c1'] },
  ]);
});
