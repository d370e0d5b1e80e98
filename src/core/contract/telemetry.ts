import { withMethods } from '../kernel/options.js';
import type { CallStatus, PendingKind } from './call.js';
import type { LLMProvider, LLMRequest, LLMResponse, Usage } from './llm-provider.js';
import type { TracePlace } from './ports.js';
import type { ToolDefinition } from './tool.js';
import type { ToolResult } from './tool-result.js';

/** The trace headers of a message to another process, by the names of the active propagators. */
export type TraceCarrier = Readonly<Record<string, unknown>>;

/** Removes secrets from recorded data, as in the log. */
export interface TraceRedaction {
  copy(value: unknown): unknown;
  mask(text: string, most?: number): string;
}

/** An event during traced work. */
export type TraceEvent =
  /** A request is retried after this many milliseconds. */
  | { readonly type: 'request-retry'; readonly delayMs: number; readonly error: unknown }
  /** Finished work of `context.once`, or an answered question, was replayed and not repeated. */
  | { readonly type: 'replay'; readonly of: 'once' | 'answer'; readonly key: string }
  /** Calls of the open message that were settled before the run continued: they are not executed again. */
  | { readonly type: 'settled-before'; readonly callIds: readonly string[] };

/** Traced work. Its methods never throw, except for errors of `work`. */
export interface Trace<End> {
  /** Its position; absent if it is not sampled. */
  readonly place: TracePlace | undefined;
  /** Runs code as a part of this work: its database and HTTP requests belong to the same trace. */
  within<Value>(work: () => Value): Value;
  event(event: TraceEvent): void;
  /** The work has ended; later calls are ignored. */
  end(end: End): void;
}

/** A run that starts or continues. */
export interface TracedRun {
  readonly runId: string;
  readonly model: string;
  /** The agent's name, if it has one. */
  readonly agent?: string | undefined;
  readonly conversationId?: string | undefined;
  /** Where the run was suspended, or where its process crashed. */
  readonly before?: TracePlace | undefined;
  /** A turn of stored conversations: it outlives the request of its prompt, so it has its own trace. */
  readonly isTurn?: boolean;
  /** Runs code in the async context of the prompt that a turn answers, if this process received it. */
  readonly inPrompt?: (<Value>(work: () => Value) => Value) | undefined;
}

/** How a run ended, and its amounts since tracing began. */
export interface TracedRunEnd {
  readonly status: string;
  readonly error?: unknown;
  readonly requests: number;
  readonly calls: number;
  readonly usage: Usage;
  /** The kinds of answers that it waits for. */
  readonly waits?: readonly PendingKind[] | undefined;
  /** The cost since then, including the runs that its tools started; only if its budget has prices. */
  readonly cost?: number | undefined;
}

/** A request to a model, including its retries. */
export interface TracedRequest {
  readonly provider: LLMProvider;
  readonly request: LLMRequest;
  readonly isStreamed: boolean;
  readonly redaction?: TraceRedaction | undefined;
}

export type TracedRequestEnd =
  /** `cost`: by the prices of the run's budget. */
  | { readonly how: 'replied'; readonly response: LLMResponse; readonly cost?: number | undefined }
  | { readonly how: 'failed'; readonly error: unknown }
  | { readonly how: 'aborted' };

/** The trace of a request. */
export interface RequestTrace extends Trace<TracedRequestEnd> {
  /** The request is sent in this form, after all hooks. A request that is never sent has no recorded contents. */
  sent(request: LLMRequest): void;
  /** A part of the reply has arrived. */
  part(): void;
}

/** The trace of a run. */
export interface RunTrace extends Trace<TracedRunEnd> {
  /** Starts a request of the run, even if an earlier request that failed has not ended. */
  startRequest(request: TracedRequest): RequestTrace;
}

/** Facts about a message of the Model Context Protocol. */
export interface McpFacts {
  readonly method: string;
  readonly protocolVersion?: string | undefined;
  readonly sessionId?: string | undefined;
  readonly requestId?: string | undefined;
  /** The transport: pipes, or TCP with its application protocol. */
  readonly transport?: 'pipe' | 'tcp' | undefined;
  readonly address?: string | undefined;
  readonly port?: number | undefined;
}

/** An incoming message of the Model Context Protocol, with its trace headers. */
export interface McpArrival extends McpFacts {
  readonly carrier: TraceCarrier | undefined;
}

/** A call that starts. */
export interface TracedCall {
  readonly id: string;
  readonly name: string;
  /** Absent if no tool has this name. */
  readonly tool: ToolDefinition | undefined;
  readonly attempt: number;
  /** The kinds of answers that it waited for earlier; it is now executed again with them. */
  readonly answered?: readonly PendingKind[];
  /** The call that started it, if there is one. */
  readonly startedBy?: TracePlace | undefined;
  /** The MCP message that it arrived in, which is the same work. */
  readonly mcp?: McpArrival | undefined;
  /** `undefined`: arguments must not be recorded. */
  readonly redaction: TraceRedaction | undefined;
}

/** How a call ended. */
export interface TracedCallEnd {
  readonly status: CallStatus;
  readonly result: ToolResult;
  /** As the tool received them; if they were invalid and no hook rewrote them, as they arrived. */
  readonly arguments?: unknown;
  /** The cost of the call (`@Tool({ cost })`), if the tool ran. */
  readonly cost?: number | undefined;
  readonly repairs: readonly string[];
  readonly removed: readonly string[];
  readonly waits?: readonly PendingKind[];
  readonly taskId?: string | undefined;
}

/** The trace of a call. */
export interface CallTrace extends Trace<TracedCallEnd> {
  /** An MCP server executes the call. */
  onMcp(facts: McpFacts): void;
  /** The trace headers for the message to the server. */
  readonly carrier: TraceCarrier;
}

/** Work that a call started and that outlives its answer. */
export interface TracedTask {
  readonly taskId: string;
  readonly callId: string;
  readonly tool: string;
  readonly startedBy: TracePlace | undefined;
}

/** A message of MCP to a server, such as `tools/list`, or a call of a tool that is not traced elsewhere. */
export interface TracedMessage extends McpFacts {
  readonly side: 'client' | 'server';
  readonly tool?: string | undefined;
  readonly carrier?: TraceCarrier | undefined;
}

/** How a message was answered. */
export interface TracedMessageEnd {
  readonly error?: unknown;
  /** The tool that it called has failed. */
  readonly isToolError?: boolean;
}

/**
 * The interface to recorders of traces and metrics, such as `openTelemetry()`. It receives runs, requests to models
 * and calls, and runs each of them in its own context.
 */
export interface Telemetry {
  /** Whether it records; read before each piece of work. If false, the work is not traced. */
  readonly isOn: boolean;
  startRun(run: TracedRun): RunTrace;
  startRequest(request: TracedRequest): RequestTrace;
  startCall(call: TracedCall): CallTrace;
  startTask(task: TracedTask): Trace<ToolResult>;
  startMessage(message: TracedMessage): Trace<TracedMessageEnd> & Pick<CallTrace, 'carrier'>;
}

/** The rule for the option `telemetry`. */
export const TELEMETRY = withMethods(
  ['startRun', 'startRequest', 'startCall', 'startTask', 'startMessage'],
  "openTelemetry(), from 'toolwright/opentelemetry'",
);
