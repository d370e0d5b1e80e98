import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  Conversations,
  defineTool,
  type JobEngine,
  type LLMProvider,
  recoverRuns,
  runJobs,
  runToolLoop,
  ToolRegistry,
} from 'toolwright';
import { bullmqEngine } from 'toolwright/bullmq';
import { openTelemetry } from 'toolwright/opentelemetry';
import { pgBossEngine } from 'toolwright/pg-boss';
import { createAssistantHandler, SatelliteClient, toNodeHandler } from 'toolwright/satellite';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { describePostgres, describeRedis } from '../../services/services.js';
import { serve } from '../../setup/loopback.js';
import { requestText } from '../satellite/assistant-server.js';
import { Recording } from './recording.js';

let recording: Recording;
beforeEach(() => {
  recording = new Recording();
});
afterEach(() => recording.end());

const messages = [{ role: 'user' as const, content: 'Go' }];
const none = { type: 'object', properties: {} } as const;
const look = defineTool({ name: 'look', description: 'Looks', parameters: none, execute: () => 'seen' });
const callingOnce = () =>
  new ScriptedProvider([{ toolCalls: [{ id: 'c1', name: 'look', arguments: {} }] }, { content: 'ok' }]);

test('openTelemetry records one span per request and call of a turn of Conversations', async () => {
  const telemetry = openTelemetry();
  const tools = new ToolRegistry().register(look);
  const config = { provider: callingOnce(), model: 'm', tools, telemetry, agentName: 'shop' };
  const conversations = new Conversations({ store: new MemoryRunStore(), config });
  await conversations.prompt('c1', 'Go');
  await conversations.idle('c1');
  await conversations.close();
  expect(recording.family).toEqual([
    'chat m < invoke_agent shop',
    'chat m < invoke_agent shop',
    'execute_tool look < invoke_agent shop',
    'invoke_agent shop < -',
  ]);
  expect(recording.span('invoke_agent shop').attributes['gen_ai.conversation.id']).toBe('c1');
});

test('openTelemetry records one span per call of a satellite and per request of its assistant', async () => {
  const telemetry = openTelemetry();
  const provider = new ScriptedProvider([{ content: requestText('look', {}) }, { content: 'ok' }]);
  await using server = await serve(
    toNodeHandler(createAssistantHandler({ provider, model: 'm', telemetry })),
  );
  const tools = new ToolRegistry({ telemetry }).register(look);
  const outcome = await new SatelliteClient({ url: server.url, tools }).send('Go');
  expect(outcome.status).toBe('completed');
  expect(recording.names.toSorted()).toEqual(['chat m', 'chat m', 'execute_tool look']);
});

test('a run that recoverRuns continues links to the lost run, and repeats no span of its calls', async () => {
  const telemetry = openTelemetry();
  const store = new MemoryRunStore();
  const begun = Promise.withResolvers<void>();
  let requests = 0;
  const dying: LLMProvider = {
    chat: async () => {
      requests += 1;
      if (requests === 1) {
        const toolCalls = [{ id: 'c1', name: 'look', arguments: {} }];
        return { content: '', toolCalls, finishReason: 'tool_calls' };
      }
      begun.resolve();
      // Its process dies here.
      return new Promise(() => {});
    },
  };
  const tools = new ToolRegistry({ telemetry }).register(look);
  const config = { model: 'm', tools, store, checkpoint: 'step', leaseMs: 60 } as const;
  const kill = new AbortController();
  const lost = runToolLoop({ ...config, provider: dying, runId: 'r1', signal: kill.signal }, messages);
  await begun.promise;
  const isKept = () => JSON.stringify(store.read('r1')).includes('"forLLM":"seen"');
  while (!isKept()) await new Promise((resolve) => setTimeout(resolve, 5));
  // Another process takes the run over, as after the end of the lease; later writes of the first are ignored.
  const { run } = store.seize({ runId: 'r1', claim: 'other', leaseMs: 1, from: 'anybody' }) as {
    run: object;
  };
  expect(run).toBeDefined();
  kill.abort();
  await lost.catch(() => {});
  const [before] = recording.spans.filter(({ name }) => name === 'invoke_agent');
  recording.forget();
  for (;;) {
    const provider = new ScriptedProvider([{ content: 'ok' }]);
    const [recovered] = await recoverRuns({ store, config: { ...config, provider } });
    if (recovered !== undefined) break;
  }
  expect(recording.names.toSorted()).toEqual(['chat m', 'invoke_agent']);
  const after = recording.span('invoke_agent');
  expect(after.links).toMatchObject([
    {
      context: { traceId: before?.spanContext().traceId, spanId: before?.spanContext().spanId },
      attributes: { 'toolwright.link': 'goes_on_from' },
    },
  ]);
});

/** Expects one span where a job is enqueued, one where it runs, and a link between them. */
async function expectOneSpanEach(open: () => JobEngine): Promise<void> {
  const telemetry = openTelemetry();
  const store = new MemoryRunStore();
  const background = { background: true, execute: () => 'sent' };
  const mail = defineTool({ name: 'mail', description: 'Mails', parameters: none, ...background });
  const [engine, working] = [open(), open()];
  const tools = new ToolRegistry({ telemetry, engine, store }).register(mail);
  const provider = new ScriptedProvider([{ toolCalls: [{ id: 'c1', name: 'mail' }] }, { content: 'ok' }]);
  await runToolLoop({ provider, model: 'm', tools }, messages);
  const enqueued = recording.span('execute_tool mail');
  expect(enqueued.attributes['toolwright.call.status']).toBe('started');
  recording.forget();
  const done = Promise.withResolvers<void>();
  const others = new ToolRegistry({ telemetry }).register(mail);
  const worker = await runJobs({
    engine: working,
    store,
    tools: others,
    onAsyncResult: () => done.resolve(),
  });
  await done.promise;
  await worker.close();
  await Promise.all([engine.close(), working.close()]);
  const job = recording.span('execute_tool mail');
  const { traceId, spanId } = enqueued.spanContext();
  expect(job.links).toMatchObject([
    { context: { traceId, spanId }, attributes: { 'toolwright.link': 'started_by' } },
  ]);
  const points = (await recording.points()).filter(({ name }) => name === 'gen_ai.execute_tool.duration');
  expect(points.map(({ value }) => (value as { count: number }).count)).toEqual([1]);
}

describeRedis('openTelemetry over BullMQ', ({ url, newName }) => {
  test('records a job once, and links it to the call that enqueued it', async () => {
    const { hostname, port } = new URL(url);
    const queue = newName();
    const connection = { host: hostname, port: Number(port) };
    await expectOneSpanEach(() => bullmqEngine({ connection, queue, leaseMs: 1000 }));
  });
});

describePostgres('openTelemetry over pg-boss', ({ url, newName }) => {
  test('records a job once, and links it to the call that enqueued it', async () => {
    const [schema, queue] = [newName(), newName()];
    await expectOneSpanEach(() => pgBossEngine({ connection: url, schema, queue, heartbeatSeconds: 10 }));
  });
});

describe('openTelemetry, for the origin and the cost of a reply,', () => {
  const usage = { inputTokens: 1_000_000, outputTokens: 0, totalTokens: 1_000_000 };
  const provider = (): LLMProvider => {
    let requests = 0;
    return {
      identity: () => ({ name: 'openai' }),
      chat: async () => {
        requests += 1;
        const toolCalls = requests === 1 ? [{ id: 'c1', name: 'paid', arguments: { n: 2 } }] : [];
        const origin = { id: `resp_${requests}`, model: 'gpt-5-2025-08-07' };
        return { content: 'x', toolCalls, finishReason: 'stop', usage, origin };
      },
    };
  };
  const paid = defineTool({
    name: 'paid',
    description: 'Costs',
    parameters: { type: 'object', properties: { n: { type: 'integer' } } },
    cost: ({ n }: { n?: number }) => (n ?? 0) / 4,
    execute: () => 'done',
  } as never);

  test('records the id and the model that the server returns in the span of the request', async () => {
    const tools = new ToolRegistry({ telemetry: openTelemetry() }).register(paid);
    await runToolLoop({ provider: provider(), model: 'gpt-5', tools }, messages);
    const asked = recording.spans.filter(({ name }) => name === 'chat gpt-5');
    expect(asked.map(({ attributes }) => attributes['gen_ai.response.id']).toSorted()).toEqual([
      'resp_1',
      'resp_2',
    ]);
    expect(asked[0]?.attributes['gen_ai.response.model']).toBe('gpt-5-2025-08-07');
  });

  test('records costs by the prices of the budget in spans and metrics, per run, request and tool', async () => {
    const tools = new ToolRegistry({ telemetry: openTelemetry() }).register(paid);
    const budget = { cost: 100, prices: { 'gpt-5': { input: 1.5, output: 10 } } };
    const config = { provider: provider(), model: 'gpt-5', tools, budget, agentName: 'shop' };
    const run = await runToolLoop({ ...config, llmOptions: { max_tokens: 10 } }, messages);
    expect(run.spent).toMatchObject({ cost: 3.5, tools: { paid: { calls: 1, cost: 0.5 } } });
    expect(recording.span('invoke_agent shop').attributes['toolwright.run.cost']).toBe(3.5);
    expect(recording.span('execute_tool paid').attributes['toolwright.call.cost']).toBe(0.5);
    const points = await recording.points();
    const of = (metric: string) => points.filter(({ name }) => name === metric);
    expect(of('toolwright.inference.cost')).toMatchObject([
      { value: 3, attributes: { 'gen_ai.request.model': 'gpt-5', 'gen_ai.provider.name': 'openai' } },
    ]);
    expect(of('toolwright.execute_tool.cost')).toMatchObject([
      { value: 0.5, attributes: { 'gen_ai.tool.name': 'paid' } },
    ]);
    expect(of('toolwright.invoke_agent.cost')).toMatchObject([
      { value: { count: 1, sum: 3.5 }, attributes: { 'gen_ai.agent.name': 'shop' } },
    ]);
  });
});
