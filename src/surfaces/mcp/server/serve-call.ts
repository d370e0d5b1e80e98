import { isUtf8 } from 'node:buffer';
import {
  type CallToolRequest,
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  type ClientCapabilities,
  type ContentBlock,
  type Implementation,
  type InputRequiredResult,
  McpServer,
  PROTOCOL_VERSION_META_KEY,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext,
  type Transport,
} from '@modelcontextprotocol/server';
import type { CallJournal, CallRecord, CallScope, Suspension } from '../../../core/contract/call.js';
import type { JsonObject, JsonSchema } from '../../../core/contract/json-schema.js';
import type { McpFacts } from '../../../core/contract/telemetry.js';
import type { ToolDefinition } from '../../../core/contract/tool.js';
import type { ProgressUpdate } from '../../../core/contract/tool-context.js';
import type { ContentPart, FilePart, ToolResult } from '../../../core/contract/tool-result.js';
import { ToolwrightError } from '../../../core/errors/toolwright-error.js';
import { isThenable } from '../../../core/kernel/async.js';
import { canonicalJson, copyOfJson } from '../../../core/kernel/json.js';
import type { Invocation, Invoker } from '../../../run/call/invocation.js';
import type { NameFilter } from '../../../run/call/registration.js';
import { isCutDetails, notesOf, resultText } from '../../../run/call/result-text.js';
import type { ToolRegistry } from '../../../run/call/tool-registry.js';
import { approverOf, mayApprove } from '../../../run/call/waits.js';
import { asSent, recordMessage } from '../record-message.js';
import { ANSWER_MS, type Asked, askClient, readAnswers, type SealedState } from './ask-client.js';
import { promisedOutput } from './listed-tool.js';
import type { OpenRequests } from './open-requests.js';
import type { McpCaller, McpServerOptions } from './options.js';
import type { ToolLists } from './tool-lists.js';

/** How often one call may come back with another question. */
const MOST_ROUNDS = 32;
const PAGE_SIZE = 100;

/** The SDK has checked the parameters of a call before it looks at this; by a type of its own it checks them twice. */
const AS_SENT = asSent<CallToolRequest['params']>();

/**
 * The SDK's server with the one thing that it looks up among its own tools, which parameters have headers; and
 * with an eye on what is not answered yet.
 */
export class RegistryMcpServer extends McpServer {
  readonly open: OpenRequests;
  readonly #registry: ToolRegistry;

  constructor(registry: ToolRegistry, open: OpenRequests, options: ConstructorParameters<typeof McpServer>) {
    super(...options);
    this.open = open;
    this.#registry = registry;
  }

  override connect(transport: Transport): Promise<void> {
    this.open.watch(transport);
    this.open.followAborts(transport);
    return super.connect(transport);
  }

  override toolInputSchemaJson(name: string): Record<string, unknown> | undefined {
    return this.#registry.offered(name)?.parameters;
  }
}

/**
 * A server of the SDK for one connection. Lists and calls are the registry's own: the SDK adds no check to
 * them.
 */
export function createSdkServer(served: ServedTools, open: OpenRequests): RegistryMcpServer {
  const { registry, options } = served;
  const { name = 'toolwright', version = '0.0.0', title } = options;
  // Where callers see different tools, some may not know of all toolsets.
  const instructions = options.instructions ?? (options.visible ? undefined : served.lists.titles());
  const mcp = new RegistryMcpServer(registry, open, [
    { name, version, ...(title === undefined ? {} : { title }) },
    {
      capabilities: { tools: { listChanged: true }, logging: {} },
      ...(instructions === undefined ? {} : { instructions }),
      inputRequired: { maxRounds: MOST_ROUNDS, roundTimeoutMs: ANSWER_MS },
      debouncedNotificationMethods: ['notifications/tools/list_changed'],
    },
  ]);
  const { server } = mcp;
  server.onerror = (error) => options.onError?.(error);
  server.setRequestHandler('tools/list', ({ params }, context) => {
    const caller = callerOf(server, context);
    const list = async () => {
      const tools = await prepared(options, async () => served.lists.view(await options.visible?.(caller)));
      return served.lists.page(tools, options.pageSize ?? PAGE_SIZE, params?.cursor);
    };
    const carrier = context.mcpReq._meta;
    const message = { ...factsOf('tools/list', caller, context), side: 'server', carrier } as const;
    return recordMessage(options.telemetry ?? registry.telemetry, message, list);
  });
  server.setRequestHandler('tools/call', { params: AS_SENT }, async (params, context) => {
    const caller = callerOf(server, context);
    const asked = prepared(options, () => callerRights(served, caller, context));
    const { tools, scope, principal } = isThenable(asked) ? await asked : asked;
    const { signal, end } = open.call(context.mcpReq.signal);
    try {
      return await serveCall({ served, server, params, context, caller, tools, scope, principal, signal });
    } finally {
      end();
    }
  });
  options.configure?.(mcp);
  return mcp;
}

/** Waits for nothing where the application answers at once. */
function callerRights({ options, lists }: ServedTools, caller: McpCaller, context: ServerContext) {
  const filter = options.visible?.(caller);
  const scope = options.scope?.(caller);
  const principal = principalOf(options, context);
  const rights = (shown: NameFilter | undefined, own: CallScope | undefined) => ({
    tools: lists.view(shown),
    scope: own ?? {},
    principal,
  });
  return isThenable(filter) || isThenable(scope)
    ? Promise.all([filter, scope]).then(([shown, own]) => rights(shown, own))
    : rights(filter, scope);
}

const NO_TOKEN = JSON.stringify([null, null]);

/** Whom sessions and suspended calls belong to. */
export function principalOf(options: McpServerOptions, { http }: Pick<ServerContext, 'http'>): string {
  const authInfo = http?.authInfo;
  if (options.principal) return options.principal(authInfo);
  if (authInfo === undefined) return NO_TOKEN;
  return JSON.stringify([authInfo.clientId ?? null, authInfo.extra?.sub ?? null]);
}

/** What the application throws while it looks at a caller is not for the caller's eyes. */
function prepared<Value>(
  options: McpServerOptions,
  prepare: () => Value | Promise<Value>,
): Value | Promise<Value> {
  const fail = (error: unknown): never => {
    options.onError?.(error);
    throw new ProtocolError(ProtocolErrorCode.InternalError, 'The request could not be prepared');
  };
  try {
    const value = prepare();
    return isThenable(value) ? Promise.resolve(value).catch(fail) : value;
  } catch (error) {
    return fail(error);
  }
}

/** The caller of one request; a 2026-07-28 request names client and revision itself. */
function callerOf(server: Server, { sessionId, mcpReq, http }: ServerContext): McpCaller {
  const envelope = mcpReq.envelope as
    | {
        readonly [PROTOCOL_VERSION_META_KEY]?: string;
        readonly [CLIENT_INFO_META_KEY]?: Implementation;
        readonly [CLIENT_CAPABILITIES_META_KEY]?: ClientCapabilities;
      }
    | undefined;
  return {
    ...(http?.authInfo && { authInfo: http.authInfo }),
    ...(http?.req && { headers: http.req.headers }),
    ...(sessionId !== undefined && { sessionId }),
    protocolVersion: envelope?.[PROTOCOL_VERSION_META_KEY] ?? server.getNegotiatedProtocolVersion(),
    client: envelope?.[CLIENT_INFO_META_KEY] ?? server.getClientVersion(),
    capabilities: envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? server.getClientCapabilities() ?? {},
    ...(http?.closeSSE && { closeStream: http.closeSSE }),
  };
}

/** What the servers of all connections share. */
export interface ServedTools {
  readonly registry: ToolRegistry;
  readonly options: McpServerOptions;
  readonly state: SealedState;
  readonly lists: ToolLists;
  /** By the tools of a caller: with the application's `onAsyncResult`, and without it. */
  readonly invokers: WeakMap<ToolRegistry, { readonly heard: Invoker; readonly unheard: Invoker }>;
}

/** One `tools/call`, and who makes it. */
interface ServedCall {
  readonly served: ServedTools;
  /** The tools that this caller may call. */
  readonly tools: ToolRegistry;
  readonly scope: CallScope;
  /** Whose suspended calls this caller may go on with. */
  readonly principal: string;
  readonly server: Server;
  readonly params: CallToolRequest['params'];
  readonly context: ServerContext;
  readonly caller: McpCaller;
  /** Aborted when the call is cancelled, or the server is closed. */
  readonly signal: AbortSignal;
}

/** Takes a call through the pipeline and says how it ended. What is wrong with the call itself is its result. */
async function serveCall(call: ServedCall): Promise<CallToolResult | InputRequiredResult> {
  const resumed = resume(call);
  if (resumed?.ok === false) return ask(call, resumed.asked) ?? invalidState();
  const progress = reportProgress(call.context);
  const invocation = await invoke(call, resumed?.journal, progress);
  progress?.stop();
  const { result, record } = invocation;
  const rejection = record.status === 'rejected' && ToolwrightError.is(result.error) && result.error.name;
  // In MCP an unknown tool is no result.
  if (rejection === 'ToolNotFound') throw new ProtocolError(ProtocolErrorCode.InvalidParams, result.forLLM);
  const asked = invocation.status === 'suspended' ? ask(call, invocation.suspension) : undefined;
  if (asked !== undefined) return asked;
  const output = outputOf(call);
  return call.server.projectCallToolResult(writeCallResult(record, output), output);
}

function outputOf({ tools, params }: ServedCall): JsonSchema | undefined {
  const tool = tools.offered(params.name);
  return tool && promisedOutput(tool);
}

function invoke(
  call: ServedCall,
  journal: CallJournal | undefined,
  progress?: ProgressReporter,
): Invocation | Promise<Invocation> {
  const { params, context, caller, served } = call;
  const { name, arguments: args = {} } = params;
  const { mcpReq } = context;
  const isRecorded = (served.options.telemetry ?? served.registry.telemetry)?.isOn === true;
  const arrival = () => ({ ...factsOf('tools/call', caller, context), carrier: mcpReq._meta });
  return invokerFor(call)(
    {
      id: String(mcpReq.id),
      name,
      arguments: args,
      // A method may change its arguments, and is run again with what was sent once it has its answer.
      read: { ok: true, value: copyOfJson(args) as JsonObject, repairs: NO_REPAIRS },
      journal,
      mcp: isRecorded ? arrival() : undefined,
    },
    scopeOf(call, progress),
  );
}

const NO_REPAIRS: readonly string[] = [];

function invokerFor(call: ServedCall): Invoker {
  const { invokers, options } = call.served;
  const { policy, toolTimeoutMs, onAsyncResult, telemetry } = options;
  let known = invokers.get(call.tools);
  if (known === undefined) {
    const own = {
      ...(policy && { policy }),
      ...(toolTimeoutMs !== undefined && { toolTimeoutMs }),
      ...(telemetry && { telemetry }),
    };
    // MCP has no way to bring a client what comes of a job later.
    const unheard = call.tools.invoker({ ...own, awaitsJobs: true });
    known = { unheard, heard: onAsyncResult ? call.tools.invoker({ ...own, onAsyncResult }) : unheard };
    invokers.set(call.tools, known);
  }
  // Who declared an `output` promised data with the answer, and an acknowledgement has none.
  return onAsyncResult === undefined || outputOf(call) !== undefined ? known.unheard : known.heard;
}

/** What is recorded of a message that came. */
function factsOf(
  method: string,
  { protocolVersion, sessionId }: McpCaller,
  { mcpReq, http }: ServerContext,
): McpFacts {
  const transport = http === undefined ? undefined : 'tcp';
  return { method, protocolVersion, sessionId, requestId: String(mcpReq.id), transport };
}

function scopeOf({ scope, caller, context, signal }: ServedCall, progress?: ProgressReporter): CallScope {
  const { mcpReq, sessionId } = context;
  const { onUpdate, onLog } = scope;
  return {
    channel: 'mcp',
    ...(sessionId !== undefined && { conversationId: sessionId }),
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
        .log(LEVELS[level], fields ? { message, ...fields } : message, of.tool)
        // The client is gone, or a field is no JSON.
        .catch(() => {});
      return onLog?.(entry, of);
    },
  };
}

const LEVELS = { debug: 'debug', info: 'info', warn: 'warning', error: 'error' } as const;

/** What a client brings along when it comes back with its user's answers. */
function resume(call: ServedCall): ReturnType<typeof readAnswers> | undefined {
  const { mcpReq } = call.context;
  const sealed: unknown = mcpReq.requestState();
  if (sealed === undefined) return undefined;
  const opened = typeof sealed === 'string' ? call.served.state.open(sealed, bindingOf(call)) : undefined;
  return opened === undefined ? invalidState() : readAnswers(opened as Suspension, mcpReq.inputResponses);
}

function ask(call: ServedCall, asked: Asked): InputRequiredResult | CallToolResult | undefined {
  const tool = call.tools.offered(call.params.name);
  if (tool === undefined) return undefined;
  const { waits, journal } = asked;
  if (waits.some(({ kind }) => kind === 'approval') && !mayUserApprove(call, tool, journal)) {
    const text = `The call of '${tool.name}' needs an approval that cannot be given on this connection, because its tool says who may give it. It was not run, and still has to be approved where that person is asked.`;
    return { content: [{ type: 'text', text }], isError: true };
  }
  const requestState = () => call.served.state.seal({ waits, journal }, bindingOf(call));
  return askClient(asked, { tool, caller: call.caller, requestState });
}

/** The client's user answers as the owner of the call: nothing shows that somebody else does, or that it is a person. */
function mayUserApprove(
  { scope, served }: ServedCall,
  tool: ToolDefinition,
  { arguments: args }: CallJournal,
): boolean {
  const { owner } = scope;
  const request = { answeredBy: owner, owner, call: { tool: tool.name, arguments: args } };
  return mayApprove(approverOf(tool.approval), request, (error) => served.options.onError?.(error));
}

/**
 * What must be the same when a client comes back: the call that was asked about, and who was asked, for the transport and
 * for the application's scope.
 */
function bindingOf({ params, principal, caller, scope }: ServedCall): string {
  const owner = scope.owner === undefined ? [] : [canonicalJson(scope.owner)];
  const call = [params.name, canonicalJson(params.arguments ?? {})];
  return JSON.stringify([...call, principal, caller.sessionId ?? null, ...owner]);
}

function invalidState(): never {
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'Invalid or expired requestState');
}

/** Passes a tool's news on to a client; `stop` when the call is answered, for nothing may follow that. */
interface ProgressReporter {
  report(update: ProgressUpdate): void;
  stop(): void;
}

/**
 * Sends `notifications/progress`, where the client asked for it. What a tool reports may be a number, a text,
 * `{ progress, total?, message? }`, or any value; what is no number is counted. MCP wants progress to rise, so
 * that a number that does not is passed over.
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
        // The client is gone; whether anybody still wants the call is not decided here.
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
  // Updates of agent tools carry content.
  const parts: readonly { readonly content?: unknown }[] = Array.isArray(content) ? content : [];
  const text = parts.flatMap((part) => (typeof part?.content === 'string' ? [part.content] : [])).join('\n');
  const words = typeof message === 'string' ? message : text;
  return {
    ...(Number.isFinite(progress) ? { progress: progress as number } : {}),
    ...(Number.isFinite(total) ? { total: total as number } : {}),
    ...(words === '' ? {} : { message: words }),
  };
}

/** The result of a call, as the client receives it. With a declared `output`, also as data. */
function writeCallResult(record: CallRecord, output: JsonSchema | undefined): CallToolResult {
  const { result } = record;
  const content = contentOf(result);
  for (const text of notesOf(record)) content.push({ type: 'text', text });
  const { silent, forUser } = result;
  // What the user is to see and the model need not, in the protocol's words (MCP, annotations).
  if (!silent && forUser && forUser !== resultText(result))
    content.push({ type: 'text', text: forUser, annotations: { audience: ['user'] } });
  if (result.isError) return { content, isError: true };
  if (output === undefined || result.async) return { content };
  return { content, structuredContent: structuredOf(result, output) };
}

function contentOf(result: ToolResult): ContentBlock[] {
  const { content } = result;
  const text = resultText(result);
  if (content === undefined || content.length === 0) return [{ type: 'text', text }];
  const blocks = content.map(blockOf);
  const hasText = content.some(({ type }) => type === 'text');
  return hasText || text === '' ? blocks : [{ type: 'text', text }, ...blocks];
}

function blockOf(part: ContentPart): ContentBlock {
  if (part.type === 'text') return { type: 'text', text: part.content };
  if (part.type === 'image') return { type: 'image', data: part.data, mimeType: part.mimeType };
  if (part.mimeType.startsWith('audio/')) return { type: 'audio', data: part.data, mimeType: part.mimeType };
  return { type: 'resource', resource: resourceOf(part) };
}

const TEXTUAL = /^text\/|[/+](json|xml|yaml|javascript)\b/;

/** A file that is text is sent as text: a model can read that. */
function resourceOf({ data, mimeType, filename }: FilePart) {
  const uri = URL.canParse(filename) ? filename : `file:///${encodeURIComponent(filename)}`;
  const bytes = TEXTUAL.test(mimeType) ? Buffer.from(data, 'base64') : undefined;
  return bytes !== undefined && isUtf8(bytes)
    ? { uri, mimeType, text: bytes.toString() }
    : { uri, mimeType, blob: data };
}

/** The value that was checked against `output`: the details of a result, or what its text says. */
function structuredOf(result: ToolResult, output: JsonSchema): unknown {
  const { details: given } = result;
  // `maxResultChars` cuts what a model reads; data would be broken by it.
  const [text, details] = isCutDetails(given) ? [given.full, given.details] : [result.forLLM, given];
  // As the check of the output saw it: big integers are their digits.
  const digits = (_key: string, field: unknown) => (typeof field === 'bigint' ? field.toString() : field);
  if (details !== undefined) return JSON.parse(JSON.stringify(details, digits));
  if (output.type === 'string' || output.const === text || output.enum?.includes(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    // `ok` is how nothing is worded.
    return text === 'ok' ? null : text;
  }
}
