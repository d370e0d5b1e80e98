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
import { anySignal } from '../../../core/kernel/async.js';
import { cached } from '../../../core/kernel/cached.js';
import {
  canonicalJson,
  copyOfJson,
  type Fields,
  isObject,
  withoutUndefined,
} from '../../../core/kernel/json.js';
import type { Invocation, InvokeOptions, Invoker } from '../../../run/call/invocation.js';
import { approverOf, mayApprove } from '../../../run/call/waits.js';
import { mcpErrorOf } from '../../../run/loop/drive.js';
import { type Asked, type AskedClient, askClient, readAnswers } from './ask-client.js';
import { sentResult } from './call-result.js';
import { structuredOutput } from './listed-tool.js';
import {
  arrivalOf,
  type CallerRights,
  callScopeOf,
  type InvokerKind,
  type McpRequest,
  prepare,
  rightsOf,
} from './request.js';
import type { StartedWork, Tasks } from './tasks.js';

/** A client's request: to call a tool, get a prompt, read a resource, or complete an argument. */
interface Wanted {
  readonly method: keyof typeof PARTS;
  readonly name: string;
  readonly arguments: Fields;
  /** The tasks of the server, if the call may become one. */
  readonly tasks?: Tasks | undefined;
}

/** The part of the registry for a method; tools are in the registry itself. */
const PARTS = {
  'tools/call': undefined,
  'prompts/get': 'prompt',
  'resources/read': 'resource',
  'completion/complete': 'completion',
} as const;

/** The outcome: the call ended, became a task, or the client's user is asked. */
export type Served =
  | { readonly type: 'ended'; readonly record: CallRecord; readonly tool: ToolDefinition }
  | AskedClient;

/** A request in the pipeline of calls. */
interface ServedCall extends McpRequest, CallerRights {
  readonly tool: ToolDefinition;
  readonly wanted: Wanted;
  /** Aborted when the call is cancelled or the server is closed. */
  readonly signal: AbortSignal;
  /** The work that the call may start, if it can become a task. */
  readonly work?: StartedWork | undefined;
}

/** Handles `tools/call`. A fault of the call itself becomes its result. */
export async function serveToolCall(
  request: McpRequest,
  { name, arguments: args = {} }: CallToolRequest['params'],
  { signal, tasks }: { readonly signal: AbortSignal; readonly tasks: Tasks | undefined },
): Promise<CallToolResult | InputRequiredResult> {
  const served = await serveCall(request, { method: 'tools/call', name, arguments: args, tasks }, signal);
  if (served.type === 'interim') return served.result;
  if (served.type === 'refused') return { content: [{ type: 'text', text: served.text }], isError: true };
  const { record, tool } = served;
  const error = mcpErrorOf(record.result);
  if (error !== undefined) throw error;
  return sentResult(request.server, record, tool);
}

/**
 * Sends a request through the pipeline of calls.
 *
 * @throws ProtocolError for what the caller does not see, and for a state that belongs to another caller.
 */
export async function serveCall(request: McpRequest, wanted: Wanted, signal: AbortSignal): Promise<Served> {
  const { served, server, caller, context } = request;
  const rights = rightsOf(request);
  const { tools: visible, scope, principal } = rights instanceof Promise ? await rights : rights;
  const part = PARTS[wanted.method];
  const tools = part === undefined ? visible : visible.part(part);
  const tool = tools.offered(wanted.name);
  // MCP needs an error for an unknown tool or prompt; the pipeline's text suggests similar names.
  if (tool === undefined) {
    const { method, name, arguments: args } = wanted;
    const mcp = served.telemetry?.isOn ? arrivalOf(request, method) : undefined;
    // The server may record what its registry does not.
    const options = withoutUndefined({ telemetry: served.telemetry });
    const { result } = await tools.invoke({ id: '', name, arguments: args, mcp }, {}, options);
    const text = result.forLLM.replace(/^tool/, part ?? 'tool');
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, text);
  }
  const tasks = wanted.tasks?.accepts(tool, caller) ? wanted.tasks : undefined;
  const work = served.options.onAsyncResult === undefined ? tasks?.follow(caller) : undefined;
  const call = { served, server, context, caller, tools, scope, principal, tool, wanted, signal, work };
  const resumed = resume(call);
  if (resumed?.ok === false) return ask(call, resumed.asked) ?? invalidState();
  if (tasks !== undefined && tool.background) {
    const suspension = resumed && { waits: [], journal: resumed.journal };
    return beginTask(call, () => tasks.begin(call, suspension));
  }
  const progress = reportProgress(context);
  const invocation = await invoke(call, resumed?.journal, progress);
  progress?.stop();
  if (invocation.status === 'started' && tasks !== undefined && work !== undefined)
    return beginTask(call, () => tasks.beginStarted(call, invocation.record, work));
  if (invocation.status !== 'suspended') return { type: 'ended', record: invocation.record, tool };
  const { suspension } = invocation;
  if (tasks !== undefined && suspension.waits.some(({ kind }) => kind === 'approval'))
    return beginTask(call, () => tasks.begin(call, suspension));
  return ask(call, suspension) ?? { type: 'ended', record: invocation.record, tool };
}

/** Makes a call a task: an approval may take longer than a request, and so may background work. */
async function beginTask(call: ServedCall, begin: () => Promise<InputRequiredResult>): Promise<Served> {
  return { type: 'interim', result: await prepare(call, begin) };
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

function invokerFor({ served, tools, tool, wanted, work }: ServedCall): Invoker {
  const { invokers, options } = served;
  const { policy, toolTimeoutMs, onAsyncResult, telemetry } = options;
  let kind: InvokerKind = 'reporting';
  if (work !== undefined) kind = 'task';
  // Structured content needs data in the response, which an acknowledgement lacks.
  else if (onAsyncResult === undefined || structuredOutput(tool) !== undefined) kind = 'waiting';
  const ofTools = cached(invokers, tools, () => new Map<InvokerKind, Invoker>());
  return cached(ofTools, kind, () => {
    const completions: Readonly<Record<InvokerKind, InvokeOptions>> = {
      waiting: { awaitsJobs: true },
      reporting: withoutUndefined({ onAsyncResult }),
      task: withoutUndefined({ onAsyncResult: wanted.tasks?.onAsyncResult }),
    };
    return tools.invoker({
      ...withoutUndefined({ policy, toolTimeoutMs, telemetry }),
      ...completions[kind],
    });
  });
}

function scopeOf(
  { scope, caller, context, signal, work }: ServedCall,
  progress?: ProgressReporter,
): CallScope {
  const { mcpReq } = context;
  const { onUpdate, onLog } = scope;
  return {
    ...callScopeOf(scope, caller),
    signal: anySignal(scope.signal, work?.cancelled.signal, signal),
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
  if (!isObject(update)) return {};
  const { progress, total, message, content } = update as Fields;
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
