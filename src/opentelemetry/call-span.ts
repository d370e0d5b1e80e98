import type { Attributes, Context, Link } from '@opentelemetry/api';
import type {
  CallTrace,
  McpFacts,
  TracedCall,
  TracedCallEnd,
  TracedMessage,
  TracedMessageEnd,
  TracedTask,
} from '../contract/telemetry.js';
import type { ToolResult } from '../contract/tool-result.js';
import { ContentWriter, type RecordedContent } from './content.js';
import {
  COMMON,
  EXCEPTION,
  type Failure,
  GEN_AI,
  given,
  linkTo,
  OpenSpan,
  OWN,
  type Recorder,
  typeOfError,
} from './spans.js';

/** `execute_tool {name}`, or `tools/call {name}` where it came as a message of MCP: one call, whoever makes it. */
export class CallSpan extends OpenSpan<TracedCallEnd> implements CallTrace {
  readonly #call: TracedCall;
  readonly #writer: ContentWriter | undefined;
  readonly #content: RecordedContent;

  constructor(recorder: Recorder, call: TracedCall, content: RecordedContent) {
    const { name, tool, mcp, startedBy, redaction } = call;
    // Whatever a model makes up would be a name of a span of its own.
    const target = tool === undefined ? '' : ` ${name}`;
    const arrival = mcp && arrivalOf(recorder, mcp);
    super(recorder, {
      name: mcp === undefined ? `execute_tool${target}` : `${mcp.method}${target}`,
      kind: mcp === undefined ? recorder.api.SpanKind.INTERNAL : recorder.api.SpanKind.SERVER,
      attributes: callAttributes(call),
      parent: arrival?.parent,
      links: [...(arrival?.links ?? []), ...linkTo(recorder, startedBy, 'started_by')],
    });
    this.#call = call;
    this.#content = content;
    this.#writer = redaction && this.span.isRecording() ? new ContentWriter(redaction) : undefined;
  }

  onMcp(facts: McpFacts): void {
    if (this.span.isRecording()) this.span.setAttributes(mcpAttributes(facts));
  }

  protected conclude(end: TracedCallEnd, seconds: number): Failure | undefined {
    const { status, cost } = end;
    const { tool } = this.#call;
    if (cost && tool !== undefined)
      this.recorder.instruments.toolCost.add(cost, { [GEN_AI.tool]: tool.name }, this.context);
    const isUnknown = this.#call.mcp !== undefined && this.#call.tool === undefined;
    // To a server of MCP that is no fault of its own.
    if (isUnknown) this.span.setAttribute(MCP.statusCode, INVALID_PARAMS);
    const failure = isUnknown ? undefined : this.#failureOf(end);
    // What waits, or goes on elsewhere, is counted where it is carried out.
    if (status !== 'suspended' && status !== 'started') this.#measure(seconds, failure);
    if (this.span.isRecording()) this.#describe(end);
    return failure;
  }

  #measure(seconds: number, failure: Failure | undefined): void {
    const { toolDuration, mcpServerDuration } = this.recorder.instruments;
    const { tool, mcp } = this.#call;
    const name = tool === undefined ? 'unknown' : tool.name;
    const error = failure === undefined ? {} : { [COMMON.errorType]: failure.type };
    const about = { [GEN_AI.operation]: 'execute_tool', [GEN_AI.tool]: name, ...error };
    toolDuration.record(seconds, { ...about, [GEN_AI.toolType]: 'function' }, this.context);
    if (mcp === undefined) return;
    const { method, protocolVersion, transport } = mcp;
    const facts = mcpAttributes({ method, protocolVersion, transport });
    mcpServerDuration.record(seconds, { ...facts, ...about }, this.context);
  }

  #describe({ status, result, arguments: args, repairs, removed, waits, taskId, cost }: TracedCallEnd): void {
    this.span.setAttributes(
      given({
        [OWN.callStatus]: status,
        [OWN.repairs]: repairs.length === 0 ? undefined : repairs.map(placeOf),
        [OWN.removed]: removed.length === 0 ? undefined : [...removed],
        [OWN.waits]: waits === undefined ? undefined : [...waits],
        [OWN.taskId]: taskId,
        [OWN.callCost]: cost,
      }),
    );
    const writer = this.#writer;
    if (writer === undefined) return;
    if (this.#content.arguments && args !== undefined)
      this.span.setAttribute(GEN_AI.callArguments, writer.arguments(args));
    if (this.#content.results && status !== 'suspended')
      this.span.setAttribute(GEN_AI.callResult, writer.result(result));
  }

  #failureOf({ status, result }: TracedCallEnd): Failure | undefined {
    const type = failureType({ status, result }, this.#call.mcp !== undefined);
    if (type === undefined) return undefined;
    // What the model is told may repeat what was given.
    const isTold = this.#content.results && this.#writer !== undefined;
    const event = status === 'error' ? EXCEPTION.call : undefined;
    return { type, event, message: isTold ? this.#writer?.text(result.forLLM) : undefined };
  }
}

/** What the caller of an unknown tool is answered with, in JSON-RPC. */
const INVALID_PARAMS = '-32602';

/** Repairs may tell values; where something was mended tells enough. */
function placeOf(repair: string): string {
  return /^[^:]{0,120}/.exec(repair)?.[0] ?? '';
}

function callAttributes({ id, name, tool, attempt, answered, mcp }: TracedCall): Attributes {
  return given({
    [GEN_AI.operation]: 'execute_tool',
    [GEN_AI.tool]: name,
    ...(mcp === undefined
      ? {
          [GEN_AI.toolType]: tool === undefined ? undefined : 'function',
          [GEN_AI.toolDescription]: tool?.description,
          [GEN_AI.callId]: id,
        }
      : mcpAttributes(mcp)),
    [OWN.attempt]: attempt > 1 ? attempt : undefined,
    [OWN.answered]: answered?.length ? [...answered] : undefined,
  });
}

/** What a call failed with; nothing where it did not. */
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

/** Our own errors say that a tool failed; why says what it threw. */
function typeOfResult({ error }: ToolResult): string {
  const { cause } = (error ?? {}) as { readonly cause?: unknown };
  return error === undefined ? 'tool_error' : typeOfError(cause instanceof Error ? cause : named(error));
}

function named(error: unknown): unknown {
  // Its code is a number of our own table; its name says the same in words.
  return error instanceof Error ? { name: error.name } : error;
}

/** Work that outlives its call, in a trace of its own that links to it. */
export class TaskSpan extends OpenSpan<ToolResult> {
  readonly #tool: string;

  constructor(recorder: Recorder, { taskId, callId, tool, startedBy }: TracedTask) {
    const { api } = recorder;
    super(recorder, {
      name: `run_task ${tool}`,
      kind: api.SpanKind.INTERNAL,
      attributes: { [OWN.taskId]: taskId, [GEN_AI.tool]: tool, [GEN_AI.callId]: callId },
      parent: api.trace.deleteSpan(api.context.active()),
      links: linkTo(recorder, startedBy, 'started_by'),
    });
    this.#tool = tool;
  }

  protected conclude(result: ToolResult, seconds: number): Failure | undefined {
    const failure = result.isError ? { type: typeOfResult(result) } : undefined;
    const error = failure === undefined ? {} : { [COMMON.errorType]: failure.type };
    const about = { [GEN_AI.operation]: 'execute_tool', [GEN_AI.tool]: this.#tool, ...error };
    this.recorder.instruments.toolDuration.record(
      seconds,
      { ...about, [GEN_AI.toolType]: 'function' },
      this.context,
    );
    return failure;
  }
}

/** What is known of a message of MCP, by the names of its conventions. */
function mcpAttributes(facts: McpFacts): Attributes {
  const { method, protocolVersion, sessionId, requestId, transport, address, port } = facts;
  return given({
    [MCP.method]: method,
    [MCP.protocolVersion]: protocolVersion,
    [MCP.session]: sessionId,
    [MCP.requestId]: requestId,
    [MCP.transport]: transport,
    [COMMON.serverAddress]: address,
    [COMMON.serverPort]: port,
  });
}

/** A message of MCP that is no call of a tool which somebody else records: `tools/list`, for one. */
export class MessageSpan extends OpenSpan<TracedMessageEnd> {
  readonly #message: TracedMessage;

  constructor(recorder: Recorder, message: TracedMessage) {
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
    this.#message = message;
  }

  protected conclude({ error, isToolError }: TracedMessageEnd, seconds: number): Failure | undefined {
    const type = error === undefined ? undefined : typeOfMcpError(error);
    const failure = isToolError ? { type: 'tool_error' } : type === undefined ? undefined : { type };
    if (error !== undefined && /^-\d+$/.test(type ?? '')) this.span.setAttribute(MCP.statusCode, type ?? '');
    const { mcpClientDuration, mcpServerDuration } = this.recorder.instruments;
    const { side, tool, method, protocolVersion, transport, address, port } = this.#message;
    const facts = mcpAttributes({ method, protocolVersion, transport, address, port });
    const outcome = failure === undefined ? {} : { [COMMON.errorType]: failure.type };
    const attributes = { ...facts, ...toolAttributes(tool), ...outcome };
    (side === 'client' ? mcpClientDuration : mcpServerDuration).record(seconds, attributes, this.context);
    return failure;
  }
}

function toolAttributes(tool: string | undefined): Attributes {
  return tool === undefined ? {} : { [GEN_AI.operation]: 'execute_tool', [GEN_AI.tool]: tool };
}

/** Codes of JSON-RPC are numbers. */
function typeOfMcpError(error: unknown): string {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === 'number' ? String(code) : typeOfError(error);
}

/** Whose part a message is: of what was sent along; what it came over is only linked to. */
function arrivalOf(
  { api }: Pick<Recorder, 'api'>,
  { carrier }: Pick<TracedMessage, 'carrier'>,
): { readonly parent: Context; readonly links: readonly Link[] } | undefined {
  if (carrier === undefined) return undefined;
  const ambient = api.context.active();
  const parent = api.propagation.extract(ambient, carrier);
  const around = api.trace.getSpanContext(ambient);
  const sent = api.trace.getSpanContext(parent);
  const isOther = around !== undefined && sent !== undefined && around.spanId !== sent.spanId;
  if (!isOther || !api.isSpanContextValid(around)) return { parent, links: [] };
  return { parent, links: [{ context: around, attributes: { [OWN.link]: 'transport' } }] };
}

const MCP = {
  method: 'mcp.method.name',
  protocolVersion: 'mcp.protocol.version',
  session: 'mcp.session.id',
  requestId: 'jsonrpc.request.id',
  statusCode: 'rpc.response.status_code',
  transport: 'network.transport',
} as const;
