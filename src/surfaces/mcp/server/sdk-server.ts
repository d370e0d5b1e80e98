import {
  type CallToolRequest,
  type CallToolResult,
  type CompleteRequestParams,
  type CompleteResult,
  type ContentBlock,
  type GetPromptResult,
  type InputRequiredResult,
  McpServer,
  type Prompt,
  type PromptMessage,
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  type Resource,
  ResourceNotFoundError,
  type ServerContext,
  type Transport,
} from '@modelcontextprotocol/server';
import type { CallJournal, CallRecord, CallScope, Suspension } from '../../../core/contract/call.js';
import type { McpApp, ServedAs } from '../../../core/contract/declaration.js';
import type { JsonObject } from '../../../core/contract/json-schema.js';
import type { McpArrival } from '../../../core/contract/telemetry.js';
import type { ToolDefinition } from '../../../core/contract/tool.js';
import type { ProgressUpdate } from '../../../core/contract/tool-context.js';
import { anySignal } from '../../../core/kernel/async.js';
import {
  canonicalJson,
  copyOfJson,
  type Fields,
  isObject,
  isRecord,
  withoutUndefined,
} from '../../../core/kernel/json.js';
import type { Invocation, InvokeOptions } from '../../../run/call/invocation.js';
import { approverOf, mayApprove } from '../../../run/call/waits.js';
import { mcpErrorOf } from '../../../run/loop/drive.js';
import { asSent, recordMessage, TASKS_EXTENSION } from '../record-message.js';
import { APP_MIME_TYPE, htmlOf } from './apps.js';
import { ANSWER_MS, type Asked, type AskedClient, askClient, readAnswers } from './ask-client.js';
import { contentBlocks, isContent, listedTool, sentResult, structuredOutput } from './call-result.js';
import { findResource, isTemplate, LISTS, servedAs, servedCompletion } from './lists.js';
import type { OpenRequests } from './open-requests.js';
import type { McpCaller } from './options.js';
import {
  type CallerRights,
  callerOf,
  callScopeOf,
  listedPart,
  type McpRequest,
  prepare,
  rightsOf,
  type ServedTools,
  visibleTools,
} from './request.js';
import { type StartedWork, TASK_METHODS, type Tasks } from './tasks.js';

const CHANGES = LISTS.map((list) => `notifications/${list}/list_changed`);

/** The identifier of MCP Apps in `capabilities.extensions` (SEP-1865). */
const APPS_EXTENSION = 'io.modelcontextprotocol/ui';
/** How often a call may ask again. */
const MAX_ROUNDS = 32;
const PAGE_SIZE = 100;
/** The most resources that a connection can subscribe to; each URI stays in memory. */
const MAX_SUBSCRIBED = 1_000;
const MAX_URI_CHARACTERS = 8_000;

/** The SDK has already validated the parameters; its own type would validate them again. */
const AS_SENT = asSent<CallToolRequest['params']>();

/** The HTTP session of a server, with its last request. */
interface LastingSession extends Pick<McpCaller, 'headers' | 'authInfo' | 'sessionId'> {
  /** Ends the stream of notifications. */
  endStream(): void;
}

/** The SDK's server of a connection, with its lists, and with its requests that pass the pipeline of calls. */
export class RegistryMcpServer extends McpServer {
  readonly open: OpenRequests;
  /** URIs of resources that a 2025-11-25 client has subscribed to. */
  readonly subscribed = new Set<string>();
  session: LastingSession | undefined;
  readonly #served: ServedTools;

  constructor(served: ServedTools, open: OpenRequests, options: ConstructorParameters<typeof McpServer>) {
    super(...options);
    this.open = open;
    this.#served = served;
  }

  override connect(transport: Transport): Promise<void> {
    this.open.watch(transport);
    return super.connect(transport);
  }

  /** Tells the SDK which parameters are headers. */
  override toolInputSchemaJson(name: string): Record<string, unknown> | undefined {
    return this.#served.registry.offered(name)?.parameters;
  }

  /** A page of the tools, or of another part of the registry. The last page of the resources also has all MCP Apps. */
  list(context: ServerContext, cursor: string | undefined, kind?: ServedAs['kind']) {
    const { lists, options, telemetry } = this.#served;
    const request = this.#read(context);
    const method = kind === undefined ? 'tools/list' : `${kind}s/list`;
    const message = { ...arrivalOf(request, method), side: 'server' } as const;
    return recordMessage(telemetry, message, async () => {
      const visible = await visibleTools(request);
      const shown = listedPart(request, visible, kind);
      const { listed, ...page } = lists.page(shown, options.pageSize ?? PAGE_SIZE, cursor);
      const hasApps = kind === 'resource' && page.nextCursor === undefined;
      const apps = hasApps ? [...lists.apps(listedPart(request, visible)).values()] : [];
      return { listed, apps, page };
    });
  }

  /** Whether the caller may see a resource. */
  async sees(context: ServerContext, uri: string): Promise<boolean> {
    const request = this.#read(context);
    const visible = await visibleTools(request);
    const isApp = this.#served.lists.apps(listedPart(request, visible)).has(uri);
    return isApp || findResource(visible.part('resource'), uri) !== undefined;
  }

  /** Answers a request that passes the pipeline of calls. */
  serve<Params, Result>(
    params: Params,
    context: ServerContext,
    answer: (request: McpRequest, params: Params, signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    return answer(this.#read(context), params, this.open.signalOf(context.mcpReq));
  }

  #read(context: ServerContext): McpRequest {
    const { sessionId, mcpReq, http } = context;
    const { authInfo, req, closeSSE: closeStream } = http ?? {};
    const from = { authInfo, headers: req?.headers, sessionId, closeStream };
    const caller = callerOf(from, this.server, mcpReq.envelope);
    return { served: this.#served, server: this.server, context, caller };
  }
}

/**
 * Creates the SDK server of a connection, with one handler for each method. Lists and calls are the registry's own: the
 * SDK adds no checks.
 */
export function createSdkServer(
  served: ServedTools,
  open: OpenRequests,
  tasks: Tasks | undefined,
): RegistryMcpServer {
  const { options } = served;
  const { name = 'toolwright', version = '0.0.0', title } = options;
  // If callers see different tools, some must not see the descriptions of all toolsets.
  const isSameForAll = options.visible === undefined && options.oauth === undefined;
  const instructions = options.instructions ?? (isSameForAll ? served.lists.titles() : undefined);
  // Without prompts, `configure` may add the SDK's own; likewise resources. MCP Apps are resources.
  const hasApps = served.lists.apps().size > 0;
  const isServed = (kind: ServedAs['kind']) => served.registry.part(kind).count() > 0;
  const parts = {
    prompts: isServed('prompt'),
    resources: isServed('resource') || hasApps,
    completions: isServed('completion'),
  };
  const extensions = {
    ...(hasApps && { [APPS_EXTENSION]: {} }),
    ...(tasks && { [TASKS_EXTENSION]: {} }),
  };
  const mcp = new RegistryMcpServer(served, open, [
    { name, version, title },
    {
      capabilities: {
        tools: { listChanged: true },
        logging: {},
        ...(parts.prompts && { prompts: { listChanged: true } }),
        ...(parts.resources && { resources: { listChanged: true, subscribe: true } }),
        ...(parts.completions && { completions: {} }),
        ...(Object.keys(extensions).length > 0 && { extensions }),
      },
      instructions,
      inputRequired: { maxRounds: MAX_ROUNDS, roundTimeoutMs: ANSWER_MS },
      debouncedNotificationMethods: CHANGES,
    },
  ]);
  mcp.server.onerror = (error) => options.onError?.(error);
  serveTools(mcp, served, tasks);
  if (parts.prompts) servePrompts(mcp);
  if (parts.resources) serveResources(mcp);
  if (parts.completions)
    mcp.server.setRequestHandler('completion/complete', ({ params }, context) =>
      mcp.serve(params, context, completeArgument),
    );
  options.configure?.(mcp);
  return mcp;
}

function serveTools(mcp: RegistryMcpServer, { resource }: ServedTools, tasks: Tasks | undefined): void {
  mcp.server.setRequestHandler('tools/list', async ({ params }, context) => {
    const { listed, page } = await mcp.list(context, params?.cursor);
    return { tools: listed.map((tool) => listedTool(tool, resource !== undefined)), ...page };
  });
  mcp.server.setRequestHandler('tools/call', { params: AS_SENT }, (params, context) =>
    mcp.serve(params, context, (request, sent, signal) => serveToolCall(request, sent, { signal, tasks })),
  );
  if (tasks === undefined) return;
  for (const method of Object.keys(TASK_METHODS) as (keyof typeof TASK_METHODS)[])
    mcp.server.setRequestHandler(method, { params: TASK_PARAMS }, (params, context) =>
      mcp.serve(params, context, (request, { taskId }) => tasks.serve(method, request, taskId)),
    );
}

/** The SDK has no types for these methods. */
const TASK_PARAMS = asSent<{ readonly taskId?: unknown }>();

function servePrompts(mcp: RegistryMcpServer): void {
  mcp.server.setRequestHandler('prompts/list', async ({ params }, context) => {
    const { listed, page } = await mcp.list(context, params?.cursor, 'prompt');
    return { prompts: listed.map(listedPrompt), ...page };
  });
  mcp.server.setRequestHandler('prompts/get', ({ params }, context) => mcp.serve(params, context, getPrompt));
}

function serveResources(mcp: RegistryMcpServer): void {
  const { server, subscribed } = mcp;
  server.setRequestHandler('resources/list', async ({ params }, context) => {
    const { listed, apps, page } = await mcp.list(context, params?.cursor, 'resource');
    const resources = listed
      .filter((resource) => !isTemplate(resource))
      .map((resource) => ({ uri: servedAs(resource).uri, ...resourceFields(resource) }));
    return { resources: [...resources, ...apps.map(listedApp)], ...page };
  });
  server.setRequestHandler('resources/templates/list', async ({ params }, context) => {
    const { listed, page } = await mcp.list(context, params?.cursor, 'resource');
    const resourceTemplates = listed
      .filter(isTemplate)
      .map((resource) => ({ uriTemplate: servedAs(resource).uri, ...resourceFields(resource) }));
    return { resourceTemplates, ...page };
  });
  server.setRequestHandler('resources/read', ({ params }, context) =>
    mcp.serve(params, context, readResource),
  );
  server.setRequestHandler('resources/subscribe', async ({ params: { uri } }, context) => {
    if (!(await mcp.sees(context, uri))) throw new ResourceNotFoundError(uri);
    if (subscribed.size >= MAX_SUBSCRIBED || uri.length > MAX_URI_CHARACTERS)
      throw new ProtocolError(
        ProtocolErrorCode.InvalidParams,
        'Too many subscriptions, or the URI is too long',
      );
    subscribed.add(uri);
    return {};
  });
  server.setRequestHandler('resources/unsubscribe', ({ params }) => {
    subscribed.delete(params.uri);
    return {};
  });
}

/** A prompt as `prompts/list` returns it; its arguments are strings. */
function listedPrompt(prompt: ToolDefinition): Prompt {
  const { properties = {}, required = [] } = prompt.parameters;
  return withoutUndefined<Prompt>({
    ...descriptionOf(prompt),
    arguments: Object.entries(properties).map(([argument, schema]) => ({
      name: argument,
      ...(isRecord(schema) && typeof schema.description === 'string' && { description: schema.description }),
      required: required.includes(argument),
    })),
  });
}

/** The fields that prompts and resources share in lists. */
function descriptionOf({ name, description, annotations, icons, _meta }: ToolDefinition) {
  return {
    name,
    title: annotations?.title,
    description: description || undefined,
    icons: icons as Prompt['icons'],
    _meta: _meta as Prompt['_meta'],
  };
}

/** Handles `prompts/get`. */
async function getPrompt(
  request: McpRequest,
  {
    name,
    arguments: args = {},
  }: { readonly name: string; readonly arguments?: Readonly<Record<string, string>> },
  signal: AbortSignal,
): Promise<GetPromptResult | InputRequiredResult> {
  const served = await serveCall(request, { method: 'prompts/get', name, arguments: args }, signal);
  if (served.type === 'interim') return served.result;
  const value = returnedValue(served);
  const given = isRecord(value) && Array.isArray(value.messages) ? value : undefined;
  const description = given === undefined ? undefined : given.description;
  return {
    ...(typeof description === 'string' && { description }),
    messages: given === undefined ? userMessages(value) : (given.messages as unknown[]).flatMap(messagesOf),
  };
}

/**
 * The return value of a prompt, resource or completion.
 *
 * @throws ProtocolError for invalid arguments and for failures.
 */
function returnedValue(served: Exclude<Served, { readonly type: 'interim' }>): unknown {
  if (served.type === 'refused') throw new ProtocolError(ProtocolErrorCode.InternalError, served.text);
  const { status, result } = served.record;
  const code = status === 'rejected' ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError;
  if (result.isError) throw new ProtocolError(code, result.forLLM);
  return result.details;
}

function userMessages(value: unknown): PromptMessage[] {
  return contentBlocks(value).map((content) => ({ role: 'user', content }));
}

function messagesOf(message: unknown): PromptMessage[] {
  if (!isRecord(message) || message.role === undefined) return userMessages(message);
  const { role, content } = message;
  // Content parts of this package have their text in `content`.
  const isBlock = isRecord(content) && typeof content.type === 'string' && !('content' in content);
  const blocks = isBlock ? [content as unknown as ContentBlock] : contentBlocks(content);
  return blocks.map((block) => ({ role: role as PromptMessage['role'], content: block }));
}

/** The fields that lists of resources and of templates share. */
function resourceFields(resource: ToolDefinition) {
  const { mimeType, audience, priority } = servedAs(resource);
  const annotations = withoutUndefined({ audience: audience && [...audience], priority });
  return withoutUndefined<Omit<Resource, 'uri'>>({
    ...descriptionOf(resource),
    mimeType,
    annotations: Object.keys(annotations).length === 0 ? undefined : annotations,
  });
}

/** Handles `resources/read`. */
async function readResource(
  request: McpRequest,
  { uri }: { readonly uri: string },
  signal: AbortSignal,
): Promise<ReadResourceResult | InputRequiredResult> {
  const { lists, registry } = request.served;
  if (lists.apps().has(uri)) {
    const visible = await visibleTools(request);
    const app = lists.apps(listedPart(request, visible)).get(uri);
    if (app !== undefined)
      return prepare(request, async () => {
        const text = await htmlOf(app);
        return {
          contents: [withoutUndefined({ uri, mimeType: APP_MIME_TYPE, text, _meta: appMetadata(app) })],
        };
      });
  }
  const found = findResource(registry.part('resource'), uri);
  if (found === undefined) throw new ResourceNotFoundError(uri);
  const { resource, variables } = found;
  const wanted = { method: 'resources/read', name: resource.name, arguments: variables } as const;
  const served = await serveCall(request, wanted, signal);
  if (served.type === 'interim') return served.result;
  const value = returnedValue(served);
  if (value === undefined || value === null) throw new ResourceNotFoundError(uri);
  const { mimeType, ttlMs, cacheScope } = servedAs(resource);
  return {
    contents: contentsOf(value, { uri, mimeType }),
    ...(ttlMs !== undefined && { ttlMs, cacheScope: cacheScope ?? 'private' }),
  };
}

type Contents = ReadResourceResult['contents'];

function contentsOf(
  value: unknown,
  of: { readonly uri: string; readonly mimeType: string | undefined },
): Contents {
  const { uri, mimeType } = of;
  if (typeof value === 'string') return [{ uri, mimeType: mimeType ?? 'text/plain', text: value }];
  if (value instanceof Uint8Array)
    return [
      { uri, mimeType: mimeType ?? 'application/octet-stream', blob: Buffer.from(value).toString('base64') },
    ];
  if (isRecord(value) && Array.isArray(value.contents)) return value.contents as Contents;
  if (!isContent(value))
    return [{ uri, mimeType: mimeType ?? 'application/json', text: JSON.stringify(value) }];
  return contentBlocks(value).flatMap((block): Contents => {
    if (block.type === 'text') return [{ uri, mimeType: mimeType ?? 'text/plain', text: block.text }];
    if (block.type === 'resource') return [{ ...block.resource, uri }];
    return 'data' in block ? [{ uri, mimeType: block.mimeType, blob: block.data }] : [];
  });
}

/** The most suggestions in a response (MCP, completion). */
const MAX_VALUES = 100;

/** Handles `completion/complete`; without a completion method there are no suggestions. */
async function completeArgument(
  request: McpRequest,
  { ref, argument, context }: CompleteRequestParams,
  signal: AbortSignal,
): Promise<CompleteResult> {
  const of = ref.type === 'ref/prompt' ? ref.name : ref.uri;
  const completions = request.served.registry.part('completion').tools();
  const completion = completions.find((one) => {
    const completes = servedCompletion(one);
    return completes.of === of && completes.argument === argument.name;
  });
  if (completion === undefined) return { completion: { values: [] } };
  const wanted = {
    method: 'completion/complete',
    name: completion.name,
    arguments: { ...context?.arguments, value: argument.value },
  } as const;
  const served = await serveCall(request, wanted, signal);
  const value = served.type === 'interim' ? [] : returnedValue(served);
  const all = Array.isArray(value) ? value.map(String) : [];
  const values = all.slice(0, MAX_VALUES);
  return { completion: { values, total: all.length, hasMore: all.length > values.length } };
}

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
type Served =
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
async function serveToolCall(
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
async function serveCall(request: McpRequest, wanted: Wanted, signal: AbortSignal): Promise<Served> {
  const { served, server, caller, context } = request;
  const { tools: visible, scope, principal } = await rightsOf(request);
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
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, result.forLLM);
  }
  const tasks = wanted.tasks?.accepts(tool, caller) ? wanted.tasks : undefined;
  const work = served.options.onAsyncResult === undefined ? tasks?.follow(caller) : undefined;
  const call = { served, server, context, caller, tools, scope, principal, tool, wanted, signal, work };
  let journal: CallJournal | undefined;
  const sealed: unknown = context.mcpReq.requestState();
  if (sealed !== undefined) {
    const opened = typeof sealed === 'string' ? served.state.open(sealed, bindingOf(call)) : undefined;
    if (opened === undefined) return invalidState();
    const answered = readAnswers(opened as Suspension, context.mcpReq.inputResponses);
    if (!answered.ok) return ask(call, answered.asked) ?? invalidState();
    journal = answered.journal;
  }
  if (tasks !== undefined && tool.background) {
    const suspension = journal && { waits: [], journal };
    return beginTask(call, () => tasks.begin(call, suspension));
  }
  const progress = reportProgress(context);
  const invocation = await invoke(call, journal, progress);
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
  const { wanted, context, served, tools, tool, work } = call;
  const { method, name, arguments: args } = wanted;
  const { policy, toolTimeoutMs, onAsyncResult, telemetry } = served.options;
  const reports = work === undefined ? onAsyncResult : wanted.tasks?.onAsyncResult;
  // Structured content needs data in the response, which an acknowledgement lacks.
  const awaitsJobs = reports === undefined || (work === undefined && structuredOutput(tool) !== undefined);
  const options = {
    policy,
    toolTimeoutMs,
    telemetry,
    ...(awaitsJobs ? { awaitsJobs } : { onAsyncResult: reports }),
  };
  return tools.invoker(withoutUndefined<InvokeOptions>(options))(
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
      const text = `The call of '${tool.name}' needs an approval that cannot be given on this connection, because its tool restricts who may approve it. It was not run. It must be approved in another application by such a user.`;
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

/** A view as `resources/list` returns it. */
function listedApp(app: McpApp) {
  const { uri, title, description } = app;
  const name = uri.slice('ui://'.length);
  return withoutUndefined({
    uri,
    name,
    title,
    description,
    mimeType: APP_MIME_TYPE,
    _meta: appMetadata(app),
  });
}

function appMetadata({ csp, permissions, domain, prefersBorder }: McpApp) {
  const ui = withoutUndefined({ csp, permissions, domain, prefersBorder });
  return Object.keys(ui).length === 0 ? undefined : { ui };
}

/** Telemetry facts about a request. */
function arrivalOf({ caller, context }: McpRequest, method: string): McpArrival {
  const { protocolVersion, sessionId } = caller;
  const { mcpReq, http } = context;
  const transport = http === undefined ? undefined : 'tcp';
  const requestId = String(mcpReq.id);
  return { method, protocolVersion, sessionId, requestId, transport, carrier: mcpReq._meta };
}
