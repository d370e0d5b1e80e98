import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { defineTool, runToolLoop, ToolRegistry } from 'toolwright';
import { openTelemetry } from 'toolwright/opentelemetry';
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

test('openTelemetry records a run with its requests and calls, and what tools do is a part of their calls', async () => {
  const telemetry = openTelemetry();
  const tools = new ToolRegistry({ telemetry }).register(add);
  const usage = { inputTokens: 5, outputTokens: 2, totalTokens: 7 };
  const provider = new ScriptedProvider([
    { toolCalls: [{ id: 'c1', name: 'add', arguments: { a: 1, b: 2 } }], usage },
    { content: '3', usage },
  ]);
  const run = await runToolLoop({ provider, model: 'gpt-5', tools, agentName: 'sums' }, messages);
  expect(run.content).toBe('3');
  expect(recording.names).toEqual([
    'invoke_agent sums',
    'chat gpt-5',
    'execute_tool add',
    'query',
    'chat gpt-5',
  ]);
  const parents = recording.spans.map((span) => recording.parentOf(span));
  expect(parents).toEqual([
    undefined,
    'invoke_agent sums',
    'invoke_agent sums',
    'execute_tool add',
    'invoke_agent sums',
  ]);
  expect(recording.spans.map(({ kind }) => kind)).toEqual([
    SpanKind.INTERNAL,
    SpanKind.CLIENT,
    SpanKind.INTERNAL,
    SpanKind.INTERNAL,
    SpanKind.CLIENT,
  ]);
  expect(recording.spans.every(({ status }) => status.code === SpanStatusCode.UNSET)).toBe(true);
});
