import { withMethods } from '../kernel/options.js';
import type { CallStatus, PendingKind } from './call.js';
import type { LLMProvider, LLMRequest, LLMResponse, Usage } from './llm-provider.js';
import type { TracePlace } from './ports.js';
import type { ToolDefinition } from './tool.js';
import type { ToolResult } from './tool-result.js';

/** What goes along with a message to another process, by the names of the propagators in use. */
export type TraceCarrier = Readonly<Record<string, unknown>>;

/** Removes secrets from recorded data, as from the log. */
export interface TraceRedaction {
  copy(value: unknown): unknown;
  mask(text: string, most?: number): string;
}

/** Something that happens while work is under way. */
export type TraceEvent =
  /** A request is made again, after so many milliseconds. */
  | { readonly type: 'request-retry'; readonly delayMs: number; readonly error: unknown }
  /** Work of `context.once`, or a question, that an earlier run of the method has behind it: it is not done again. */
  | { readonly type: 'replay'; readonly of: 'once' | 'answer'; readonly key: string }
  /** Calls of the open message that were settled before the run went on: they are not made again. */
  | { readonly type: 'settled-before'; readonly callIds: readonly string[] };

/** A piece of work that is being traced. None of its methods throws, apart from what `work` throws. */
export interface Trace<End> {
  /** Where it stands; nothing where it is not sampled into a trace. */
  readonly place: TracePlace | undefined;
  /** Runs work as a part of this one: what it does in a database or over HTTP belongs to it. */
  within<Value>(work: () => Value): Value;
  event(event: TraceEvent): void;
  /** It has ended; what comes later is ignored. */
  end(end: End): void;
}

/** A run that begins, or goes on. */
export interface TracedRun {
  readonly runId: string;
  readonly model: string;
  /** What the agent is called, where it has a name. */
  readonly agent?: string | undefined;
  readonly conversationId?: string | undefined;
  /** Where it was suspended, or where its process died. */
  readonly before?: TracePlace | undefined;
}

/** How a run ended, and what it took since it was traced. */
export interface TracedRunEnd {
  readonly status: string;
  readonly error?: unknown;
  readonly requests: number;
  readonly calls: number;
  readonly usage: Usage;
  /** What it waits for. */
  readonly waits?: readonly PendingKind[] | undefined;
  /** What it has cost since then, with the runs that its tools began; only where its budget has prices. */
  readonly cost?: number | undefined;
}

/** One request to a model, with the times that it is made again. */
export interface TracedRequest {
  readonly provider: LLMProvider;
  readonly request: LLMRequest;
  readonly isStreamed: boolean;
  readonly redaction?: TraceRedaction | undefined;
}

export type TracedRequestEnd =
  /** `cost`: by the prices of its run's budget. */
  | { readonly how: 'replied'; readonly response: LLMResponse; readonly cost?: number | undefined }
  | { readonly how: 'failed'; readonly error: unknown }
  | { readonly how: 'aborted' };

/** A request that is traced, and when it was heard from. */
export interface RequestTrace extends Trace<TracedRequestEnd> {
  /** It goes out like this: whatever hooks hide of it is hidden. What never goes out has no contents. */
  sent(request: LLMRequest): void;
  /** A part of the reply has come. */
  part(): void;
}

/** A run that is traced. */
export interface RunTrace extends Trace<TracedRunEnd> {
  /** A request of the run, also where another one is under way that has failed. */
  startRequest(request: TracedRequest): RequestTrace;
}

/** What is known of a message of the Model Context Protocol. */
export interface McpFacts {
  readonly method: string;
  readonly protocolVersion?: string | undefined;
  readonly sessionId?: string | undefined;
  readonly requestId?: string | undefined;
  /** The protocol below: pipes, or TCP with what is spoken over it. */
  readonly transport?: 'pipe' | 'tcp' | undefined;
  readonly address?: string | undefined;
  readonly port?: number | undefined;
}

/** A message of the Model Context Protocol that came, with what was sent along. */
export interface McpArrival extends McpFacts {
  readonly carrier: TraceCarrier | undefined;
}

/** A call that begins. */
export interface TracedCall {
  readonly id: string;
  readonly name: string;
  /** None where no tool has that name. */
  readonly tool: ToolDefinition | undefined;
  readonly attempt: number;
  /** The kinds of answers that it waited for before; it is made again with them. */
  readonly answered?: readonly PendingKind[];
  /** What it was started by, where that is another call. */
  readonly startedBy?: TracePlace | undefined;
  /** Where it came as a message of MCP, which is the same piece of work. */
  readonly mcp?: McpArrival | undefined;
  /** `undefined`: arguments are not to be recorded. */
  readonly redaction: TraceRedaction | undefined;
}

/** How a call ended. */
export interface TracedCallEnd {
  readonly status: CallStatus;
  readonly result: ToolResult;
  /** As the tool was given them, or as they came where they could not be used and no hook has rewritten them. */
  readonly arguments?: unknown;
  /** What it cost (`@Tool({ cost })`), where its tool ran. */
  readonly cost?: number | undefined;
  readonly repairs: readonly string[];
  readonly removed: readonly string[];
  readonly waits?: readonly PendingKind[];
  readonly taskId?: string | undefined;
}

/** A call that is traced. */
export interface CallTrace extends Trace<TracedCallEnd> {
  /** It is carried out by a server of the Model Context Protocol. */
  onMcp(facts: McpFacts): void;
  /** What goes with the message that carries it there. */
  readonly carrier: TraceCarrier;
}

/** Work that a call has started and that outlives its answer. */
export interface TracedTask {
  readonly taskId: string;
  readonly callId: string;
  readonly tool: string;
  readonly startedBy: TracePlace | undefined;
}

/** A message of MCP to a server, as `tools/list`, or a call of a tool that is traced nowhere else. */
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
 * The port to what records traces and metrics, `openTelemetry()` for one. It is told of runs, of requests to models
 * and of calls, and runs each of them within a context of its own.
 */
export interface Telemetry {
  /** Whether anything records; asked before each piece of work, which is otherwise not traced. */
  readonly isOn: boolean;
  startRun(run: TracedRun): RunTrace;
  startRequest(request: TracedRequest): RequestTrace;
  startCall(call: TracedCall): CallTrace;
  startTask(task: TracedTask): Trace<ToolResult>;
  startMessage(message: TracedMessage): Trace<TracedMessageEnd> & Pick<CallTrace, 'carrier'>;
}

/** What the option `telemetry` may be. */
export const TELEMETRY = withMethods(
  ['startRun', 'startRequest', 'startCall', 'startTask', 'startMessage'],
  "openTelemetry(), from 'toolwright/opentelemetry'",
);
