import type { Attributes, Context, Link } from '@opentelemetry/api';
import type { McpFacts, TracedMessage, TracedMessageEnd } from '../contract/telemetry.js';
import { ERROR_TYPE, GEN_AI, MCP, OWN, SERVER_ADDRESS, SERVER_PORT } from './gen-ai-names.js';
import { type Failure, given, OpenSpan, type Recorder, typeOfError } from './spans.js';

/** What is known of a message of MCP, by the names of its conventions. */
export function mcpAttributes(facts: McpFacts): Attributes {
  const { method, protocolVersion, sessionId, requestId, transport, address, port } = facts;
  return given({
    [MCP.method]: method,
    [MCP.protocolVersion]: protocolVersion,
    [MCP.session]: sessionId,
    [MCP.requestId]: requestId,
    [MCP.transport]: transport,
    [SERVER_ADDRESS]: address,
    [SERVER_PORT]: port,
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
    const outcome = failure === undefined ? {} : { [ERROR_TYPE]: failure.type };
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
export function arrivalOf(
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
