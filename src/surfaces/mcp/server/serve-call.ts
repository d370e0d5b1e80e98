import {
  type CallToolRequest,
  type CallToolResult,
  type InputRequiredResult,
  ProtocolError,
  ProtocolErrorCode,
  type ServerContext,
} from '@modelcontextprotocol/server';
import type { CallJournal, CallRecord, CallScope, Suspension } from '../../../core/contract/call.js';
import type { JsonObject } from '../../../core/contract/json-schema.js';
import type { ToolDefinition } from '../../../core/contract/tool.js';
import type { ProgressUpdate } from '../../../core/contract/tool-context.js';
import { canonicalJson, copyOfJson, withoutUndefined } from '../../../core/kernel/json.js';
import type { Invocation, InvokeOptions, Invoker } from '../../../run/call/invocation.js';
import type { ToolRegistry } from '../../../run/call/tool-registry.js';
import { approverOf, mayApprove } from '../../../run/call/waits.js';
import { type Asked, type AskedClient, askClient, readAnswers } from './ask-client.js';
import { writeCallResult } from './call-result.js';
import { promisedOutput, structuredOutput } from './listed-tool.js';
import { arrivalOf, type McpRequest, prepare, principalOf, visibleTools } from './request.js';

/** A client's request: to call a tool, get a prompt, read a resource, or complete an argument. */
interface Wanted {
  readonly method: keyof typeof PARTS;
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** The part of the registry for a method; tools are in the registry itself. */
const PARTS = {
  'tools/call': undefined,
  'prompts/get': 'prompt',
  'resources/read': 'resource',
  'completion/complete': 'completion',
} as const;

/** The outcome: the call ended, or the client's user is asked. */
export type Served =
  | { readonly type: 'ended'; readonly record: CallRecord; readonly tool: ToolDefinition }
  | AskedClient;

/** What a caller may do. */
interface Rights {
  /** The tools that this caller may call, or the prompts or resources that it may read. */
  readonly tools: ToolRegistry;
  readonly scope: CallScope;
  /** The owner of the suspended calls that this caller may continue. */
  readonly principal: string;
}

/** A request in the pipeline of calls. */
interface ServedCall extends McpRequest, Rights {
  readonly tool: ToolDefinition;
  readonly wanted: Wanted;
  /** Aborted when the call is cancelled or the server is closed. */
  readonly signal: AbortSignal;
}

/** Handles `tools/call`. A fault of the call itself becomes its result. */
export async function serveToolCall(
  request: McpRequest,
  { name, arguments: args = {} }: CallToolRequest['params'],
  signal: AbortSignal,
): Promise<CallToolResult | InputRequiredResult> {
  const served = await serveCall(request, { method: 'tools/call', name, arguments: args }, signal);
  if (served.type === 'asked') return served.result;
  if (served.type === 'refused') return { content: [{ type: 'text', text: served.text }], isError: true };
  const { record, tool } = served;
  const result = writeCallResult(record, structuredOutput(tool));
  return request.server.projectCallToolResult(result, promisedOutput(tool));
}

/**
 * Sends a request through the pipeline of calls.
 *
 * @throws ProtocolError for what the caller does not see, and for a state that belongs to another caller.
 */
export async function serveCall(request: McpRequest, wanted: Wanted, signal: AbortSignal): Promise<Served> {
  const { served, server, caller, context } = request;
  const { options, registry } = served;
  const isAsked = options.visible ?? options.scope ?? options.principal;
  const rights = isAsked
    ? await prepare(request, async () => {
        const [visible, scope] = await Promise.all([visibleTools(request), options.scope?.(caller)]);
        return rightsIn(visible, { request, wanted, scope });
      })
    : rightsIn(registry, { request, wanted });
  const { tools, scope, principal } = rights;
  const tool = tools.offered(wanted.name);
  // MCP needs an error for an unknown tool; the pipeline's text suggests similar names.
  if (tool === undefined) {
    const { method, name, arguments: args } = wanted;
    const mcp = served.telemetry?.isOn ? arrivalOf(request, method) : undefined;
    const { result } = await tools.invoke({ id: '', name, arguments: args, mcp }, {}, telemetryOf(served));
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, result.forLLM);
  }
  const call = { served, server, context, caller, tools, scope, principal, tool, wanted, signal };
  const resumed = resume(call);
  if (resumed?.ok === false) return ask(call, resumed.asked) ?? invalidState();
  const progress = reportProgress(context);
  const invocation = await invoke(call, resumed?.journal, progress);
  progress?.stop();
  const asked = invocation.status === 'suspended' ? ask(call, invocation.suspension) : undefined;
  return asked ?? { type: 'ended', record: invocation.record, tool };
}

function rightsIn(
  visible: ToolRegistry,
  {
    request: { served, context },
    wanted,
    scope = {},
  }: { readonly request: McpRequest; readonly wanted: Wanted; readonly scope?: CallScope | undefined },
): Rights {
  const part = PARTS[wanted.method];
  const tools = part === undefined ? visible : visible.part(part);
  return { tools, scope, principal: principalOf(served.options, context.http?.authInfo) };
}

/** The server may record what its registry does not. */
function telemetryOf({ telemetry }: McpRequest['served']): InvokeOptions {
  return telemetry === undefined ? {} : { telemetry };
}

function invoke(
  call: ServedCall,
  journal: CallJournal | undefined,
  progress?: ProgressReporter,
): Invocation | Promise<Invocation> {
  const { wanted, context, served } = call;
  const { method, name, arguments: args } = wanted;
  return invokerFor(call)(
    {
      id: String(context.mcpReq.id),
      name,
      arguments: args,
      // A copy, because the method may change its arguments and runs again with the originals after an answer.
      read: { ok: true, value: copyOfJson(args) as JsonObject, repairs: [] },
      journal,
      mcp: served.telemetry?.isOn ? arrivalOf(call, method) : undefined,
    },
    scopeOf(call, progress),
  );
}

function invokerFor({ served, tools, tool }: ServedCall): Invoker {
  const { invokers, options } = served;
  const { policy, toolTimeoutMs, onAsyncResult, telemetry } = options;
  // Structured content needs data in the response, which an acknowledgement lacks.
  const awaitsJobs = onAsyncResult === undefined || structuredOutput(tool) !== undefined;
  const known = invokers.get(tools) ?? new Map<boolean, Invoker>();
  const last = known.get(awaitsJobs);
  if (last !== undefined) return last;
  const completion: InvokeOptions = awaitsJobs ? { awaitsJobs } : { onAsyncResult };
  const invoker = tools.invoker({ ...withoutUndefined({ policy, toolTimeoutMs, telemetry }), ...completion });
  invokers.set(tools, known.set(awaitsJobs, invoker));
  return invoker;
}

function scopeOf({ scope, caller, context, signal }: ServedCall, progress?: ProgressReporter): CallScope {
  const { mcpReq, sessionId } = context;
  const { onUpdate, onLog } = scope;
  return {
    channel: 'mcp',
    conversationId: sessionId,
    ...(caller.authInfo && { scopes: caller.authInfo.scopes }),
    ...scope,
    data: { ...scope.data, mcp: caller },
    signal: scope.signal ? AbortSignal.any([scope.signal, signal]) : signal,
    onUpdate:
      progress === undefined
        ? onUpdate
        : (update, of) => {
            progress.report(update);
            return onUpdate?.(update, of);
          },
    onLog(entry, of) {
      const { level, message, fields } = entry;
      mcpReq
        .log(level === 'warn' ? 'warning' : level, fields ? { message, ...fields } : message, of.tool)
        // The client has left, or a field is not JSON.
        .catch(() => {});
      return onLog?.(entry, of);
    },
  };
}

/** The suspended call that a client continues with its user's answers. */
function resume(call: ServedCall): ReturnType<typeof readAnswers> | undefined {
  const { mcpReq } = call.context;
  const sealed: unknown = mcpReq.requestState();
  if (sealed === undefined) return undefined;
  const opened = typeof sealed === 'string' ? call.served.state.open(sealed, bindingOf(call)) : undefined;
  return opened === undefined ? invalidState() : readAnswers(opened as Suspension, mcpReq.inputResponses);
}

/** Asks the client's user; `undefined` if one of the waits fits no form. */
function ask(call: ServedCall, asked: Asked): Served | undefined {
  const { tool, caller, scope, served } = call;
  const { waits, journal } = asked;
  if (waits.some(({ kind }) => kind === 'approval')) {
    // The client's user answers as the owner of the call, because their identity is unknown.
    const { owner } = scope;
    const request = { answeredBy: owner, owner, call: { tool: tool.name, arguments: journal.arguments } };
    const report = (error: unknown) => served.options.onError?.(error);
    if (!mayApprove(approverOf(tool.approval), request, report)) {
      const text = `The call of '${tool.name}' needs an approval that cannot be given on this connection, because its tool says who may give it. It was not run, and still has to be approved where that person is asked.`;
      return { type: 'refused', text };
    }
  }
  const requestState = () => served.state.seal({ waits, journal }, bindingOf(call));
  return askClient(asked, { tool, caller, requestState });
}

/** What must be equal when a client comes back: the call, the principal and session, and the owner in the scope. */
function bindingOf({ wanted, principal, caller, scope }: ServedCall): string {
  const owner = scope.owner === undefined ? [] : [canonicalJson(scope.owner)];
  const { method, name, arguments: args } = wanted;
  const call = [...(method === 'tools/call' ? [] : [method]), name, canonicalJson(args)];
  return JSON.stringify([...call, principal, caller.sessionId ?? null, ...owner]);
}

function invalidState(): never {
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'Invalid or expired requestState');
}

/** Reports a tool's progress to a client. `stop` ends it, because nothing may follow the response. */
interface ProgressReporter {
  report(update: ProgressUpdate): void;
  stop(): void;
}

/**
 * Sends `notifications/progress` if the client requested it. A tool may report a number, a text,
 * `{ progress, total?, message? }`, or any value; updates without a number are counted. MCP requires increasing
 * numbers, so others are skipped.
 */
function reportProgress({ mcpReq }: ServerContext): ProgressReporter | undefined {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return undefined;
  let last: number | undefined;
  let isOpen = true;
  return {
    report(update) {
      const { progress = (last ?? 0) + 1, ...step } = readStep(update);
      if (!isOpen || (last !== undefined && progress <= last)) return;
      last = progress;
      mcpReq
        .notify({ method: 'notifications/progress', params: { progressToken, progress, ...step } })
        // The client has left; this is not the place to end the call.
        .catch(() => {});
    },
    stop() {
      isOpen = false;
    },
  };
}

function readStep(update: ProgressUpdate): { progress?: number; total?: number; message?: string } {
  if (typeof update === 'number' && Number.isFinite(update)) return { progress: update };
  if (typeof update === 'string') return { message: update };
  if (typeof update !== 'object' || update === null) return {};
  const { progress, total, message, content } = update as Readonly<Record<string, unknown>>;
  // Updates of agent tools have content.
  const parts: readonly { readonly content?: unknown }[] = Array.isArray(content) ? content : [];
  const text = parts.flatMap((part) => (typeof part?.content === 'string' ? [part.content] : [])).join('\n');
  const words = typeof message === 'string' ? message : text;
  return {
    progress: Number.isFinite(progress) ? (progress as number) : undefined,
    total: Number.isFinite(total) ? (total as number) : undefined,
    message: words || undefined,
  };
}
