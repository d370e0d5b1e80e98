import { createHash } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type {
  CallToolResult,
  Client,
  ContentBlock,
  JSONRPCMessage,
  Tool as McpTool,
  Progress,
  Transport,
} from '@modelcontextprotocol/client';
import { isSpecType } from '@modelcontextprotocol/server';
import type { ToolAnnotations } from '../../../core/contract/declaration.js';
import type { JsonObject, JsonSchema } from '../../../core/contract/json-schema.js';
import {
  type McpFacts,
  TELEMETRY,
  type Telemetry,
  type TraceCarrier,
} from '../../../core/contract/telemetry.js';
import type { Effect, Reconciliation, ToolDefinition } from '../../../core/contract/tool.js';
import type { ToolContext } from '../../../core/contract/tool-context.js';
import { type ContentPart, ToolResult } from '../../../core/contract/tool-result.js';
import {
  invalidArguments,
  invalidOptions,
  refuseOptions,
  warnAuthor,
} from '../../../core/errors/author-fault.js';
import { MAX_TIMER_MS } from '../../../core/kernel/async.js';
import { canonicalJson, isRecord, withoutUndefined } from '../../../core/kernel/json.js';
import {
  BOOLEAN,
  either,
  FILLED_TEXT,
  FUNCTION,
  LOGGER,
  listOf,
  MILLISECONDS,
  optionTable,
  protecting,
  type RulesOf,
  withMethods,
} from '../../../core/kernel/options.js';
import { addConnection } from '../../../core/kernel/tool-connections.js';
import { CallContext } from '../../../run/call/context.js';
import { logFailure } from '../../../run/call/failure-log.js';
import { textOf } from '../../../run/call/result-form.js';
import { createNameFilter, NAME_FILTER_RULES, type ToolRegistry } from '../../../run/call/tool-registry.js';
import { isLeftToOthers } from '../../../run/loop/claimed-run.js';
import {
  describeSchemaFault,
  readForeignSchema,
  rejectedDefaults,
} from '../../../tools/checking/schema-faults.js';
import { TOOL_NAME } from '../../../tools/discovery/define-tool.js';
import { asSent, recordMessage } from '../record-message.js';
import type { McpConnectionStatus } from './connect-options.js';
import { followTask, readableTask, recordedTask, recordTask } from './followed-task.js';
import { CLIENT, LiveClient, UnreachableError, type UseOptions } from './live-client.js';
import {
  type McpClientSource,
  type McpFollowing,
  type McpToolCandidate,
  type McpToolChange,
  McpToolsOptions,
} from './options.js';
import { unreadableResult, withReadableContent } from './readable-content.js';
import { type McpSignIn, serverRefusalOf, signInNeededBy, signInOf } from './sign-in.js';
import { questionsOf, refusalOf, signInQuestions } from './user-questions.js';

/** A page as the server sent it; the SDK's own parser would reorder the keys of schemas. */
interface RawPage {
  readonly tools?: unknown;
  readonly nextCursor?: unknown;
  readonly ttlMs?: unknown;
}

interface ToolList {
  readonly tools: McpTool[];
  /** How long the list may be used without reading it again. */
  readonly ttlMs: number;
}

const AS_SENT = asSent<RawPage>();

const READING: UseOptions = { isRepeatable: true };

/** Limit for servers whose list never ends. */
const MOST_PAGES = 1_000;

/** All pages of a server's tool list, with schemas unchanged; invalid tools are skipped. */
async function readToolList(client: Client, telemetry: Telemetry | undefined): Promise<ToolList> {
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
      return client.request({ method: 'tools/list', params }, AS_SENT);
    });
    if (Array.isArray(found)) tools.push(...found.filter(isTool));
    if (typeof nextCursor !== 'string' || nextCursor === cursor)
      return { tools: await usable(client, tools), ttlMs: Number(ttlMs) };
    cursor = nextCursor;
  }
  throw new Error(`The server's list of tools has more than ${MOST_PAGES} pages.`);
}

/** Since 2026-07-28, clients must ignore tools with invalid header declarations; the SDK filters them. */
async function usable(client: Client, tools: McpTool[]): Promise<McpTool[]> {
  if (!isModern(client)) return tools;
  const known = await client.listTools(undefined, { cacheMode: 'refresh' });
  const names = new Set(known.tools.map(({ name }) => name));
  return tools.filter(({ name }) => names.has(name));
}

function isModern(client: Client): boolean {
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
    const known = isOfTasks ? readableTask(withoutMalformed(message)) : message;
    onmessage?.('result' in known ? { ...known, result: withReadableContent(known.result) } : known, extra);
  };
}

function withoutMalformed<Message extends JSONRPCMessage>(message: Message): Message {
  if (!('result' in message) || !Array.isArray(message.result.tools)) return message;
  const tools = message.result.tools.filter((tool) => isReadable(tool) && tool.name !== '');
  return { ...message, result: { ...message.result, tools } };
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
async function listCandidates(
  client: Client,
  options: McpToolsOptions,
): Promise<{ readonly candidates: McpToolCandidate[]; readonly ttlMs: number }> {
  const { tools, ttlMs } = await readToolList(client, options.telemetry);
  const isWanted = createNameFilter(options);
  const all = tools
    .filter(({ name }) => isWanted(name))
    .map((definition) => ({
      name: localName(definition.name, options.prefix),
      definition,
      fingerprint: fingerprintOf(definition),
    }));
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

/** A digest of everything that a model receives about a tool. The order of keys does not matter. */
function fingerprintOf(tool: McpTool): string {
  const { name, title, description, inputSchema, outputSchema, annotations } = tool;
  const shown = { name, title, description, inputSchema, outputSchema, annotations };
  return createHash('sha256').update(canonicalJson(shown)).digest('hex');
}

/** The same as in the loop: a server that crashes during a call may never report it. */
const TIMEOUT_MS = 120_000;

/**
 * Converts a server's tool to a tool of a registry; its schemas are the server's own objects. Returns `undefined`, and
 * logs, if they are malformed or exceed a limit.
 */
function importTool(
  { name, definition: tool }: McpToolCandidate,
  client: LiveClient,
  options: McpToolsOptions,
): ToolDefinition | undefined {
  const schemas = readForeignSchemas(tool, options);
  if (schemas === undefined) return undefined;
  const { timeoutMs = TIMEOUT_MS, fillDefaults = false, background = [] } = options;
  const isBackground = background.length > 0 && createNameFilter({ allow: background })(tool.name);
  const annotations = annotationsOf(tool);
  const isRepeatable = annotations.readOnly === true || annotations.idempotent === true;
  // The registry validates arguments and results; the SDK only needs to know which parameters are headers.
  const { outputSchema, ...toolDefinition } = tool;
  const imported = withoutUndefined<ToolDefinition>({
    name,
    description: tool.description ?? '',
    parameters: tool.inputSchema as JsonSchema,
    output: outputSchema as JsonSchema | undefined,
    timeoutMs: timeoutMs === Number.POSITIVE_INFINITY ? undefined : timeoutMs,
    annotations,
    background: isBackground ? true : undefined,
    fillsDefaults: fillDefaults ? undefined : false,
    checkedAs: schemas.areWhole ? undefined : schemas.checkedAs,
    reconcile: client.hasTasks ? reconcileByTask : undefined,
    async execute(args: JsonObject, context: ToolContext) {
      const call = { tool, toolDefinition, args, context, options };
      const askForSignIn = await signInQuestions(context);
      const use = (work: ClientWork, mayRepeat: boolean) =>
        client.use((connected) => withQuestions(connected, context, work), {
          isRepeatable: mayRepeat,
          askForSignIn,
        });
      let taskId = await recordedTask(context);
      if (taskId === undefined) {
        const result = await use((connected) => sendCall(connected, call), isRepeatable);
        taskId = await recordTask(result, context);
        if (taskId === undefined) return readMcpResult(result, refusalOf(context));
      }
      const task = taskId;
      for (;;)
        try {
          const result = await use((connected) => followTask(connected, task, context), true);
          return readMcpResult(result, refusalOf(context));
        } catch (error) {
          const { signal } = context;
          if (signal.aborted && !isLeftToOthers(signal)) client.cancelTask(task);
          if (client.isClosed && !signal.aborted) throw new Error(LEFT, { cause: error });
          if (!client.canReconnect || !isPassing(error)) throw error;
          // The task goes on while its server is replaced.
          await wait(PAUSE_MS, undefined, { signal });
        }
    },
  });
  return Object.freeze(imported);
}

type ClientWork = (connected: Client) => Promise<CallToolResult>;

/** Sends a request of a call. What its server asks meanwhile is a question of the call's user. */
function withQuestions(connected: Client, context: ToolContext, work: ClientWork): Promise<CallToolResult> {
  adaptMessages(connected);
  const questions = questionsOf(connected);
  return questions === undefined ? work(connected) : questions.within(context, () => work(connected));
}

const LEFT =
  'The connection was closed while the server worked on the call; whether it was carried out is not known.';

/** An interrupted call that has recorded its task can be made again: it follows the task instead of starting another. */
async function reconcileByTask(_effect: Effect, context: ToolContext): Promise<Reconciliation> {
  return { status: (await recordedTask(context)) === undefined ? 'unknown' : 'not-done' };
}

/** What proxies answer while a server is replaced. */
const REPLACED: ReadonlySet<unknown> = new Set([502, 503, 504]);

function isPassing(error: unknown): boolean {
  return error instanceof UnreachableError || REPLACED.has(serverRefusalOf(error)?.status);
}

interface SentCall {
  readonly tool: McpTool;
  readonly toolDefinition: McpTool;
  readonly args: JsonObject;
  readonly context: ToolContext;
  readonly options: McpToolsOptions;
}

function sendCall(
  connected: Client,
  { tool, toolDefinition, args, context, options }: SentCall,
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
      connected.callTool({ ...params, ...answered }, sending).catch((error) => {
        throw unreadableResult(error);
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

/** Unset hints get the more dangerous value (MCP, tool annotations). */
function annotationsOf({ title, annotations = {} }: McpTool): ToolAnnotations {
  const readOnly = annotations.readOnlyHint ?? false;
  return withoutUndefined<ToolAnnotations>({
    title: title ?? annotations.title,
    readOnly,
    destructive: annotations.destructiveHint ?? !readOnly,
    idempotent: annotations.idempotentHint ?? false,
    openWorld: annotations.openWorldHint ?? true,
  });
}

/** The parts of a server's schemas that are checked here. */
interface ForeignSchemas {
  readonly checkedAs: NonNullable<ToolDefinition['checkedAs']>;
  /** Whether the schemas are checked completely. */
  readonly areWhole: boolean;
}

/** Reads the schemas of a server's tool and reports parts that are left out; `undefined` if the tool is invalid. */
function readForeignSchemas(
  { name, inputSchema, outputSchema }: McpTool,
  { logger, fillDefaults = false }: McpToolsOptions,
): ForeignSchemas | undefined {
  const where = `MCP tool ${JSON.stringify(name)}`;
  const input = readForeignSchema(inputSchema);
  const output = outputSchema === undefined ? undefined : readForeignSchema(outputSchema);
  for (const [what, read] of Object.entries({ inputSchema: input, outputSchema: output })) {
    if (read === undefined) continue;
    if (!read.ok) {
      const fix = 'a tool that its server has fixed, or `deny` for it';
      warnAuthor({ where, problem: `it is left out: its ${what} ${read.problem}`, fix }, logger);
      return undefined;
    }
    for (const pattern of read.left) {
      const problem = `its ${what} has a pattern that a text can make run for ever: ${JSON.stringify(pattern.slice(0, 200))}`;
      warnAuthor({ where, problem, fix: 'nothing: only the server checks it' }, logger);
    }
  }
  if (!input.ok || output?.ok === false) return undefined;
  if (fillDefaults)
    for (const fault of rejectedDefaults(input.checked))
      warnAuthor({ where, ...describeSchemaFault(fault, 'inputSchema') }, logger);
  return {
    checkedAs: withoutUndefined({ parameters: input.checked, output: output?.checked }),
    areWhole: input.left.length === 0 && (output?.left.length ?? 0) === 0,
  };
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
const ALL_FOR_USER = 'Done. The result is for the user.';

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

/**
 * Reads the current tools of an MCP server as tools for a registry. Their calls pass the registry's pipeline and then
 * go to the server, with abort and progress. To follow later changes, use {@link followMcpTools}.
 *
 * Rejects if the server's list cannot be read.
 *
 * @throws InvalidOptionsError (521) for invalid options.
 *
 * @example
 * ```ts
 * tools.register(...(await mcpTools(client, { prefix: 'files', deny: ['write_*'] })));
 * ```
 */
export async function mcpTools(
  source: McpClientSource,
  options: McpToolsOptions = {},
): Promise<ToolDefinition[]> {
  checkMcpTools('mcpTools', { source, options });
  const client = new LiveClient(source, options.prefix);
  const { candidates } = await client.use((connected) => listCandidates(connected, options), READING);
  const lost = client.signIn?.lost;
  if (lost !== undefined) failureListener(options)(lost);
  const approved = await Promise.all(candidates.map((candidate) => isApproved(candidate, options)));
  return candidates.flatMap((candidate, position) => {
    const tool = approved[position] ? importTool(candidate, client, options) : undefined;
    if (tool !== undefined) return [tool];
    const reason = approved[position] ? 'malformed' : 'not approved';
    options.onChange?.({ kind: 'withheld', name: candidate.name, reason, candidate });
    return [];
  });
}

/**
 * Registers the tools of an MCP server and follows its changes: tools that it adds, changes or removes are updated in
 * the registry, also after a reconnection. The registry's own tools are never replaced.
 *
 * Rejects if the server's list cannot be read; nothing is registered then. If the server needs a sign-in and
 * `connectMcp` has no `onSignIn`, the tool `sign_in` asks the user of a run instead.
 *
 * @throws InvalidOptionsError (521) for invalid options.
 *
 * @example
 * ```ts
 * const following = await followMcpTools(tools, () => connectToShop(), {
 *   prefix: 'shop',
 *   approve: ({ name, fingerprint }) => approvedTools.get(name) === fingerprint,
 *   onChange: ({ kind, name }) => console.warn(`${name}: ${kind}`),
 * });
 * ```
 */
export async function followMcpTools(
  registry: ToolRegistry,
  source: McpClientSource,
  options: McpToolsOptions = {},
): Promise<McpFollowing> {
  checkMcpTools('followMcpTools', { source, options, registry });
  const follower = new McpFollower(registry, source, options);
  try {
    await follower.refresh();
  } catch (error) {
    const needed = signInNeededBy(error);
    if (needed !== undefined && follower.offerSignIn(needed.signIn)) return follower;
    // The caller gets no object to close.
    await follower.close();
    throw error;
  }
  return follower;
}

const SIGN_IN = 'sign_in';

/** A tool of the server, with its state here. */
interface FollowedTool {
  readonly candidate: McpToolCandidate;
  /** The registered tool; `undefined` if it is withheld. */
  readonly tool: ToolDefinition | undefined;
  /** The last definition that was approved. */
  readonly approved: McpToolCandidate | undefined;
  /** Withheld because of its name, which may become free. */
  readonly isWaiting?: boolean;
}

/**
 * Synchronizes the registry with a server's list. Lists are read one after another, but reading does not wait for
 * approvals: each tool is registered when it is approved.
 */
class McpFollower implements McpFollowing {
  readonly #registry: ToolRegistry;
  readonly #options: McpToolsOptions;
  readonly #client: LiveClient;
  #isOver = false;
  /** Stops watching the current connection. */
  #watching = new AbortController();
  readonly #followed = new Map<string, FollowedTool>();
  readonly #approvals: OpenApprovals;
  readonly #removeConnection: () => void;
  #reading: Promise<void> = Promise.resolve();
  /** Until when the last list may be used after a reconnection; absent before the first list. */
  #freshUntil: number | undefined;
  /** Lets the user of a run sign in; offered until the server's list could be read. */
  #signIn: ToolDefinition;
  #isSignedOut = false;
  /** Whether runs, also of other processes, may have been offered the tool. */
  #asksInRuns = false;
  #unlisten = (): void => {};

  constructor(registry: ToolRegistry, source: McpClientSource, options: McpToolsOptions) {
    this.#registry = registry;
    const { telemetry, logger } = registry;
    this.#options = { ...withoutUndefined({ telemetry, logger }), ...options };
    this.#approvals = new OpenApprovals(options, (candidate, isApproved) =>
      this.#settle(candidate, isApproved),
    );
    this.#client = new LiveClient(source, options.prefix, (client) => this.#watch(client));
    this.#signIn = this.#signInTool();
    this.#removeConnection = addConnection(registry, () => {
      const { prefix: name = this.#client.name } = options;
      return { name, ...this.status };
    });
  }

  get status(): McpConnectionStatus {
    const { isConnected, problem } = this.#client;
    const state = this.#isSignedOut ? 'sign_in' : isConnected ? 'connected' : 'disconnected';
    const tools = this.#ownNames([...this.#followed.keys()]);
    return { state, ...(problem !== undefined && !isConnected && { problem }), tools };
  }

  async refresh(): Promise<void> {
    await this.#refresh(READING);
  }

  /** Registers the tool that lets the user of a run sign in and then reads the list; `false` if its name is taken. */
  offerSignIn(signIn: McpSignIn): boolean {
    if (this.#registry.offered(this.#signIn.name) !== undefined) return false;
    // An earlier sign-in has replaced the tool by those of the server.
    if (this.#signIn.replacedBy !== undefined) this.#signIn = this.#signInTool();
    this.#registry.register(this.#signIn);
    this.#isSignedOut = true;
    this.#unlisten = signIn.onFinish(() => this.refresh().catch(failureListener(this.#options)));
    return true;
  }

  #signInTool(): ToolDefinition {
    const { prefix } = this.#options;
    return {
      name: prefix === undefined ? SIGN_IN : `${prefix}_${SIGN_IN}`,
      description: `Asks the user to sign in at the MCP server${prefix === undefined ? '' : ` '${prefix}'`}, whose tools can be called afterwards.`,
      parameters: { type: 'object', properties: {} },
      annotations: { readOnly: true },
      execute: async (_args: JsonObject, context: ToolContext) => {
        const askForSignIn = await signInQuestions(context);
        await this.#client.signIn?.restore(askForSignIn);
        await this.#refresh({ ...READING, askForSignIn });
        return `No sign-in is needed. These tools can be called now: ${this.status.tools.join(', ')}`;
      },
    };
  }

  /** A run that waits in a call of the tool goes on with the tools of the server, in any process. */
  #retireSignIn(): void {
    this.#isSignedOut = false;
    this.#unlisten();
    const registered = this.#registry.get(this.#signIn.name);
    if (!this.#asksInRuns || this.#signIn.replacedBy !== undefined) return;
    if (registered !== undefined && registered !== this.#signIn) return;
    this.#signIn = { ...this.#signIn, replacedBy: () => this.status.tools };
    this.#registry.register(this.#signIn);
  }

  async #refresh(options: UseOptions): Promise<void> {
    const reading = this.#reading.then(() => this.#read(options));
    this.#reading = reading.then(
      () => {},
      () => {},
    );
    await Promise.all(await reading);
    if (this.#isOver) return;
    const signIn = this.#client.signIn;
    if (signIn?.lost !== undefined) this.offerSignIn(signIn);
    else this.#retireSignIn();
  }

  async close(): Promise<void> {
    this.#isOver = true;
    this.#unlisten();
    const { name } = this.#signIn;
    if (this.#registry.get(name) === this.#signIn) this.#registry.unregister(name);
    this.#removeConnection();
    this.#watching.abort();
    this.#approvals.dropAll();
    await this.#client.close();
    await this.#reading;
  }

  #watch(client: Client): void {
    this.#watching.abort();
    if (this.#isOver) return;
    this.#watching = new AbortController();
    this.#asksInRuns = signInOf(client)?.asksInRuns === true;
    const report = failureListener(this.#options);
    const onError = (error: unknown): void => {
      if (!this.#isOver) report(error);
    };
    const onChange = (): void => void this.refresh().catch(onError);
    watchToolList(client, { signal: this.#watching.signal, onChange, onError });
    // There were no change notifications without a connection.
    if (this.#freshUntil !== undefined && !(performance.now() < this.#freshUntil)) onChange();
  }

  /** Reads the list; returns the pending decisions about its tools. */
  async #read(options: UseOptions): Promise<readonly (Promise<void> | undefined)[]> {
    if (this.#isOver) return [];
    const read = (client: Client) => listCandidates(client, this.#options);
    const { candidates, ttlMs } = await this.#client.use(read, options);
    if (this.#isOver) return [];
    this.#freshUntil = performance.now() + ttlMs;
    const removing = this.#removeAllBut(new Set(candidates.map(({ name }) => name)));
    return [removing, ...candidates.map((candidate) => this.#decide(candidate))];
  }

  #decide(found: McpToolCandidate): Promise<void> | undefined {
    const { name, fingerprint } = found;
    const before = this.#followed.get(name);
    if (before === undefined) return this.#approvals.ask(found);
    const { candidate, approved, isWaiting = false } = before;
    const isFree = isWaiting && this.#registry.offered(name) === undefined;
    const isKnown = candidate.fingerprint === fingerprint && !isFree;
    const isApproved = approved?.fingerprint === fingerprint;
    if (isKnown || isApproved) {
      this.#approvals.drop(name);
      // The server has returned to the approved definition.
      if (!isKnown) this.#settle(found, true);
      return undefined;
    }
    const { definition, fingerprint: previous } = approved ?? candidate;
    return this.#approvals.ask({ ...found, previous: { definition, fingerprint: previous } });
  }

  #settle(candidate: McpToolCandidate, isApproved: boolean): void {
    const change = this.#take(candidate, isApproved);
    this.#options.onChange?.(change);
  }

  #take(candidate: McpToolCandidate, isApproved: boolean): McpToolChange {
    const { name } = candidate;
    const before = this.#followed.get(name);
    const approved = isApproved ? candidate : before?.approved;
    const objection = this.#objectionTo(name, isApproved);
    const tool = objection === undefined ? importTool(candidate, this.#client, this.#options) : undefined;
    if (tool === undefined) {
      const reason = objection ?? 'malformed';
      this.#registry.unregister(...this.#ownNames([name]));
      this.#followed.set(name, { candidate, tool, approved, isWaiting: reason === 'name taken' });
      return { kind: 'withheld', name, reason, candidate };
    }
    this.#registry.register(tool);
    this.#followed.set(name, { candidate, tool, approved });
    return { kind: before?.tool === undefined ? 'added' : 'changed', name, candidate };
  }

  /** A server must not replace another tool, which the model and its user trust. */
  #objectionTo(name: string, isApproved: boolean): McpToolChange['reason'] {
    const registered = this.#registry.offered(name);
    if (registered !== undefined && registered !== this.#followed.get(name)?.tool) return 'name taken';
    return isApproved ? undefined : 'not approved';
  }

  async #removeAllBut(names: ReadonlySet<string>): Promise<void> {
    this.#approvals.dropAll((name) => !names.has(name));
    const gone = [...this.#followed.keys()].filter((name) => !names.has(name));
    this.#registry.unregister(...this.#ownNames(gone));
    for (const name of gone) this.#followed.delete(name);
    for (const name of gone) this.#options.onChange?.({ kind: 'removed', name });
  }

  /** Names whose registered tool still comes from here. */
  #ownNames(names: readonly string[]): string[] {
    return names.filter((name) => {
      const tool = this.#followed.get(name)?.tool;
      return tool !== undefined && this.#registry.offered(name) === tool;
    });
  }
}

/** Called with the decision about a candidate. */
type Decide = (candidate: McpToolCandidate, isApproved: boolean) => void;

interface OpenApproval extends PromiseWithResolvers<void> {
  readonly fingerprint: string;
}

/** Pending approvals, at most one for each name. An approval that never arrives blocks nothing else. */
class OpenApprovals {
  readonly #options: McpToolsOptions;
  readonly #decide: Decide;
  readonly #open = new Map<string, OpenApproval>();

  constructor(options: McpToolsOptions, decide: Decide) {
    this.#options = options;
    this.#decide = decide;
  }

  /** Resolves once the candidate is decided about, or the request is dropped. */
  ask(candidate: McpToolCandidate): Promise<void> {
    const { name, fingerprint } = candidate;
    const open = this.#open.get(name);
    if (open?.fingerprint === fingerprint) return open.promise;
    this.drop(name);
    const asked = { fingerprint, ...Promise.withResolvers<void>() };
    this.#open.set(name, asked);
    isApproved(candidate, this.#options)
      .then((isApprovedNow) => {
        if (this.#open.get(name) !== asked) return;
        this.#open.delete(name);
        this.#decide(candidate, isApprovedNow);
      })
      .then(asked.resolve, asked.reject);
    return asked.promise;
  }

  /** Drops a request; its answer will be ignored. */
  drop(name: string): void {
    this.#open.get(name)?.resolve();
    this.#open.delete(name);
  }

  dropAll(isMeant: (name: string) => boolean = () => true): void {
    for (const name of [...this.#open.keys()].filter(isMeant)) this.drop(name);
  }
}

interface ToolListWatcher {
  readonly signal: AbortSignal;
  readonly onChange: () => void;
  readonly onError: (error: unknown) => void;
}

const METHOD = 'notifications/tools/list_changed';
/** The pause before a broken subscription is opened again. */
const PAUSE_MS = 1_000;

/**
 * Reports changes of a server's list. 2025-11-25 servers notify their clients; on 2026-07-28 servers, a client must
 * subscribe. Replaces the client's handler for this notification.
 */
function watchToolList(client: Client, watcher: ToolListWatcher): void {
  client.setNotificationHandler(METHOD, () => {
    if (!watcher.signal.aborted) watcher.onChange();
  });
  watcher.signal.addEventListener('abort', () => client.removeNotificationHandler(METHOD), { once: true });
  const isOffered = client.getServerCapabilities()?.tools?.listChanged === true;
  if (isOffered && isModern(client)) void subscribe(client, watcher);
}

async function subscribe(client: Client, { signal, onChange, onError }: ToolListWatcher): Promise<void> {
  try {
    while (!signal.aborted) {
      const subscription = await client.listen({ toolsListChanged: true }, { signal });
      // If the server closed it on purpose, do not subscribe again.
      if ((await subscription.closed) !== 'remote' || client.transport === undefined) return;
      await wait(PAUSE_MS, undefined, { signal, ref: false });
      onChange();
    }
  } catch (error) {
    if (!signal.aborted) onError(error);
  }
}

function failureListener({ onError, logger }: McpToolsOptions): (error: unknown) => void {
  const what = 'The tools of an MCP server could not be read';
  return onError ? (error) => onError(error) : (error) => logFailure(logger, { what, error });
}

/** Whether a tool may be registered. Fails closed: an error of `approve` refuses the tool. */
async function isApproved(candidate: McpToolCandidate, options: McpToolsOptions): Promise<boolean> {
  if (options.approve === undefined) return true;
  try {
    return (await options.approve(candidate)) === true;
  } catch (error) {
    failureListener(options)(error);
    return false;
  }
}

/** Throws all faults of the arguments together. */
function checkMcpTools(
  of: string,
  { options, ...given }: { readonly options: unknown; readonly [name: string]: unknown },
): void {
  const rules = { ...('registry' in given && { registry: REGISTRY }), source: SOURCE };
  refuseOptions([
    ...invalidArguments({ of, given, rules }),
    ...invalidOptions(options, optionTable<McpToolsOptions>(of, MCP_TOOLS_RULES)),
  ]);
}

const SOURCE = { ...either(FUNCTION, CLIENT), fix: CLIENT.fix };
const REGISTRY = withMethods(['register', 'unregister', 'offered'], 'a ToolRegistry');

const MCP_TOOLS_RULES: RulesOf<McpToolsOptions> = {
  ...NAME_FILTER_RULES,
  prefix: {
    accepts: (value) => typeof value === 'string' && TOOL_NAME.test(value),
    fix: 'letters, digits, _ and -, not beginning with a digit',
  },
  timeoutMs: MILLISECONDS,
  background: listOf(FILLED_TEXT, "['import_*']"),
  approve: protecting({
    ...FUNCTION,
    fix: '(candidate) => known.get(candidate.name) === candidate.fingerprint',
  }),
  fillDefaults: BOOLEAN,
  logger: LOGGER,
  telemetry: TELEMETRY,
  onChange: FUNCTION,
  onError: FUNCTION,
};
