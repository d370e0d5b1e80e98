import type { Counter, Histogram, Meter } from '@opentelemetry/api';

/** The metrics that are recorded, by the names of the GenAI conventions. */
export interface Instruments {
  readonly inferenceDuration: Histogram;
  readonly timeToFirstChunk: Histogram;
  readonly timePerChunk: Histogram;
  readonly inputTokens: Counter;
  readonly outputTokens: Counter;
  readonly cacheRead: Counter;
  readonly cacheWrite: Counter;
  readonly reasoning: Counter;
  readonly inputPerRequest: Histogram;
  readonly outputPerRequest: Histogram;
  readonly toolDuration: Histogram;
  readonly agentDuration: Histogram;
  readonly agentRequests: Histogram;
  readonly agentCalls: Histogram;
  readonly mcpClientDuration: Histogram;
  readonly mcpServerDuration: Histogram;
}

/** The boundaries that the conventions advise. */
const SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const AGENT_SECONDS = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6];
const TOKENS = Array.from({ length: 14 }, (_, power) => 4 ** power);
const COUNTS = [1, 2, 4, 8, 16, 32, 64, 128];
const MCP_SECONDS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];

/** Makes the instruments of a meter; one that exists already is the same. */
export function createInstruments(meter: Meter): Instruments {
  const histogram = (
    name: string,
    { description, boundaries, unit = 's' }: { description: string; boundaries: number[]; unit?: string },
  ) =>
    meter.createHistogram(name, {
      description,
      unit,
      advice: { explicitBucketBoundaries: boundaries },
    });
  const tokens = (name: string, description: string) =>
    meter.createCounter(`gen_ai.client.inference.usage.${name}`, { description, unit: '{token}' });
  return {
    inferenceDuration: histogram('gen_ai.client.inference.duration', {
      description: 'Duration of requests to models, retries included.',
      boundaries: SECONDS,
    }),
    timeToFirstChunk: histogram('gen_ai.client.inference.time_to_first_chunk', {
      description: 'Time until the first part of a streamed reply.',
      boundaries: SECONDS,
    }),
    timePerChunk: histogram('gen_ai.client.inference.time_per_output_chunk', {
      description: 'Time between two parts of a streamed reply.',
      boundaries: SECONDS,
    }),
    inputTokens: tokens('input_tokens', 'Input tokens, those from a cache included.'),
    outputTokens: tokens('output_tokens', 'Output tokens, reasoning included.'),
    cacheRead: tokens('cache_read.input_tokens', 'Input tokens that were read from a cache.'),
    cacheWrite: tokens('cache_write.input_tokens', 'Input tokens that were written to a cache.'),
    reasoning: tokens('reasoning.output_tokens', 'Output tokens of reasoning.'),
    inputPerRequest: histogram('gen_ai.client.inference.operation.input_tokens', {
      description: 'Input tokens of one request.',
      unit: '{token}',
      boundaries: TOKENS,
    }),
    outputPerRequest: histogram('gen_ai.client.inference.operation.output_tokens', {
      description: 'Output tokens of one request.',
      unit: '{token}',
      boundaries: TOKENS,
    }),
    toolDuration: histogram('gen_ai.execute_tool.duration', {
      description: 'Duration of calls of tools.',
      boundaries: SECONDS,
    }),
    agentDuration: histogram('gen_ai.invoke_agent.duration', {
      description: 'Duration of runs.',
      boundaries: AGENT_SECONDS,
    }),
    agentRequests: histogram('gen_ai.invoke_agent.inference_calls', {
      description: 'Requests to models in a run.',
      unit: '{inference_call}',
      boundaries: COUNTS,
    }),
    agentCalls: histogram('gen_ai.invoke_agent.tool_calls', {
      description: 'Calls of tools in a run.',
      unit: '{tool_call}',
      boundaries: COUNTS,
    }),
    mcpClientDuration: histogram('mcp.client.operation.duration', {
      description: 'Duration of MCP requests, seen by who sends them.',
      boundaries: MCP_SECONDS,
    }),
    mcpServerDuration: histogram('mcp.server.operation.duration', {
      description: 'Duration of MCP requests, seen by who answers them.',
      boundaries: MCP_SECONDS,
    }),
  };
}
