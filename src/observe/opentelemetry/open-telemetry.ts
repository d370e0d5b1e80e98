import type {
  Attributes,
  Context,
  Counter,
  Histogram,
  Link,
  Meter,
  MeterProvider,
  Span,
  SpanContext,
  SpanKind,
  Tracer,
  TracerProvider,
} from '@opentelemetry/api';
import type { LLMRequest, LLMResponse, Usage } from '../../core/contract/llm-provider.js';
import type { TracePlace } from '../../core/contract/ports.js';
import type {
  CallTrace,
  McpFacts,
  RequestTrace,
  RunTrace,
  Telemetry,
  Trace,
  TraceCarrier,
  TracedCall,
  TracedCallEnd,
  TracedMessage,
  TracedMessageEnd,
  TracedRequest,
  TracedRequestEnd,
  TracedRun,
  TracedRunEnd,
  TracedTask,
  TraceEvent,
} from '../../core/contract/telemetry.js';
import type { ToolResult } from '../../core/contract/tool-result.js';
import { checkOptions } from '../../core/errors/author-fault.js';
import { BOOLEAN, either, objectOf, optionTable, withMethods } from '../../core/kernel/options.js';
import { ContentWriter, type RecordedContent } from './content.js';
import { loadApi } from './load-api.cjs';

/*
 * Attributes have the names of the GenAI and MCP conventions, which are written out because they have moved to another
 * repository (open-telemetry/semantic-conventions-genai, in development), which publishes no constants yet. Attributes
 * without a name there begin with `toolwright.`.
 */

/** What a span needs to record itself. */
interface Recorder {
  readonly api: ReturnType<typeof loadApi>;
  readonly tracer: Tracer;
  readonly instruments: Instruments;
  readonly content: RecordedContent;
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
interface SpanFailure {
  readonly type: string;
  readonly message?: string | undefined;
  readonly event?: string | undefined;
}

/** A span, its context, and the time since its start. */
abstract class OpenSpan<End> implements Trace<End> {
  protected readonly span: Span;
  readonly context: Context;
  readonly #since = performance.now();
  #isEnded = false;

  constructor(
    protected readonly recorder: Recorder,
    { name, kind, attributes, parent, links }: SpanStart,
  ) {
    const { api, tracer } = recorder;
    const around = parent ?? api.context.active();
    this.span = tracer.startSpan(name, { kind, attributes, ...(links && { links: [...links] }) }, around);
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
      ...(tracestate && { tracestate }),
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
        this.span.addEvent('toolwright.request.retry', {
          'toolwright.request.retry.delay': event.delayMs / 1000,
          'error.type': typeOfError(event.error),
        });
        return;
      case 'replay':
        this.span.addEvent('toolwright.call.replay', {
          'toolwright.call.replay.of': event.of,
          'toolwright.call.replay.key': event.key,
        });
        return;
      case 'settled-before':
        this.span.addEvent('toolwright.run.settled_before', {
          'toolwright.run.settled_before.call_ids': [...event.callIds],
        });
    }
  }

  end(end: End): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    const failure = this.settle(end, this.seconds);
    if (failure !== undefined && this.span.isRecording()) {
      const { type, message, event } = failure;
      this.span.setAttribute('error.type', type);
      if (event !== undefined)
        this.span.addEvent(event, given({ 'exception.type': type, 'exception.message': message }));
      this.span.setStatus({ code: this.recorder.api.SpanStatusCode.ERROR, ...(message && { message }) });
    }
    this.span.end();
  }

  /** Seconds since the start. */
  protected get seconds(): number {
    return (performance.now() - this.#since) / 1000;
  }

  /** Measures an execution of a tool; returns the attributes of the measurement. */
  protected measureTool(tool: string, seconds: number, failure: SpanFailure | undefined): Attributes {
    const about = { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': tool, ...errorOf(failure) };
    const { toolDuration } = this.recorder.instruments;
    toolDuration.record(seconds, { ...about, 'gen_ai.tool.type': 'function' }, this.context);
    return about;
  }

  /** Records the outcome; returns the failure, if it is one. */
  protected abstract settle(end: End, seconds: number): SpanFailure | undefined;
}

/** The attribute of a measurement that failed. */
function errorOf(failure: SpanFailure | undefined): Attributes {
  return failure === undefined ? {} : { 'error.type': failure.type };
}

/** A link to work in another trace; empty if the trace context is invalid. */
function linkTo({ api }: Recorder, place: TracePlace | undefined, what: string): readonly Link[] {
  const parts = /^00-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})$/.exec(place?.traceparent ?? '');
  if (parts === null) return [];
  const [, traceId = '', spanId = '', flags = ''] = parts;
  const context = {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16),
    isRemote: true,
    ...(place?.tracestate && { traceState: api.createTraceState(place.tracestate) }),
  };
  return linkToSpan(api, context, what);
}

function linkToSpan(api: Recorder['api'], context: SpanContext | undefined, what: string): readonly Link[] {
  if (context === undefined || !api.isSpanContextValid(context)) return [];
  return [{ context, attributes: { 'toolwright.link': what } }];
}

/** The `error.type` of an error: a status, a code, or the name of its class. */
function typeOfError(error: unknown): string {
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
function given(attributes: Readonly<Record<string, Attributes[string] | readonly string[]>>): Attributes {
  const set: Attributes = {};
  for (const name in attributes) {
    const value = attributes[name];
    if (value !== undefined) set[name] = Array.isArray(value) ? [...value] : (value as Attributes[string]);
  }
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
    'Duration of requests to models, including retries.',
  ],
  timeToFirstChunk: [`${INFERENCE}.time_to_first_chunk`, 's', SECONDS, 'Time to the first part of a reply.'],
  timePerChunk: [`${INFERENCE}.time_per_output_chunk`, 's', SECONDS, 'Time between two parts of a reply.'],
  inputPerRequest: [`${INFERENCE}.operation.input_tokens`, '{token}', TOKENS, 'Input tokens of one request.'],
  outputPerRequest: [
    `${INFERENCE}.operation.output_tokens`,
    '{token}',
    TOKENS,
    'Output tokens of one request.',
  ],
  toolDuration: ['gen_ai.execute_tool.duration', 's', SECONDS, 'Duration of tool calls.'],
  agentDuration: [`${AGENT}.duration`, 's', AGENT_SECONDS, 'Duration of runs.'],
  agentRequests: [`${AGENT}.inference_calls`, '{inference_call}', COUNTS, 'Requests to models per run.'],
  agentCalls: [`${AGENT}.tool_calls`, '{tool_call}', COUNTS, 'Tool calls per run.'],
  agentCost: [
    'toolwright.invoke_agent.cost',
    '{cost}',
    COSTS,
    'Cost of runs, including the runs in their calls.',
  ],
  mcpClientDuration: ['mcp.client.operation.duration', 's', MCP_SECONDS, 'Duration of sent MCP requests.'],
  mcpServerDuration: [
    'mcp.server.operation.duration',
    's',
    MCP_SECONDS,
    'Duration of answered MCP requests.',
  ],
} as const satisfies Readonly<Record<string, HistogramRow>>;

const USAGE = `${INFERENCE}.usage`;

const COUNTERS = {
  inputTokens: [`${USAGE}.input_tokens`, '{token}', 'Input tokens, including those from a cache.'],
  outputTokens: [`${USAGE}.output_tokens`, '{token}', 'Output tokens, including reasoning.'],
  cacheRead: [`${USAGE}.cache_read.input_tokens`, '{token}', 'Input tokens that were read from a cache.'],
  cacheWrite: [`${USAGE}.cache_write.input_tokens`, '{token}', 'Input tokens that were written to a cache.'],
  reasoning: [`${USAGE}.reasoning.output_tokens`, '{token}', 'Output tokens of reasoning.'],
  inferenceCost: [
    'toolwright.inference.cost',
    '{cost}',
    'Cost of requests to models, by the prices of budgets.',
  ],
  toolCost: ['toolwright.execute_tool.cost', '{cost}', 'Cost of tool calls whose tools report it.'],
} as const;

/** The recorded metrics, named by the GenAI and MCP conventions; names for costs are our own. */
type Instruments = { readonly [Key in keyof typeof HISTOGRAMS]: Histogram } & {
  readonly [Key in keyof typeof COUNTERS]: Counter;
};

/** Creates the instruments of a meter; the meter returns instruments that exist already. */
function createInstruments(meter: Meter): Instruments {
  const made: Record<string, Histogram | Counter> = {};
  for (const [key, [name, unit, explicitBucketBoundaries, description]] of Object.entries(HISTOGRAMS))
    made[key] = meter.createHistogram(name, { description, unit, advice: { explicitBucketBoundaries } });
  for (const [key, [name, unit, description]] of Object.entries(COUNTERS))
    made[key] = meter.createCounter(name, { description, unit });
  return made as Instruments;
}

/** A tool call: `execute_tool {name}`, or `tools/call {name}` if it arrived over MCP. */
class CallSpan extends OpenSpan<TracedCallEnd> implements CallTrace {
  readonly #writer: ContentWriter | undefined;

  constructor(
    recorder: Recorder,
    private readonly call: TracedCall,
  ) {
    const { id, name, tool, attempt, answered, mcp, startedBy, redaction } = call;
    // Span names must not contain names that a model invented.
    const target = tool === undefined ? '' : ` ${name}`;
    const arrival = mcp && arrivalOf(recorder, mcp);
    super(recorder, {
      name: mcp === undefined ? `execute_tool${target}` : `${mcp.method}${target}`,
      kind: mcp === undefined ? recorder.api.SpanKind.INTERNAL : recorder.api.SpanKind.SERVER,
      attributes: given({
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': name,
        ...(mcp === undefined
          ? {
              'gen_ai.tool.type': tool === undefined ? undefined : 'function',
              'gen_ai.tool.description': tool?.description,
              'gen_ai.tool.call.id': id,
            }
          : mcpAttributes(mcp)),
        'toolwright.call.attempt': attempt > 1 ? attempt : undefined,
        'toolwright.call.waited_for': answered?.length ? answered : undefined,
      }),
      parent: arrival?.parent,
      links: [...(arrival?.links ?? []), ...linkTo(recorder, startedBy, 'started_by')],
    });
    this.#writer = redaction && this.span.isRecording() ? new ContentWriter(redaction) : undefined;
  }

  onMcp(facts: McpFacts): void {
    if (this.span.isRecording()) this.span.setAttributes(mcpAttributes(facts));
  }

  protected settle(end: TracedCallEnd, seconds: number): SpanFailure | undefined {
    const { status, cost } = end;
    const { tool, mcp } = this.call;
    if (cost && tool !== undefined)
      this.recorder.instruments.toolCost.add(cost, { 'gen_ai.tool.name': tool.name }, this.context);
    const isUnknown = mcp !== undefined && tool === undefined;
    // An unknown tool is the caller's error, not the MCP server's.
    if (isUnknown) this.span.setAttribute('rpc.response.status_code', INVALID_PARAMS);
    const failure = isUnknown ? undefined : this.#failureOf(end);
    // Calls that are suspended or run in the background are measured where they are executed.
    if (status !== 'suspended' && status !== 'started') {
      const about = this.measureTool(tool?.name ?? 'unknown', seconds, failure);
      if (mcp !== undefined) {
        const { method, protocolVersion, transport } = mcp;
        const facts = mcpAttributes({ method, protocolVersion, transport });
        this.recorder.instruments.mcpServerDuration.record(seconds, { ...facts, ...about }, this.context);
      }
    }
    if (this.span.isRecording()) this.#describe(end);
    return failure;
  }

  #describe({ status, result, arguments: args, repairs, removed, waits, taskId, cost }: TracedCallEnd): void {
    this.span.setAttributes(
      given({
        'toolwright.call.status': status,
        'toolwright.call.repairs': repairs.length === 0 ? undefined : repairs.map(placeOf),
        'toolwright.call.removed_arguments': removed.length === 0 ? undefined : removed,
        'toolwright.call.waits_for': waits,
        'toolwright.task.id': taskId,
        'toolwright.call.cost': cost,
      }),
    );
    const writer = this.#writer;
    const { content } = this.recorder;
    if (writer === undefined) return;
    if (content.arguments && args !== undefined)
      this.span.setAttribute('gen_ai.tool.call.arguments', writer.arguments(args));
    if (content.results && status !== 'suspended')
      this.span.setAttribute('gen_ai.tool.call.result', writer.result(result));
  }

  #failureOf({ status, result }: TracedCallEnd): SpanFailure | undefined {
    const type = failureType({ status, result }, this.call.mcp !== undefined);
    if (type === undefined) return undefined;
    const event = status === 'error' ? 'gen_ai.execute_tool.exception' : undefined;
    // The text for the model may repeat arguments, so it is recorded only with results.
    const message = this.recorder.content.results ? this.#writer?.text(result.forLLM) : undefined;
    return { type, event, message };
  }
}

/** The JSON-RPC error code for an unknown tool. */
const INVALID_PARAMS = '-32602';

/** Only the path of a repair: the rest may contain values. */
function placeOf(repair: string): string {
  return /^[^:]{0,120}/.exec(repair)?.[0] ?? '';
}

/** The error type of a failed call; undefined for other calls. */
function failureType(
  { status, result }: Pick<TracedCallEnd, 'status' | 'result'>,
  isMcp: boolean,
): string | undefined {
  switch (status) {
    case 'timed_out':
      return 'timeout';
    case 'aborted':
    case 'refused':
      return status;
    case 'suspended':
    case 'started':
      return undefined;
    default:
      if (!result.isError) return undefined;
      return isMcp ? 'tool_error' : typeOfResult(result);
  }
}

/** Our own errors only state that a tool failed; the type of their cause is more useful. */
function typeOfResult({ error }: ToolResult): string {
  const { cause } = (error ?? {}) as { readonly cause?: unknown };
  return error === undefined ? 'tool_error' : typeOfError(cause instanceof Error ? cause : named(error));
}

/** Background work, in a trace of its own that links to the call. */
class TaskSpan extends OpenSpan<ToolResult> {
  readonly #tool: string;

  constructor(recorder: Recorder, { taskId, callId, tool, startedBy }: TracedTask) {
    const { api } = recorder;
    super(recorder, {
      name: `run_task ${tool}`,
      kind: api.SpanKind.INTERNAL,
      attributes: { 'toolwright.task.id': taskId, 'gen_ai.tool.name': tool, 'gen_ai.tool.call.id': callId },
      parent: api.trace.deleteSpan(api.context.active()),
      links: linkTo(recorder, startedBy, 'started_by'),
    });
    this.#tool = tool;
  }

  protected settle(result: ToolResult, seconds: number): SpanFailure | undefined {
    const failure = result.isError ? { type: typeOfResult(result) } : undefined;
    this.measureTool(this.#tool, seconds, failure);
    return failure;
  }
}

/** Facts about an MCP message, as attributes of the MCP conventions. */
function mcpAttributes(facts: McpFacts): Attributes {
  const { method, protocolVersion, sessionId, requestId, transport, address, port } = facts;
  return given({
    'mcp.method.name': method,
    'mcp.protocol.version': protocolVersion,
    'mcp.session.id': sessionId,
    'jsonrpc.request.id': requestId,
    'network.transport': transport,
    'server.address': address,
    'server.port': port,
  });
}

/** An MCP message that has no call span, for example `tools/list`. */
class MessageSpan extends OpenSpan<TracedMessageEnd> {
  constructor(
    recorder: Recorder,
    private readonly message: TracedMessage,
  ) {
    const { side, method, tool } = message;
    const { CLIENT, SERVER } = recorder.api.SpanKind;
    const arrival = side === 'server' ? arrivalOf(recorder, message) : undefined;
    super(recorder, {
      name: tool === undefined ? method : `${method} ${tool}`,
      kind: side === 'client' ? CLIENT : SERVER,
      attributes: { ...mcpAttributes(message), ...toolAttributes(tool) },
      parent: arrival?.parent,
      links: arrival?.links,
    });
  }

  protected settle({ error, isToolError }: TracedMessageEnd, seconds: number): SpanFailure | undefined {
    const { code } = (error ?? {}) as { readonly code?: unknown };
    // JSON-RPC codes are numbers.
    const errorType = typeof code === 'number' ? String(code) : typeOfError(error);
    const type = error === undefined ? undefined : errorType;
    let failure = type === undefined ? undefined : { type };
    if (isToolError) failure = { type: 'tool_error' };
    if (error !== undefined && /^-\d+$/.test(type ?? ''))
      this.span.setAttribute('rpc.response.status_code', type ?? '');
    const { mcpClientDuration, mcpServerDuration } = this.recorder.instruments;
    const { side, tool, method, protocolVersion, transport, address, port } = this.message;
    const facts = mcpAttributes({ method, protocolVersion, transport, address, port });
    const attributes = { ...facts, ...toolAttributes(tool), ...errorOf(failure) };
    (side === 'client' ? mcpClientDuration : mcpServerDuration).record(seconds, attributes, this.context);
    return failure;
  }
}

function toolAttributes(tool: string | undefined): Attributes {
  return tool === undefined ? {} : { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': tool };
}

/** The parent of a message is the trace context that it carries; the span of its transport is only linked. */
function arrivalOf(
  { api }: Recorder,
  { carrier }: Pick<TracedMessage, 'carrier'>,
): { readonly parent: Context; readonly links: readonly Link[] } | undefined {
  if (carrier === undefined) return undefined;
  const ambient = api.context.active();
  const parent = api.propagation.extract(ambient, carrier);
  const around = api.trace.getSpanContext(ambient);
  const sent = api.trace.getSpanContext(parent);
  const isOther = sent !== undefined && around?.spanId !== sent.spanId;
  return { parent, links: isOther ? linkToSpan(api, around, 'transport') : [] };
}

/** Contents of a request and its reply, as attributes. */
type RequestContents = Readonly<Record<string, string>>;

/** A request to a model, with its retries: `chat {model}`. */
class RequestSpan extends OpenSpan<TracedRequestEnd> implements RequestTrace {
  readonly #metricAttributes: Attributes;
  readonly #writer: ContentWriter | undefined;
  readonly #isStreamed: boolean;
  #sent: LLMRequest | undefined;
  #reply: LLMResponse | undefined;
  #firstPart: number | undefined;
  #lastPart: number | undefined;

  constructor(
    recorder: Recorder,
    { provider, request, isStreamed, redaction }: TracedRequest,
    /** Default: the active context. */
    parent?: Context,
  ) {
    const { model } = request;
    const identity = provider.identity?.(model);
    const about = given({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': identity?.name ?? 'unknown',
      'gen_ai.request.model': model,
      'server.address': identity?.address,
      'server.port': identity?.port,
    });
    super(recorder, { name: `chat ${model}`, kind: recorder.api.SpanKind.CLIENT, attributes: about, parent });
    this.#metricAttributes = about;
    this.#isStreamed = isStreamed;
    this.#writer = recorder.content.messages && redaction ? new ContentWriter(redaction) : undefined;
    if (this.span.isRecording()) this.span.setAttributes(requestAttributes(request, isStreamed));
  }

  /** Attributes are written at the end: if the request is sent again, the last one counts. */
  sent(request: LLMRequest): void {
    if (!this.span.isRecording()) return;
    const { maxOutputTokens } = request;
    if (maxOutputTokens !== undefined) this.span.setAttribute('gen_ai.request.max_tokens', maxOutputTokens);
    if (this.#writer !== undefined) this.#sent = request;
  }

  get contents(): RequestContents | undefined {
    const { messages, tools = [] } = this.#sent ?? {};
    const writer = this.#writer;
    if (writer === undefined || messages === undefined) return undefined;
    // Names only, to keep the attribute small.
    const names = tools.map(({ function: { name } }) => ({ type: 'function', name }));
    return {
      'gen_ai.input.messages': writer.input(messages),
      ...(tools.length > 0 && { 'gen_ai.tool.definitions': JSON.stringify(names) }),
      ...(this.#reply && { 'gen_ai.output.messages': writer.output(this.#reply) }),
    };
  }

  part(): void {
    const now = this.seconds;
    const { timePerChunk } = this.recorder.instruments;
    this.#firstPart ??= now;
    if (this.#lastPart !== undefined)
      timePerChunk.record(now - this.#lastPart, this.#metricAttributes, this.context);
    this.#lastPart = now;
  }

  protected settle(end: TracedRequestEnd, seconds: number): SpanFailure | undefined {
    const failure = failureOf(end);
    const { inferenceDuration, timeToFirstChunk } = this.recorder.instruments;
    const attributes = this.#metricAttributes;
    inferenceDuration.record(seconds, { ...attributes, ...errorOf(failure) }, this.context);
    if (this.#isStreamed && this.#firstPart !== undefined)
      timeToFirstChunk.record(this.#firstPart, attributes, this.context);
    if (end.how === 'replied') this.#count(end.response.usage, end.cost);
    if (this.span.isRecording()) this.#describe(end);
    return failure;
  }

  #describe(end: TracedRequestEnd): void {
    if (this.#firstPart !== undefined)
      this.span.setAttribute('gen_ai.response.time_to_first_chunk', this.#firstPart);
    if (end.how === 'replied') {
      this.#reply = end.response;
      const { finishReason, rawFinishReason, usage, origin } = end.response;
      this.span.setAttributes(
        given({
          'gen_ai.response.id': origin?.id,
          'gen_ai.response.model': origin?.model,
          'gen_ai.response.finish_reasons': [rawFinishReason ?? WORDS[finishReason] ?? finishReason],
          'gen_ai.usage.input_tokens': usage?.inputTokens,
          'gen_ai.usage.output_tokens': usage?.outputTokens,
          'gen_ai.usage.cache_read.input_tokens': usage?.cacheReadTokens,
          'gen_ai.usage.cache_write.input_tokens': usage?.cacheWriteTokens,
          'gen_ai.usage.reasoning.output_tokens': usage?.reasoningTokens,
          'toolwright.request.cost': end.cost,
        }),
      );
    } else this.span.setAttribute('gen_ai.response.finish_reasons', ['error']);
    this.span.setAttributes(this.contents ?? {});
  }

  #count(usage: Usage | undefined, cost: number | undefined): void {
    const { instruments } = this.recorder;
    const about = this.#metricAttributes;
    if (cost) instruments.inferenceCost.add(cost, about, this.context);
    if (usage === undefined) return;
    // Providers report tokens of all modalities as one number.
    const counted = { ...about, 'gen_ai.token.modality': 'unknown' };
    const count = (counter: Counter, tokens: number | undefined) =>
      tokens ? counter.add(tokens, counted, this.context) : undefined;
    count(instruments.inputTokens, usage.inputTokens);
    count(instruments.outputTokens, usage.outputTokens);
    count(instruments.cacheRead, usage.cacheReadTokens);
    count(instruments.cacheWrite, usage.cacheWriteTokens);
    count(instruments.reasoning, usage.reasoningTokens);
    instruments.inputPerRequest.record(usage.inputTokens, about, this.context);
    instruments.outputPerRequest.record(usage.outputTokens, about, this.context);
  }
}

/** Messages of provider errors may repeat the request, so only the type is recorded. */
function failureOf(end: TracedRequestEnd): SpanFailure | undefined {
  if (end.how === 'replied') return undefined;
  if (end.how === 'aborted') return { type: 'aborted' };
  return { type: typeOfError(end.error), event: 'gen_ai.client.operation.exception' };
}

/** Attributes of a request; options have the names that most providers use. */
function requestAttributes(
  { options, metadata, responseFormat }: LLMRequest,
  isStreamed: boolean,
): Attributes {
  const number = (...names: readonly string[]) => firstOf(options, names, isNumber);
  const choices = number('n');
  const { stop = options.stop_sequences ?? options.stopSequences } = options;
  const isGiven = typeof stop === 'string' || (Array.isArray(stop) && stop.every(isText));
  return given({
    'gen_ai.request.stream': isStreamed || undefined,
    'gen_ai.conversation.id': metadata?.conversationId,
    'gen_ai.output.type': responseFormat?.type,
    'gen_ai.request.max_tokens': number(
      'max_tokens',
      'max_completion_tokens',
      'max_output_tokens',
      'maxOutputTokens',
    ),
    'gen_ai.request.temperature': number('temperature'),
    'gen_ai.request.top_p': number('top_p', 'topP'),
    'gen_ai.request.top_k': number('top_k', 'topK'),
    'gen_ai.request.seed': number('seed'),
    'gen_ai.request.frequency_penalty': number('frequency_penalty', 'frequencyPenalty'),
    'gen_ai.request.presence_penalty': number('presence_penalty', 'presencePenalty'),
    'gen_ai.request.choice.count': choices === 1 ? undefined : choices,
    'gen_ai.request.stop_sequences': isGiven ? [stop].flat() : undefined,
    'gen_ai.request.reasoning.level': reasoningLevel(options),
    'gen_ai.request.previous_response.id': firstOf(options, ['previous_response_id'], isText),
  });
}

function reasoningLevel(options: LLMRequest['options']): string | undefined {
  const { reasoning } = options;
  const effort = (reasoning as { readonly effort?: unknown } | undefined | null)?.effort;
  return isText(effort) ? effort : firstOf(options, ['reasoning_effort', 'reasoningEffort'], isText);
}

function firstOf<Value>(
  options: LLMRequest['options'],
  names: readonly string[],
  is: (value: unknown) => value is Value,
): Value | undefined {
  for (const name of names) {
    const value = options[name];
    if (is(value)) return value;
  }
  return undefined;
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

/** Names of finish reasons in the conventions, where they differ. */
const WORDS: Readonly<Record<string, string>> = { tool_calls: 'tool_call' };

/** Options of {@link openTelemetry}. */
export interface OpenTelemetryOptions {
  /**
   * Which contents are recorded. The log's rules for secrets apply. `true`: all of them. Default: none, because
   * contents may be private.
   */
  readonly content?: boolean | RecordedContent;
  /** Default: the provider that the application has registered. */
  readonly tracerProvider?: TracerProvider;
  /** Default: the provider that the application has registered. */
  readonly meterProvider?: MeterProvider;
}

const OPTIONS = optionTable<OpenTelemetryOptions>(
  'openTelemetry',
  {
    content: either(
      BOOLEAN,
      objectOf<RecordedContent>(
        { arguments: BOOLEAN, results: BOOLEAN, messages: BOOLEAN },
        { fix: '{ arguments: true, results: true, messages: true }' },
      ),
    ),
    tracerProvider: withMethods(['getTracer'], 'a TracerProvider of OpenTelemetry'),
    meterProvider: withMethods(['getMeter'], 'a MeterProvider of OpenTelemetry'),
  },
  {
    recordInputs: 'content: { arguments: true, messages: true }',
    recordOutputs: 'content: { results: true }',
  },
);

/**
 * Records runs, requests to models, tool calls and MCP messages as OpenTelemetry spans and metrics, named by the GenAI
 * conventions. Pass it where you pass a logger: to a registry, a run, NestJS or MCP. If the application has registered
 * no OpenTelemetry SDK, nothing is recorded, at no cost.
 *
 * Contents are recorded only with `content`. Requires `@opentelemetry/api`, which is loaded when you call this
 * function.
 *
 * @throws InvalidOptionsError (521).
 *
 * @example
 * ```ts
 * import { openTelemetry } from 'toolwright/opentelemetry';
 *
 * const telemetry = openTelemetry();
 * const tools = new ToolRegistry({ telemetry });
 * const run = await runToolLoop({ provider, model: 'gpt-5', tools, agentName: 'shop' }, messages);
 * ```
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): Telemetry {
  checkOptions(options, OPTIONS);
  return new OpenTelemetry(options);
}

/** The instrumentation scope of all spans and metrics. */
const SCOPE = 'toolwright';
const ALL: RecordedContent = { arguments: true, results: true, messages: true };

/** Where the API stores registered providers. Asking the API itself takes half as long as a whole call. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1');
/** Every so many times, the API is asked anyway, in case it stores them elsewhere. */
const ASK_EVERY = 256;

class OpenTelemetry implements Telemetry {
  readonly #api = loadApi();
  readonly #content: RecordedContent;
  /** The tracer provider that the API uses while none is registered. */
  readonly #noTracers = new this.#api.ProxyTracerProvider().getDelegate();
  readonly #noMeter = this.#api.createNoopMeter();
  #asked = 0;
  #instruments: { readonly of: MeterProvider; readonly made: Instruments } | undefined;

  constructor(private readonly options: OpenTelemetryOptions) {
    const { content = false } = options;
    this.#content = typeof content === 'object' ? content : content ? ALL : {};
  }

  get isOn(): boolean {
    const { tracerProvider, meterProvider } = this.options;
    if (tracerProvider !== undefined || meterProvider !== undefined) return true;
    const registered = (globalThis as { readonly [REGISTERED]?: { trace?: object; metrics?: object } })[
      REGISTERED
    ];
    const isUnregistered = registered?.trace === undefined && registered?.metrics === undefined;
    if (isUnregistered && this.#asked++ % ASK_EVERY !== 0) return false;
    const tracers = this.#api.trace.getTracerProvider();
    if (!(tracers instanceof this.#api.ProxyTracerProvider) || tracers.getDelegate() !== this.#noTracers)
      return true;
    return this.#api.metrics.getMeter(SCOPE) !== this.#noMeter;
  }

  startRun(run: TracedRun): RunTrace {
    return new RunSpan(this.#recorder, run);
  }

  startRequest(request: TracedRequest): RequestTrace {
    return new RequestSpan(this.#recorder, request);
  }

  startCall(call: TracedCall): CallTrace {
    return new CallSpan(this.#recorder, call);
  }

  startTask(task: TracedTask): Trace<ToolResult> {
    return new TaskSpan(this.#recorder, task);
  }

  startMessage(message: TracedMessage): Trace<TracedMessageEnd> & Pick<CallTrace, 'carrier'> {
    return new MessageSpan(this.#recorder, message);
  }

  get #recorder(): Recorder {
    const { trace, metrics } = this.#api;
    const { tracerProvider = trace, meterProvider = metrics.getMeterProvider() } = this.options;
    if (this.#instruments?.of !== meterProvider)
      this.#instruments = { of: meterProvider, made: createInstruments(meterProvider.getMeter(SCOPE)) };
    return {
      api: this.#api,
      tracer: tracerProvider.getTracer(SCOPE),
      instruments: this.#instruments.made,
      content: this.#content,
    };
  }
}

/** A run: `invoke_agent {name}`. It lasts from the start, or from resuming, until the end or the next suspension. */
class RunSpan extends OpenSpan<TracedRunEnd> implements RunTrace {
  #last: RequestSpan | undefined;

  constructor(
    recorder: Recorder,
    private readonly run: TracedRun,
  ) {
    const { agent, runId, model, conversationId, before, isTurn, inPrompt } = run;
    const { api } = recorder;
    const prompt = inPrompt?.(() => api.context.active());
    super(recorder, {
      name: agent === undefined ? 'invoke_agent' : `invoke_agent ${agent}`,
      kind: api.SpanKind.INTERNAL,
      attributes: given({
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.agent.name': agent,
        'gen_ai.request.model': model,
        'gen_ai.conversation.id': conversationId,
        'toolwright.run.id': runId,
        // Seconds between the suspension and this resumption.
        'toolwright.run.waited':
          before?.at === undefined ? undefined : Math.max(0, Date.now() - before.at) / 1000,
      }),
      parent: isTurn ? api.trace.deleteSpan(prompt ?? api.context.active()) : undefined,
      links: [
        ...linkTo(recorder, before, 'goes_on_from'),
        ...linkToSpan(api, prompt && api.trace.getSpanContext(prompt), 'started_by'),
      ],
    });
  }

  startRequest(request: TracedRequest): RequestSpan {
    this.#last = new RequestSpan(this.recorder, request, this.context);
    return this.#last;
  }

  protected settle(end: TracedRunEnd, seconds: number): SpanFailure | undefined {
    const { error, requests, calls, cost } = end;
    const failure = error === undefined ? undefined : { type: typeOfError(named(error)) };
    const { agentDuration, agentRequests, agentCalls, agentCost } = this.recorder.instruments;
    const about = given({ 'gen_ai.agent.name': this.run.agent });
    agentDuration.record(seconds, { ...about, ...errorOf(failure) }, this.context);
    agentRequests.record(requests, about, this.context);
    agentCalls.record(calls, about, this.context);
    if (cost !== undefined) agentCost.record(cost, about, this.context);
    if (this.span.isRecording()) this.#describe(end);
    return failure;
  }

  #describe({ status, usage, waits, cost }: TracedRunEnd): void {
    this.span.setAttributes(
      given({
        'toolwright.run.status': status,
        // At the prices of its budget.
        'toolwright.run.cost': cost,
        'toolwright.run.waits_for': waits,
        'gen_ai.usage.input_tokens': usage.inputTokens,
        'gen_ai.usage.output_tokens': usage.outputTokens,
      }),
    );
    // From the last request, because hooks may have hidden parts of the history.
    const { 'gen_ai.tool.definitions': _, ...said } = this.#last?.contents ?? {};
    this.span.setAttributes(said);
  }
}

/** Our own errors have numeric codes, so their names are used. */
function named(error: unknown): unknown {
  return error instanceof Error && error.name !== 'Error' ? { name: error.name } : error;
}
