import type { Counter, Histogram, Meter } from '@opentelemetry/api';

/** The boundaries that the conventions advise. */
const SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const AGENT_SECONDS = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6];
const MCP_SECONDS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];
const COUNTS = [1, 2, 4, 8, 16, 32, 64, 128];
const COSTS = Array.from({ length: 12 }, (_, power) => 0.0001 * 4 ** power);
const TOKENS = Array.from({ length: 14 }, (_, power) => 4 ** power);

/** Name, unit, boundaries, and what it measures. */
type HistogramRow = readonly [name: string, unit: string, boundaries: number[], description: string];

const INFERENCE = 'gen_ai.client.inference';
const AGENT = 'gen_ai.invoke_agent';

const HISTOGRAMS = {
  inferenceDuration: [
    `${INFERENCE}.duration`,
    's',
    SECONDS,
    'Duration of requests to models, retries included.',
  ],
  timeToFirstChunk: [`${INFERENCE}.time_to_first_chunk`, 's', SECONDS, 'Time until a reply begins to come.'],
  timePerChunk: [`${INFERENCE}.time_per_output_chunk`, 's', SECONDS, 'Time between two parts of a reply.'],
  inputPerRequest: [`${INFERENCE}.operation.input_tokens`, '{token}', TOKENS, 'Input tokens of one request.'],
  outputPerRequest: [
    `${INFERENCE}.operation.output_tokens`,
    '{token}',
    TOKENS,
    'Output tokens of one request.',
  ],
  toolDuration: ['gen_ai.execute_tool.duration', 's', SECONDS, 'Duration of calls of tools.'],
  agentDuration: [`${AGENT}.duration`, 's', AGENT_SECONDS, 'Duration of runs.'],
  agentRequests: [`${AGENT}.inference_calls`, '{inference_call}', COUNTS, 'Requests to models in a run.'],
  agentCalls: [`${AGENT}.tool_calls`, '{tool_call}', COUNTS, 'Calls of tools in a run.'],
  agentCost: [
    'toolwright.invoke_agent.cost',
    '{cost}',
    COSTS,
    'Cost of runs, those in their calls included.',
  ],
  mcpClientDuration: ['mcp.client.operation.duration', 's', MCP_SECONDS, 'Duration of MCP requests, sent.'],
  mcpServerDuration: [
    'mcp.server.operation.duration',
    's',
    MCP_SECONDS,
    'Duration of MCP requests, answered.',
  ],
} as const satisfies Readonly<Record<string, HistogramRow>>;

const USAGE = `${INFERENCE}.usage`;

const COUNTERS = {
  inputTokens: [`${USAGE}.input_tokens`, '{token}', 'Input tokens, those from a cache included.'],
  outputTokens: [`${USAGE}.output_tokens`, '{token}', 'Output tokens, reasoning included.'],
  cacheRead: [`${USAGE}.cache_read.input_tokens`, '{token}', 'Input tokens that were read from a cache.'],
  cacheWrite: [`${USAGE}.cache_write.input_tokens`, '{token}', 'Input tokens that were written to a cache.'],
  reasoning: [`${USAGE}.reasoning.output_tokens`, '{token}', 'Output tokens of reasoning.'],
  inferenceCost: [
    'toolwright.inference.cost',
    '{cost}',
    'Cost of requests to models, by the prices of budgets.',
  ],
  toolCost: ['toolwright.execute_tool.cost', '{cost}', 'Cost of calls of tools that say theirs.'],
} as const;

/** The metrics that are recorded, by the names of the GenAI and MCP conventions; they have none for costs. */
export type Instruments = { readonly [Key in keyof typeof HISTOGRAMS]: Histogram } & {
  readonly [Key in keyof typeof COUNTERS]: Counter;
};

/** Makes the instruments of a meter; one that exists already is the same. */
export function createInstruments(meter: Meter): Instruments {
  const made: Record<string, Histogram | Counter> = {};
  for (const [key, [name, unit, explicitBucketBoundaries, description]] of Object.entries(HISTOGRAMS))
    made[key] = meter.createHistogram(name, { description, unit, advice: { explicitBucketBoundaries } });
  for (const [key, [name, unit, description]] of Object.entries(COUNTERS))
    made[key] = meter.createCounter(name, { description, unit });
  return made as Instruments;
}
