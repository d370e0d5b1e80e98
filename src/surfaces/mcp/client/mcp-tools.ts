import { setTimeout as wait } from 'node:timers/promises';
import type { Client } from '@modelcontextprotocol/client';
import type { JsonObject } from '../../../core/contract/json-schema.js';
import { TELEMETRY } from '../../../core/contract/telemetry.js';
import type { ToolDefinition } from '../../../core/contract/tool.js';
import type { ToolContext } from '../../../core/contract/tool-context.js';
import { invalidArguments, invalidOptions, refuseOptions } from '../../../core/errors/author-fault.js';
import { withoutUndefined } from '../../../core/kernel/json.js';
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
import { logFailure } from '../../../run/call/failure-log.js';
import { NAME_FILTER_RULES, type ToolRegistry } from '../../../run/call/tool-registry.js';
import { TOOL_NAME } from '../../../tools/discovery/define-tool.js';
import type { McpConnectionStatus } from './connect-options.js';
import { importTool, isModern, listCandidates, signInQuestions } from './imported-tool.js';
import { CLIENT, LiveClient, type UseOptions } from './live-client.js';
import {
  type McpClientSource,
  type McpFollowing,
  type McpToolCandidate,
  type McpToolChange,
  McpToolsOptions,
} from './options.js';
import { type McpSignIn, signInNeededBy, signInOf } from './sign-in.js';

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
const READING: UseOptions = { isRepeatable: true };

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
  /** Pending approvals, at most one for each name. An approval that never arrives blocks nothing else. */
  readonly #asked = new Map<string, PromiseWithResolvers<void> & { readonly fingerprint: string }>();
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
    this.#unlisten = signIn.onFinish(() => this.refresh().catch((error) => this.#report(error)));
    return true;
  }

  #signInTool(): ToolDefinition {
    const { prefix } = this.#options;
    return {
      name: prefix === undefined ? SIGN_IN : `${prefix}_${SIGN_IN}`,
      description: `Asks the user to sign in at the MCP server${prefix === undefined ? '' : ` '${prefix}'`}, so that its tools can be called.`,
      parameters: { type: 'object', properties: {} },
      annotations: { readOnly: true },
      execute: async (_args: JsonObject, context: ToolContext) => {
        const askForSignIn = await signInQuestions(context);
        await this.#client.signIn?.restore(askForSignIn);
        await this.#refresh({ ...READING, askForSignIn });
        return `The user is signed in. These tools can be called now: ${this.status.tools.join(', ')}`;
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
    for (const name of this.#asked.keys()) this.#dropRequest(name);
    await this.#client.close();
    await this.#reading;
  }

  /** Replaces the client's handler for changes of its server's list. */
  #watch(client: Client): void {
    this.#watching.abort();
    if (this.#isOver) return;
    this.#watching = new AbortController();
    this.#asksInRuns = signInOf(client)?.asksInRuns === true;
    const { signal } = this.#watching;
    // 2025-11-25 servers notify their clients; on 2026-07-28 servers, a client must subscribe.
    client.setNotificationHandler(METHOD, () => {
      if (!signal.aborted) this.#onChange();
    });
    signal.addEventListener('abort', () => client.removeNotificationHandler(METHOD), { once: true });
    const isOffered = client.getServerCapabilities()?.tools?.listChanged === true;
    if (isOffered && isModern(client)) void this.#subscribe(client, signal);
    // There were no change notifications without a connection.
    if (this.#freshUntil !== undefined && !(performance.now() < this.#freshUntil)) this.#onChange();
  }

  async #subscribe(client: Client, signal: AbortSignal): Promise<void> {
    try {
      while (!signal.aborted) {
        const subscription = await client.listen({ toolsListChanged: true }, { signal });
        // If the server closed it on purpose, do not subscribe again.
        if ((await subscription.closed) !== 'remote' || client.transport === undefined) return;
        await wait(PAUSE_MS, undefined, { signal, ref: false });
        this.#onChange();
      }
    } catch (error) {
      if (!signal.aborted) this.#report(error);
    }
  }

  #onChange(): void {
    this.refresh().catch((error) => this.#report(error));
  }

  #report(error: unknown): void {
    if (!this.#isOver) failureListener(this.#options)(error);
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
    if (before === undefined) return this.#ask(found);
    const { candidate, approved, isWaiting = false } = before;
    const isFree = isWaiting && this.#registry.offered(name) === undefined;
    const isKnown = candidate.fingerprint === fingerprint && !isFree;
    const isApproved = approved?.fingerprint === fingerprint;
    if (isKnown || isApproved) {
      this.#dropRequest(name);
      // The server has returned to the approved definition.
      if (!isKnown) this.#settle(found, true);
      return undefined;
    }
    const { definition, fingerprint: previous } = approved ?? candidate;
    return this.#ask({ ...found, previous: { definition, fingerprint: previous } });
  }

  /** Asks for an approval; resolves once the candidate is decided about, or the request is dropped. */
  #ask(candidate: McpToolCandidate): Promise<void> {
    const { name, fingerprint } = candidate;
    const open = this.#asked.get(name);
    if (open?.fingerprint === fingerprint) return open.promise;
    this.#dropRequest(name);
    const asked = { fingerprint, ...Promise.withResolvers<void>() };
    this.#asked.set(name, asked);
    const decide = async (): Promise<void> => {
      const isApprovedNow = await isApproved(candidate, this.#options);
      if (this.#asked.get(name) !== asked) return;
      this.#asked.delete(name);
      this.#settle(candidate, isApprovedNow);
    };
    decide().then(asked.resolve, asked.reject);
    return asked.promise;
  }

  /** Drops the request for an approval, whose answer is then ignored. */
  #dropRequest(name: string): void {
    this.#asked.get(name)?.resolve();
    this.#asked.delete(name);
  }

  #settle(candidate: McpToolCandidate, isApproved: boolean): void {
    const { name } = candidate;
    const before = this.#followed.get(name);
    const approved = isApproved ? candidate : before?.approved;
    const registered = this.#registry.offered(name);
    // A server must not replace another tool, which the model and its user trust.
    const isTaken = registered !== undefined && registered !== before?.tool;
    const tool = isTaken || !isApproved ? undefined : importTool(candidate, this.#client, this.#options);
    if (tool !== undefined) {
      this.#registry.register(tool);
      this.#followed.set(name, { candidate, tool, approved });
      this.#options.onChange?.({ kind: before?.tool === undefined ? 'added' : 'changed', name, candidate });
      return;
    }
    let reason: McpToolChange['reason'] = isApproved ? 'malformed' : 'not approved';
    if (isTaken) reason = 'name taken';
    this.#registry.unregister(...this.#ownNames([name]));
    this.#followed.set(name, { candidate, tool, approved, isWaiting: isTaken });
    this.#options.onChange?.({ kind: 'withheld', name, reason, candidate });
  }

  async #removeAllBut(names: ReadonlySet<string>): Promise<void> {
    for (const name of this.#asked.keys()) if (!names.has(name)) this.#dropRequest(name);
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

const METHOD = 'notifications/tools/list_changed';
/** The pause before a broken subscription is opened again. */
const PAUSE_MS = 1_000;

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
