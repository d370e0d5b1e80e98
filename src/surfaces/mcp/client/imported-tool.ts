import { createHash } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type {
  CallToolResult,
  Client,
  ContentBlock,
  ElicitRequestParams,
  ElicitResult,
  Tool as McpTool,
  Progress,
  Transport,
} from '@modelcontextprotocol/client';
import {
  isCallToolResult,
  isInputRequiredResult,
  isSpecType,
  ProtocolError,
  ProtocolErrorCode,
} from '@modelcontextprotocol/server';
import type { ToolAnnotations } from '../../../core/contract/declaration.js';
import type { JsonObject, JsonSchema } from '../../../core/contract/json-schema.js';
import { type McpFacts, type Telemetry, type TraceCarrier } from '../../../core/contract/telemetry.js';
import type { Effect, Reconciliation, ToolDefinition } from '../../../core/contract/tool.js';
import type { ToolContext } from '../../../core/contract/tool-context.js';
import { type ContentPart, ToolResult } from '../../../core/contract/tool-result.js';
import { warnAuthor } from '../../../core/errors/author-fault.js';
import { ToolwrightError } from '../../../core/errors/toolwright-error.js';
import { MAX_TIMER_MS } from '../../../core/kernel/async.js';
import { canonicalJson, isRecord, withoutUndefined } from '../../../core/kernel/json.js';
import { CallContext } from '../../../run/call/context.js';
import { textOf } from '../../../run/call/result-form.js';
import { createNameFilter } from '../../../run/call/tool-registry.js';
import { isLeftToOthers } from '../../../run/loop/claimed-run.js';
import {
  describeSchemaFault,
  readForeignSchema,
  rejectedDefaults,
} from '../../../tools/checking/schema-faults.js';
import { TOOL_NAME } from '../../../tools/discovery/define-tool.js';
import { asSent, recordMessage } from '../record-message.js';
import { LiveClient, UnreachableError } from './live-client.js';
import { type McpToolCandidate, McpToolsOptions } from './options.js';
import { type AskForSignIn, serverRefusalOf } from './sign-in.js';

/** A page as the server sent it; the SDK's own parser would reorder the keys of schemas. */
interface RawPage {
  readonly tools?: unknown;
  readonly nextCursor?: unknown;
  readonly ttlMs?: unknown;
}

const PAGE_AS_SENT = asSent<RawPage>();

/** Limit for servers whose list never ends. */
const MOST_PAGES = 1_000;

/** All pages of a server's tool list, with schemas unchanged; invalid tools are skipped. */
async function readToolList(
  client: Client,
  telemetry: Telemetry | undefined,
): Promise<{ readonly tools: readonly McpTool[]; readonly ttlMs: number }> {
  if (client.getServerCapabilities()?.tools === undefined) return { tools: [], ttlMs: 0 };
  adaptMessages(client);
  const tools: McpTool[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const message = { ...factsFor(client, 'tools/list'), side: 'client' } as const;
    const {
      tools: found,
      nextCursor,
      ttlMs = 0,
    } = await recordMessage(telemetry, message, (carrier) => {
      const params = withoutUndefined({ cursor, _meta: carrier && { ...carrier } });
      return client.request({ method: 'tools/list', params }, PAGE_AS_SENT);
    });
    if (Array.isArray(found)) tools.push(...found.filter(isTool));
    if (typeof nextCursor === 'string' && nextCursor !== cursor) {
      cursor = nextCursor;
      continue;
    }
    if (!isModern(client)) return { tools, ttlMs: Number(ttlMs) };
    // Since 2026-07-28, clients must ignore tools with invalid header declarations; the SDK filters them.
    const known = await client.listTools(undefined, { cacheMode: 'refresh' });
    const names = new Set(known.tools.map(({ name }) => name));
    return { tools: tools.filter(({ name }) => names.has(name)), ttlMs: Number(ttlMs) };
  }
  throw new Error(`The server's list of tools has more than ${MOST_PAGES} pages.`);
}

export function isModern(client: Client): boolean {
  return client.getProtocolEra() === 'modern';
}

function isTool(tool: unknown): tool is McpTool {
  if (!isRecord(tool) || !isRecord(tool.inputSchema) || tool.name === '') return false;
  // Some servers omit the type of the root, which must be an object.
  return isReadable({ ...tool, inputSchema: { type: 'object', ...tool.inputSchema } });
}

const ADAPTED = new WeakSet<Transport>();

/**
 * Changes incoming messages that the SDK would refuse. It knows no unknown blocks of results, and since 2026-07-28 no
 * tasks; and it refuses a whole page of tools because of a malformed one.
 */
function adaptMessages(client: Client): void {
  const { transport } = client;
  if (transport === undefined || ADAPTED.has(transport)) return;
  ADAPTED.add(transport);
  const { onmessage } = transport;
  const isOfTasks = isModern(client);
  transport.onmessage = (message, extra) => {
    if (!('result' in message)) return onmessage?.(message, extra);
    let { result } = message;
    // Only transports of the SDK check this. The SDK ignores such a response, so that its request would never end.
    if (!isRecord(result)) {
      const { jsonrpc, id } = message;
      return onmessage?.({ jsonrpc, id, error: NO_RESULT }, extra);
    }
    if (isOfTasks && Array.isArray(result.tools)) {
      const tools = result.tools.filter((tool) => isReadable(tool) && tool.name !== '');
      result = { ...result, tools };
    }
    const { resultType, taskId } = result;
    if (isOfTasks && resultType === 'task' && typeof taskId === 'string' && taskId !== '')
      result = { resultType: 'complete', content: [], _meta: { [TASK_ID]: taskId } };
    onmessage?.({ ...message, result: withReadableContent(result) }, extra);
  };
}

/** Whether the SDK accepts a value as a tool; it cannot check very deep nesting. */
function isReadable(tool: unknown): tool is McpTool {
  try {
    return isSpecType.Tool(tool);
  } catch {
    return false;
  }
}

/** The server's tools that the options allow, with their local names, in the server's order. */
export async function listCandidates(
  client: Client,
  options: McpToolsOptions,
): Promise<{ readonly candidates: McpToolCandidate[]; readonly ttlMs: number }> {
  const { tools, ttlMs } = await readToolList(client, options.telemetry);
  const isWanted = createNameFilter(options);
  const all = tools
    .filter(({ name }) => isWanted(name))
    .map((definition) => {
      // Everything that a model receives about the tool; the order of keys does not matter.
      const { name, title, description, inputSchema, outputSchema, annotations } = definition;
      const shown = canonicalJson({ name, title, description, inputSchema, outputSchema, annotations });
      const fingerprint = createHash('sha256').update(shown).digest('hex');
      return { name: localName(name, options.prefix), definition, fingerprint };
    });
  // Of tools with the same name, only the last can be called.
  const candidates = [...new Map(all.reverse().map((tool) => [tool.name, tool])).values()].reverse();
  return { candidates, ttlMs };
}

const MOST_CHARACTERS = 64;
const DIGEST_CHARACTERS = 8;
/** An underscore that would look like the start of an escape. */
const ACCIDENT = /_(?=dot|x[0-9a-f])/g;

/**
 * Converts the name of a server's tool to a name that every provider accepts: `browser.open` → `browser_dot_open`. The
 * conversion is reversible; a name that would be too long ends in a digest.
 */
export function localName(name: string, prefix?: string): string {
  const marked = name.replace(ACCIDENT, '_x5f_').replace(/[^A-Za-z0-9_-]/gu, markOf);
  const legal = /^[a-zA-Z_]/.test(marked) ? marked : marked.replace(/^[\s\S]/u, markOf);
  const whole = prefix === undefined ? legal : `${prefix}_${marked}`;
  if (TOOL_NAME.test(whole)) return whole;
  const digest = createHash('sha256').update(name).digest('hex').slice(0, DIGEST_CHARACTERS);
  return `${whole.slice(0, MOST_CHARACTERS - DIGEST_CHARACTERS - 1)}_${digest}`;
}

/** The escape for a character that tool names cannot contain. */
function markOf(character: string): string {
  return character === '.' ? '_dot_' : `_x${character.codePointAt(0)?.toString(16)}_`;
}

/** The same as in the loop: a server that crashes during a call may never report it. */
const TIMEOUT_MS = 120_000;

/**
 * Converts a server's tool to a tool of a registry; its schemas are the server's own objects. Returns `undefined`, and
 * logs, if they are malformed or exceed a limit.
 */
export function importTool(
  { name, definition: tool }: McpToolCandidate,
  client: LiveClient,
  options: McpToolsOptions,
): ToolDefinition | undefined {
  const schemas = readForeignSchemas(tool, options);
  if (schemas === undefined) return undefined;
  const { timeoutMs = TIMEOUT_MS, fillDefaults = false, background = [] } = options;
  const isBackground = background.length > 0 && createNameFilter({ allow: background })(tool.name);
  // Unset hints get the more dangerous value (MCP, tool annotations).
  const { readOnlyHint = false, idempotentHint = false, ...hints } = tool.annotations ?? {};
  // The registry validates arguments and results; the SDK only needs to know which parameters are headers.
  const { outputSchema, ...toolDefinition } = tool;
  const imported = withoutUndefined<ToolDefinition>({
    name,
    description: tool.description ?? '',
    parameters: tool.inputSchema as JsonSchema,
    output: outputSchema as JsonSchema | undefined,
    timeoutMs: timeoutMs === Number.POSITIVE_INFINITY ? undefined : timeoutMs,
    annotations: withoutUndefined<ToolAnnotations>({
      title: tool.title ?? hints.title,
      readOnly: readOnlyHint,
      destructive: hints.destructiveHint ?? !readOnlyHint,
      idempotent: idempotentHint,
      openWorld: hints.openWorldHint ?? true,
    }),
    background: isBackground ? true : undefined,
    fillsDefaults: fillDefaults ? undefined : false,
    ...schemas,
    reconcile: client.hasTasks ? reconcileByTask : undefined,
    execute: (args: JsonObject, context: ToolContext) =>
      callServer(client, {
        tool,
        toolDefinition,
        args,
        context,
        options,
        isRepeatable: readOnlyHint || idempotentHint,
      }),
  });
  return Object.freeze(imported);
}

interface ServerCall {
  readonly tool: McpTool;
  /** The tool as the SDK needs it. */
  readonly toolDefinition: McpTool;
  readonly args: JsonObject;
  readonly context: ToolContext;
  readonly options: McpToolsOptions;
  /** Whether the call may be sent again if its response was lost. */
  readonly isRepeatable: boolean;
}

/** Sends a call, and follows its task if the server answers with one. */
async function callServer(client: LiveClient, call: ServerCall): Promise<ToolResult> {
  const { context } = call;
  const { signal } = context;
  const askForSignIn = await signInQuestions(context);
  const use = (work: (connected: Client) => Promise<CallToolResult>, isRepeatable: boolean) =>
    client.use(
      (connected) => {
        adaptMessages(connected);
        const questions = questionsOf(connected);
        return questions === undefined ? work(connected) : questions.within(context, () => work(connected));
      },
      { isRepeatable, askForSignIn },
    );
  // A task that an earlier execution of the call has started: no second one may be started.
  let taskId = await recorded<string>(context, TASK);
  if (taskId === undefined) {
    const result = await use((connected) => sendCall(connected, call), call.isRepeatable);
    const started = result._meta?.[TASK_ID];
    if (typeof started !== 'string') return readMcpResult(result, REFUSALS.get(context));
    taskId = await context.once(TASK, () => started);
  }
  for (const task = taskId; ; )
    try {
      const result = await use((connected) => followTask(connected, task, context), true);
      return readMcpResult(result, REFUSALS.get(context));
    } catch (error) {
      if (signal.aborted && !isLeftToOthers(signal)) client.cancelTask(task);
      if (client.isClosed && !signal.aborted) throw new Error(LEFT, { cause: error });
      const isPassing = error instanceof UnreachableError || REPLACED.has(serverRefusalOf(error)?.status);
      if (!client.canReconnect || !isPassing) throw error;
      // The task goes on while its server is replaced.
      await wait(REPLACED_PAUSE_MS, undefined, { signal });
    }
}

/** The pause before a task is asked for again whose server is replaced. */
const REPLACED_PAUSE_MS = 1_000;

const LEFT = 'The connection was closed while the server worked on the call; its outcome is unknown.';

/** An interrupted call that has recorded its task can be made again: it follows the task instead of starting another. */
async function reconcileByTask(_effect: Effect, context: ToolContext): Promise<Reconciliation> {
  return { status: (await recorded(context, TASK)) === undefined ? 'unknown' : 'not-done' };
}

/** What proxies answer while a server is replaced. */
const REPLACED: ReadonlySet<unknown> = new Set([502, 503, 504]);

function sendCall(
  connected: Client,
  { tool, toolDefinition, args, context, options }: ServerCall,
): Promise<CallToolResult> {
  const questions = questionsOf(connected);
  const send = (carrier: TraceCarrier | undefined) => {
    const params = { name: tool.name, arguments: args, _meta: carrier && { ...carrier } };
    const sending = {
      toolDefinition,
      signal: context.signal,
      // The registry enforces its own limit with the signal.
      timeout: MAX_TIMER_MS,
      onprogress: (progress: Progress) => context.progress(progress),
      // The SDK would answer questions without saying whose call asks them.
      allowInputRequired: questions !== undefined,
    };
    const call = (answered: object) =>
      connected.callTool({ ...params, ...answered }, sending).catch((cause) => {
        // The SDK's own error contains its complete check.
        throw isRecord(cause) && [cause.code, cause.data].includes(INVALID_RESULT)
          ? new Error(UNREADABLE, { cause })
          : cause;
      });
    return questions === undefined ? call({}) : questions.complete(context, call);
  };
  const trace = context instanceof CallContext ? context.trace : undefined;
  const facts = factsFor(connected, 'tools/call');
  trace?.onMcp(facts);
  // A call is recorded once: by the caller's trace, or else here.
  if (trace !== undefined) return send(trace.carrier);
  return recordMessage(options.telemetry, { ...facts, side: 'client', tool: tool.name }, send);
}

/**
 * Reads the schemas of a server's tool and reports parts that are left out, without which they are then checked;
 * `undefined` if the tool is invalid.
 */
function readForeignSchemas(
  { name, inputSchema, outputSchema }: McpTool,
  { logger, fillDefaults = false }: McpToolsOptions,
): Pick<ToolDefinition, 'checkedAs'> | undefined {
  const where = `MCP tool ${JSON.stringify(name)}`;
  const input = readForeignSchema(inputSchema);
  const output = outputSchema === undefined ? undefined : readForeignSchema(outputSchema);
  for (const [what, read] of Object.entries({ inputSchema: input, outputSchema: output })) {
    if (read === undefined) continue;
    if (!read.ok) {
      const fix = 'a corrected tool on its server, or `deny` with its name';
      warnAuthor({ where, problem: `it is not offered: its ${what} ${read.problem}`, fix }, logger);
      return undefined;
    }
    for (const pattern of read.left) {
      const problem = `its ${what} has a pattern whose check may never end for some texts: ${JSON.stringify(pattern.slice(0, 200))}`;
      warnAuthor({ where, problem, fix: 'nothing: only the server checks it' }, logger);
    }
  }
  if (!input.ok || output?.ok === false) return undefined;
  if (fillDefaults)
    for (const fault of rejectedDefaults(input.checked))
      warnAuthor({ where, ...describeSchemaFault(fault, 'inputSchema') }, logger);
  if (input.left.length === 0 && (output?.left.length ?? 0) === 0) return {};
  return { checkedAs: withoutUndefined({ parameters: input.checked, output: output?.checked }) };
}

/**
 * Converts a server's response to a tool result. Text of resources is for the model; `structuredContent` is in
 * `details`. Blocks whose only audience is the user become `forUser`. `refusal` is the reason of a user who refused to
 * answer the server: it is added for the model.
 */
function readMcpResult(
  { content: own, structuredContent, isError = false }: CallToolResult,
  refusal: string | undefined,
): ToolResult {
  const content: ContentBlock[] =
    refusal === undefined ? own : [...own, { type: 'text', text: `The user refused: ${refusal}` }];
  const [shown, read] = [content.filter(isForUser), content.filter((block) => !isForUser(block))];
  const parts = read.map(partOf);
  const isPlain = parts.every(({ type }) => type === 'text');
  const text = textOf(parts);
  const words = text === '' && structuredContent !== undefined ? JSON.stringify(structuredContent) : text;
  return new ToolResult({
    forLLM: words === '' && isPlain && shown.length > 0 ? ALL_FOR_USER : words,
    isError,
    forUser: shown.length > 0 ? shown.map(partOf).map(userText).join('\n') : undefined,
    content: isPlain ? undefined : parts,
    details: structuredContent,
  });
}

/** Models interpret an empty result as a failure. */
const ALL_FOR_USER = 'Done. The result was sent to the user.';

function isForUser({ annotations }: ContentBlock): boolean {
  const { audience } = annotations ?? {};
  return audience !== undefined && audience.length > 0 && audience.every((reader) => reader === 'user');
}

function userText(part: ContentPart): string {
  if (part.type === 'text') return part.content;
  return part.type === 'image' ? `[${part.mimeType}]` : `[${part.mimeType}: ${part.filename}]`;
}

function partOf(block: ContentBlock): ContentPart {
  switch (block.type) {
    case 'text':
      return { type: 'text', content: block.text };
    case 'image':
      return { type: 'image', data: block.data, mimeType: block.mimeType };
    case 'audio':
      return { type: 'file', data: block.data, mimeType: block.mimeType, filename: 'audio' };
    case 'resource_link':
      return {
        type: 'text',
        content: [block.uri, block.title ?? block.name, block.description].filter(Boolean).join('\n'),
      };
    case 'resource': {
      const { uri, mimeType = 'application/octet-stream' } = block.resource;
      if ('text' in block.resource) return { type: 'text', content: `${uri}\n${block.resource.text}` };
      return { type: 'file', data: block.resource.blob, mimeType, filename: uri };
    }
  }
}

/** Telemetry facts about messages to the server of a connection. */
function factsFor(client: Client, method: string): McpFacts {
  const { transport } = client;
  return {
    method,
    protocolVersion: client.getNegotiatedProtocolVersion?.(),
    sessionId: transport?.sessionId,
    // The SDK distinguishes its transports only by their classes.
    transport: TRANSPORTS.find(([name]) => name.test(transport?.constructor.name ?? ''))?.[1],
  };
}

const TRANSPORTS = [
  [/stdio/i, 'pipe'],
  [/http|sse|websocket/i, 'tcp'],
] as const;

/** A result with a line of text for each block that the SDK does not accept: it would refuse the whole result. */
function withReadableContent<Result>(result: Result): Result {
  if (!isRecord(result) || !Array.isArray(result.content)) return result;
  const content = result.content.map((block) => {
    if (isSpecType.ContentBlock(block)) return block;
    const { type } = Object(block) as { readonly type?: unknown };
    const shown = typeof type === 'string' && TYPE.test(type) ? `of type '${type}'` : 'without a type';
    return { type: 'text', text: `[A content block ${shown} was omitted: it is not valid MCP.]` };
  });
  return { ...result, content };
}

const TYPE = /^[\w./-]{1,40}$/;

/** The SDK's code for a response that is no result of its request. */
const INVALID_RESULT = 'INVALID_RESULT';
const NO_RESULT = {
  code: ProtocolErrorCode.InternalError,
  message: 'The response of the server is not valid MCP: its result is not an object.',
  data: INVALID_RESULT,
};
const UNREADABLE =
  'The tool ran, but the response of its server is not valid MCP and was lost. Find out what the call did before you repeat it.';

/** Where the id of a task is in a result that the SDK accepts. */
const TASK_ID = 'toolwright/task';

const TASK = 'mcp task';

/** A task as its server reports it. */
interface ReportedTask {
  readonly status?: unknown;
  readonly statusMessage?: unknown;
  readonly pollIntervalMs?: unknown;
  readonly inputRequests?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly code?: unknown; readonly message?: unknown };
}

const TASK_AS_SENT = asSent<ReportedTask>();

/** Waits for the end of a task (SEP-2663). What the server asks meanwhile is a question of the call's user. */
async function followTask(client: Client, taskId: string, context: ToolContext): Promise<CallToolResult> {
  const { signal } = context;
  const given = new Map<string, ElicitResult>();
  // The server may have some of the answers already.
  const ask = await askInOrder<{ readonly key: string; readonly request: unknown }>(
    context,
    'mcp task question',
    async ({ key, request }) => {
      const questions = questionsOf(client);
      if (questions === undefined)
        throw new Error('The task asks its user a question, which only a client of connectMcp can forward.');
      given.set(key, await questions.answer(request, context));
    },
  );
  for (;;) {
    const task = await client.request({ method: 'tasks/get', params: { taskId } }, TASK_AS_SENT, { signal });
    if (task.status === 'completed') {
      const result = withReadableContent(task.result);
      if (isCallToolResult(result)) return result;
      throw new Error('The server reported a task whose result is not the result of a call.');
    }
    if (task.status === 'failed') {
      const { code, message } = task.error ?? {};
      throw new ProtocolError(
        typeof code === 'number' ? code : ProtocolErrorCode.InternalError,
        typeof message === 'string' ? message : 'The task failed.',
      );
    }
    if (task.status === 'cancelled') throw new Error('The server cancelled the task of the call.');
    if (task.status === 'input_required') {
      const asked = Object.entries(isRecord(task.inputRequests) ? task.inputRequests : {});
      for (const [key, request] of asked) if (!given.has(key)) await ask({ key, request });
      const inputResponses = Object.fromEntries(asked.map(([key]) => [key, given.get(key)]));
      const params = { taskId, inputResponses };
      await client.request({ method: 'tasks/update', params }, TASK_AS_SENT, { signal });
    } else if (task.status !== 'working')
      throw new Error(`The server reported a task in an unknown state: ${String(task.status).slice(0, 100)}`);
    const { pollIntervalMs } = task;
    const pause = Number.isFinite(pollIntervalMs) ? Number(pollIntervalMs) : DEFAULT_PAUSE_MS;
    await wait(Math.min(Math.max(pause, SHORTEST_PAUSE_MS), LONGEST_PAUSE_MS), undefined, { signal });
  }
}

const SHORTEST_PAUSE_MS = 50;
const DEFAULT_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

const QUESTIONS = new WeakMap<object, UserQuestions>();

/** The reasons of users who refused to answer, by call; a server receives only the refusal. */
const REFUSALS = new WeakMap<ToolContext, string>();

/** The questions of the server of a client of `connectMcp`. */
function questionsOf(client: object): UserQuestions | undefined {
  return QUESTIONS.get(client);
}

/** What a call sends again with the answers to its server's questions. */
type Answered = { readonly inputResponses?: Record<string, ElicitResult>; readonly requestState?: string };

/** The pause before a call whose server asks nothing, but wants it to be sent again. */
const RETRY_MS = 250;

/** Lets the users of calls answer what a server asks: each question is a pending question of its run. */
export class UserQuestions {
  readonly #calls = new Set<ToolContext>();

  constructor(client: Client) {
    QUESTIONS.set(client, this);
    client.setRequestHandler('elicitation/create', ({ params }) => {
      const [only, ...others] = client.getProtocolEra() === 'modern' ? [] : this.#calls;
      return only === undefined || others.length > 0 ? { action: 'cancel' } : answer(params, only);
    });
  }

  /** Runs the request of a call. Before 2026-07-28, a question does not name its call: only a single call is asked. */
  async within<Value>(context: ToolContext, request: () => Promise<Value>): Promise<Value> {
    this.#calls.add(context);
    try {
      return await request();
    } finally {
      this.#calls.delete(context);
    }
  }

  /** Sends a call until its result is complete. Since 2026-07-28, results contain the questions of their calls. */
  async complete(
    context: ToolContext,
    send: (answered: Answered) => Promise<CallToolResult>,
  ): Promise<CallToolResult> {
    for (let answered: Answered = {}; ; ) {
      const result: object = await send(answered);
      if (!isInputRequiredResult(result)) return result as CallToolResult;
      const { requestState, inputRequests = {} } = result;
      const asked = Object.entries(inputRequests);
      if (asked.length === 0) await wait(RETRY_MS, undefined, { signal: context.signal });
      const given = asked.map(async ([key, request]) => [key, await this.answer(request, context)] as const);
      answered = {
        ...(asked.length > 0 && { inputResponses: Object.fromEntries(await Promise.all(given)) }),
        ...(requestState !== undefined && { requestState }),
      };
    }
  }

  /** Answers a question that belongs to a call. */
  async answer(request: unknown, context: ToolContext): Promise<ElicitResult> {
    if (!isSpecType.ElicitRequest(request))
      throw new Error('The server requests input that is not an answer of the user.');
    return answer(request.params, context);
  }
}

/** If there is no answer yet, `ask` throws: the run is suspended, and the call is made again with the answer. */
async function answer(params: ElicitRequestParams, context: ToolContext): Promise<ElicitResult> {
  const { message } = params;
  const onRefusal = 'throw';
  try {
    if (params.mode === 'url') {
      const address = `${message}\n${params.url}`;
      const isDone = await context.ask({ message: address, schema: AGREED, onRefusal });
      return { action: isDone === true ? 'accept' : 'decline' };
    }
    const content = await context.ask({ message, schema: params.requestedSchema as JsonSchema, onRefusal });
    return { action: 'accept', content: content as NonNullable<ElicitResult['content']> };
  } catch (error) {
    if (!ToolwrightError.is(error) || error.name !== 'ToolRefused') throw error;
    REFUSALS.set(context, error.message);
    return { action: 'decline' };
  }
}

/** The schema of the answer to a question with a link. */
const AGREED: JsonSchema = { type: 'boolean', title: 'Done' };

const NOT_RECORDED = new Error('Nothing is recorded.');

/** What an earlier execution of a call has recorded with `context.once`; `undefined` if it has not. */
async function recorded<Value>(context: ToolContext, key: string): Promise<Value | undefined> {
  try {
    return await context.once<Value>(key, () => {
      throw NOT_RECORDED;
    });
  } catch (error) {
    if (error === NOT_RECORDED) return undefined;
    throw error;
  }
}

/**
 * Asks what a call asks one after another. A call that is executed again first asks again what it has asked before,
 * although it may not be needed any more. The returned function records and asks the next question.
 */
async function askInOrder<Question>(
  context: ToolContext,
  kind: string,
  ask: (question: Question) => Promise<void>,
): Promise<(question: Question) => Promise<void>> {
  let count = 1;
  const next = () => `${kind} ${count}`;
  const askNext = async (question: Question): Promise<void> => {
    await ask(question);
    count += 1;
  };
  for (let asked = await recorded<Question>(context, next()); asked !== undefined; ) {
    await askNext(asked);
    asked = await recorded<Question>(context, next());
  }
  return async (question) => askNext(await context.once(next(), () => question));
}

/** Limits a user who answers without signing in. */
const MOST_SIGN_INS = 5;

/** Makes sign-ins pending questions of the run. */
export async function signInQuestions(context: ToolContext): Promise<AskForSignIn> {
  let asked = 0;
  const ask = await askInOrder<string>(context, 'sign-in', async (page) => {
    asked += 1;
    const message = `Sign in on this page, then confirm here:\n${page}`;
    if (asked > MOST_SIGN_INS || (await context.ask({ message, schema: AGREED })) !== true)
      throw new Error('The user did not sign in.');
  });
  return (address) => ask(address.href);
}
