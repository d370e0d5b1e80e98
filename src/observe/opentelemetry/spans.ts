import type {
  Attributes,
  Context,
  Counter,
  Histogram,
  Link,
  Meter,
  Span,
  SpanKind,
  Tracer,
} from '@opentelemetry/api';
import type { TracePlace } from '../../core/contract/ports.js';
import type { Trace, TraceCarrier, TraceEvent } from '../../core/contract/telemetry.js';
import type { Api } from './load-api.cjs';

/**
 * Attribute names of the GenAI and MCP conventions. They are written out because they have moved to another repository
 * (open-telemetry/semantic-conventions-genai, in development), which publishes no constants yet.
 */
export const GEN_AI = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  conversation: 'gen_ai.conversation.id',
  agent: 'gen_ai.agent.name',
  outputType: 'gen_ai.output.type',
  requestModel: 'gen_ai.request.model',
  stream: 'gen_ai.request.stream',
  maxTokens: 'gen_ai.request.max_tokens',
  temperature: 'gen_ai.request.temperature',
  topP: 'gen_ai.request.top_p',
  topK: 'gen_ai.request.top_k',
  seed: 'gen_ai.request.seed',
  stopSequences: 'gen_ai.request.stop_sequences',
  frequencyPenalty: 'gen_ai.request.frequency_penalty',
  presencePenalty: 'gen_ai.request.presence_penalty',
  choices: 'gen_ai.request.choice.count',
  reasoningLevel: 'gen_ai.request.reasoning.level',
  previousResponse: 'gen_ai.request.previous_response.id',
  finishReasons: 'gen_ai.response.finish_reasons',
  responseId: 'gen_ai.response.id',
  responseModel: 'gen_ai.response.model',
  firstChunk: 'gen_ai.response.time_to_first_chunk',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cacheRead: 'gen_ai.usage.cache_read.input_tokens',
  cacheWrite: 'gen_ai.usage.cache_write.input_tokens',
  reasoning: 'gen_ai.usage.reasoning.output_tokens',
  modality: 'gen_ai.token.modality',
  inputMessages: 'gen_ai.input.messages',
  outputMessages: 'gen_ai.output.messages',
  toolDefinitions: 'gen_ai.tool.definitions',
  tool: 'gen_ai.tool.name',
  toolType: 'gen_ai.tool.type',
  toolDescription: 'gen_ai.tool.description',
  callId: 'gen_ai.tool.call.id',
  callArguments: 'gen_ai.tool.call.arguments',
  callResult: 'gen_ai.tool.call.result',
} as const;

/** Span events; they contain contents only if those are recorded. */
export const EXCEPTION = {
  request: 'gen_ai.client.operation.exception',
  call: 'gen_ai.execute_tool.exception',
  type: 'exception.type',
  message: 'exception.message',
} as const;

export const COMMON = {
  errorType: 'error.type',
  serverAddress: 'server.address',
  serverPort: 'server.port',
} as const;

/** Attributes without a name in the conventions. */
export const OWN = {
  runId: 'toolwright.run.id',
  runStatus: 'toolwright.run.status',
  runWaits: 'toolwright.run.waits_for',
  /** Seconds between the run's suspension and its resumption. */
  runWaited: 'toolwright.run.waited',
  /** At the prices of its budget. */
  runCost: 'toolwright.run.cost',
  requestCost: 'toolwright.request.cost',
  callCost: 'toolwright.call.cost',
  callStatus: 'toolwright.call.status',
  attempt: 'toolwright.call.attempt',
  repairs: 'toolwright.call.repairs',
  removed: 'toolwright.call.removed_arguments',
  waits: 'toolwright.call.waits_for',
  answered: 'toolwright.call.waited_for',
  taskId: 'toolwright.task.id',
  /** The relation of a link. */
  link: 'toolwright.link',
  retry: 'toolwright.request.retry',
  retryDelay: 'toolwright.request.retry.delay',
  replay: 'toolwright.call.replay',
  replayOf: 'toolwright.call.replay.of',
  replayKey: 'toolwright.call.replay.key',
  settled: 'toolwright.run.settled_before',
  settledCalls: 'toolwright.run.settled_before.call_ids',
} as const;

/** What a span needs to record itself. */
export interface Recorder {
  readonly api: Api;
  readonly tracer: Tracer;
  readonly instruments: Instruments;
}

/** The start of a span. */
interface SpanStart {
  readonly name: string;
  readonly kind: SpanKind;
  readonly attributes: Attributes;
  /** Default: the active context. */
  readonly parent?: Context | undefined;
  readonly links?: readonly Link[] | undefined;
}

/** A failure: its `error.type`, a message for people, and the event with the exception. */
export interface SpanFailure {
  readonly type: string;
  readonly message?: string | undefined;
  readonly event?: string | undefined;
}

/** A span, its context, and the time since its start. */
export abstract class OpenSpan<End> implements Trace<End> {
  protected readonly recorder: Recorder;
  protected readonly span: Span;
  readonly context: Context;
  readonly #since = performance.now();
  #isEnded = false;

  constructor(recorder: Recorder, { name, kind, attributes, parent, links }: SpanStart) {
    const { api, tracer } = recorder;
    const around = parent ?? api.context.active();
    this.recorder = recorder;
    this.span = tracer.startSpan(name, { kind, attributes, ...(links ? { links: [...links] } : {}) }, around);
    this.context = api.trace.setSpan(around, this.span);
  }

  get place(): TracePlace | undefined {
    const { isSpanContextValid } = this.recorder.api;
    const at = this.span.spanContext();
    if (!isSpanContextValid(at)) return undefined;
    const flags = at.traceFlags.toString(16).padStart(2, '0');
    const tracestate = at.traceState?.serialize();
    return {
      traceparent: `00-${at.traceId}-${at.spanId}-${flags}`,
      ...(tracestate ? { tracestate } : {}),
    };
  }

  /** The trace headers for a message to another process. */
  get carrier(): TraceCarrier {
    const carrier = {};
    this.recorder.api.propagation.inject(this.context, carrier);
    return carrier;
  }

  within<Value>(work: () => Value): Value {
    return this.recorder.api.context.with(this.context, work);
  }

  event(event: TraceEvent): void {
    if (!this.span.isRecording()) return;
    switch (event.type) {
      case 'request-retry':
        this.span.addEvent(OWN.retry, {
          [OWN.retryDelay]: event.delayMs / 1000,
          [COMMON.errorType]: typeOfError(event.error),
        });
        return;
      case 'replay':
        this.span.addEvent(OWN.replay, { [OWN.replayOf]: event.of, [OWN.replayKey]: event.key });
        return;
      case 'settled-before':
        this.span.addEvent(OWN.settled, { [OWN.settledCalls]: [...event.callIds] });
    }
  }

  end(end: End): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    const failure = this.settle(end, (performance.now() - this.#since) / 1000);
    if (failure !== undefined && this.span.isRecording()) {
      const { type, message, event } = failure;
      this.span.setAttribute(COMMON.errorType, type);
      if (event !== undefined)
        this.span.addEvent(event, given({ [EXCEPTION.type]: type, [EXCEPTION.message]: message }));
      this.span.setStatus({
        code: this.recorder.api.SpanStatusCode.ERROR,
        ...(message === undefined ? {} : { message }),
      });
    }
    this.span.end();
  }

  /** Seconds since the start. */
  protected get seconds(): number {
    return (performance.now() - this.#since) / 1000;
  }

  /** Records the outcome; returns the failure, if it is one. */
  protected abstract settle(end: End, seconds: number): SpanFailure | undefined;
}

/** A link to work in another trace; empty if the trace context is invalid. */
export function linkTo(
  { api }: Pick<Recorder, 'api'>,
  place: TracePlace | undefined,
  what: string,
): readonly Link[] {
  const parts = /^00-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})$/.exec(place?.traceparent ?? '');
  if (parts === null) return [];
  const [, traceId = '', spanId = '', flags = ''] = parts;
  const context = {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16),
    isRemote: true,
    ...(place?.tracestate ? { traceState: api.createTraceState(place.tracestate) } : {}),
  };
  return api.isSpanContextValid(context) ? [{ context, attributes: { [OWN.link]: what } }] : [];
}

/** The `error.type` of an error: a status, a code, or the name of its class. */
export function typeOfError(error: unknown): string {
  if (typeof error !== 'object' || error === null) return '_OTHER';
  try {
    const { status, code, name } = error as Readonly<Record<string, unknown>>;
    if (typeof status === 'number') return String(status);
    if (typeof code === 'string' && /^[\w.-]{1,64}$/.test(code)) return code;
    if (typeof name === 'string' && name !== 'Error' && /^[\w$.-]{1,64}$/.test(name)) return name;
    const { name: made } = error.constructor;
    return made === '' || made === 'Object' ? '_OTHER' : made;
  } catch {
    return '_OTHER';
  }
}

/** Attributes without undefined values. */
export function given(attributes: Readonly<Record<string, Attributes[string] | undefined>>): Attributes {
  const set: Attributes = {};
  for (const name in attributes) if (attributes[name] !== undefined) set[name] = attributes[name];
  return set;
}

/** Bucket boundaries that the conventions recommend. */
const SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const AGENT_SECONDS = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6];
const MCP_SECONDS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];
const COUNTS = [1, 2, 4, 8, 16, 32, 64, 128];
const COSTS = Array.from({ length: 12 }, (_, power) => 0.0001 * 4 ** power);
const TOKENS = Array.from({ length: 14 }, (_, power) => 4 ** power);

/** Name, unit, boundaries and description. */
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

/** The recorded metrics, named by the GenAI and MCP conventions; names for costs are our own. */
export type Instruments = { readonly [Key in keyof typeof HISTOGRAMS]: Histogram } & {
  readonly [Key in keyof typeof COUNTERS]: Counter;
};

/** Creates the instruments of a meter; the meter returns instruments that exist already. */
export function createInstruments(meter: Meter): Instruments {
  const made: Record<string, Histogram | Counter> = {};
  for (const [key, [name, unit, explicitBucketBoundaries, description]] of Object.entries(HISTOGRAMS))
    made[key] = meter.createHistogram(name, { description, unit, advice: { explicitBucketBoundaries } });
  for (const [key, [name, unit, description]] of Object.entries(COUNTERS))
    made[key] = meter.createCounter(name, { description, unit });
  return made as Instruments;
}
