import { setTimeout as wait } from 'node:timers/promises';
import type { Client } from '@modelcontextprotocol/client';
import { NAME_FILTER_RULES } from '../../call/registration.js';
import type { ToolRegistry } from '../../call/tool-registry.js';
import { TELEMETRY } from '../../contract/telemetry.js';
import type { ToolDefinition } from '../../contract/tool.js';
import { TOOL_NAME } from '../../discovery/define-tool.js';
import { invalidArguments, invalidOptions, refuseOptions } from '../../errors/author-fault.js';
import {
  BOOLEAN,
  either,
  FUNCTION,
  LOGGER,
  MILLISECONDS,
  optionTable,
  protecting,
  type RulesOf,
  withMethods,
} from '../../kernel/options.js';
import { importTool, listCandidates } from './imported-tool.js';
import { CLIENT, LiveClient } from './live-client.js';
import {
  type McpClientSource,
  type McpFollowing,
  type McpToolCandidate,
  type McpToolChange,
  McpToolsOptions,
} from './options.js';

/**
 * The tools of an MCP server as they are now, as tools of a registry: their calls take its pipeline and then
 * go to the server, with abort and progress. {@link followMcpTools} keeps a registry in step instead.
 *
 * Rejects with what the server's list could not be read for.
 *
 * @throws InvalidOptionsError (521) where an option cannot be meant.
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
  const client = new LiveClient(source, { prefix: options.prefix });
  const candidates = await client.use((connected) => listCandidates(connected, options), true);
  const approved = await Promise.all(candidates.map((candidate) => isApproved(candidate, options)));
  return candidates.flatMap((candidate, position) => {
    const tool = approved[position] ? importTool(candidate, { client, options }) : undefined;
    if (tool !== undefined) return [tool];
    const reason = approved[position] ? 'malformed' : 'not approved';
    options.onChange?.({ kind: 'withheld', name: candidate.name, reason, candidate });
    return [];
  });
}

/**
 * Registers the tools of an MCP server and keeps them in step with it: what it adds, changes and takes away is
 * added, changed and taken away, also after a reconnection. A tool of the registry's own is never replaced.
 *
 * Rejects with what the server's list could not be read for; then nothing is registered.
 *
 * @throws InvalidOptionsError (521) where an option cannot be meant.
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
    // Nobody could end it later.
    await follower.close();
    throw error;
  }
  return follower;
}

/** A tool of the server, and what became of it. */
interface FollowedTool {
  readonly candidate: McpToolCandidate;
  /** As it is registered; nothing for one that is withheld. */
  readonly tool: ToolDefinition | undefined;
  /** Its name may become free. */
  readonly isWaiting?: boolean;
}

/**
 * Keeps what a server offers and what is registered of it in step, one reading after the other. A reading does
 * not wait for approvals: each tool comes when its own is there.
 */
class McpFollower implements McpFollowing {
  readonly #registry: ToolRegistry;
  readonly #options: McpToolsOptions;
  readonly #client: LiveClient;
  #isOver = false;
  /** Ends the watching of the one connection there is. */
  #watching = new AbortController();
  readonly #followed = new Map<string, FollowedTool>();
  readonly #approvals: OpenApprovals;
  #reading: Promise<void> = Promise.resolve();
  #isKnown = false;

  constructor(registry: ToolRegistry, source: McpClientSource, options: McpToolsOptions) {
    this.#registry = registry;
    const { telemetry } = registry;
    this.#options = telemetry === undefined ? options : { telemetry, ...options };
    this.#approvals = new OpenApprovals(options, (candidate, isApproved) => {
      const change = this.#take(candidate, isApproved);
      options.onChange?.(change);
    });
    this.#client = new LiveClient(source, {
      onConnect: (client) => this.#watch(client),
      prefix: options.prefix,
    });
  }

  async refresh(): Promise<void> {
    const reading = this.#reading.then(() => this.#read());
    this.#reading = reading.then(
      () => {},
      () => {},
    );
    await Promise.all(await reading);
  }

  async close(): Promise<void> {
    this.#isOver = true;
    this.#watching.abort();
    this.#approvals.dropAll();
    await this.#client.close();
    await this.#reading;
  }

  #watch(client: Client): void {
    this.#watching.abort();
    if (this.#isOver) return;
    this.#watching = new AbortController();
    const onError = (error: unknown): void => this.#options.onError?.(error);
    const onChange = (): void => void this.refresh().catch(onError);
    watchToolList(client, { signal: this.#watching.signal, onChange, onError });
    // Nobody told of what changed while there was no connection.
    if (this.#isKnown) onChange();
  }

  /** Reads the list; what is returned are the decisions about its tools. */
  async #read(): Promise<readonly (Promise<void> | undefined)[]> {
    if (this.#isOver) return [];
    const candidates = await this.#client.use((client) => listCandidates(client, this.#options), true);
    if (this.#isOver) return [];
    this.#isKnown = true;
    const removing = this.#removeAllBut(new Set(candidates.map(({ name }) => name)));
    return [removing, ...candidates.map((candidate) => this.#decide(candidate))];
  }

  #decide(found: McpToolCandidate): Promise<void> | undefined {
    const { name, fingerprint } = found;
    const before = this.#followed.get(name);
    if (before === undefined) return this.#approvals.ask(found);
    const isFree = before.isWaiting === true && this.#registry.offered(name) === undefined;
    if (before.candidate.fingerprint === fingerprint && !isFree) {
      this.#approvals.drop(name);
      return undefined;
    }
    const { definition, fingerprint: known } = before.candidate;
    return this.#approvals.ask({ ...found, previous: { definition, fingerprint: known } });
  }

  #take(candidate: McpToolCandidate, isApproved: boolean): McpToolChange {
    const { name } = candidate;
    const before = this.#followed.get(name)?.tool;
    const objection = this.#objectionTo(name, isApproved);
    const from = { client: this.#client, options: this.#options };
    const tool = objection === undefined ? importTool(candidate, from) : undefined;
    if (tool === undefined) {
      const reason = objection ?? 'malformed';
      this.#registry.unregister(...this.#ownNames([name]));
      this.#followed.set(name, { candidate, tool: undefined, isWaiting: reason === 'name taken' });
      return { kind: 'withheld', name, reason, candidate };
    }
    this.#registry.register(tool);
    this.#followed.set(name, { candidate, tool });
    return { kind: before === undefined ? 'added' : 'changed', name, candidate };
  }

  /** A server must not put its tool in the place of another one, which the model and its user trust. */
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

  /** The names under which the registry still has what was registered here. */
  #ownNames(names: readonly string[]): string[] {
    return names.filter((name) => {
      const tool = this.#followed.get(name)?.tool;
      return tool !== undefined && this.#registry.offered(name) === tool;
    });
  }
}

/** What is done when there is an answer. */
type Decide = (candidate: McpToolCandidate, isApproved: boolean) => void;

interface OpenApproval extends PromiseWithResolvers<void> {
  readonly fingerprint: string;
}

/**
 * Approvals that were asked for and are not answered yet: at most one for each name. Nobody has to wait for
 * an answer that may never come.
 */
class OpenApprovals {
  readonly #options: McpToolsOptions;
  readonly #decide: Decide;
  readonly #open = new Map<string, OpenApproval>();

  constructor(options: McpToolsOptions, decide: Decide) {
    this.#options = options;
    this.#decide = decide;
  }

  /** Resolves when it is decided about the candidate, or the question was dropped. */
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

  /** An answer to this question would say nothing any more. */
  drop(name: string): void {
    this.#open.get(name)?.resolve();
    this.#open.delete(name);
  }

  dropAll(isMeant: (name: string) => boolean = () => true): void {
    for (const name of [...this.#open.keys()].filter(isMeant)) this.drop(name);
  }
}

/** Who wants to know, and for how long. */
interface ToolListWatcher {
  readonly signal: AbortSignal;
  readonly onChange: () => void;
  readonly onError: (error: unknown) => void;
}

const METHOD = 'notifications/tools/list_changed';
/** Before a broken subscription is opened again. */
const PAUSE_MS = 1_000;

/**
 * Hears of changes of a server's list. A 2025-11-25 server tells its clients by itself; to one of 2026-07-28 a
 * client has to subscribe. Takes the client's handler for that notification.
 */
function watchToolList(client: Client, watcher: ToolListWatcher): void {
  client.setNotificationHandler(METHOD, () => {
    if (!watcher.signal.aborted) watcher.onChange();
  });
  watcher.signal.addEventListener('abort', () => client.removeNotificationHandler(METHOD), { once: true });
  const isOffered = client.getServerCapabilities()?.tools?.listChanged === true;
  if (isOffered && client.getProtocolEra() === 'modern') void subscribe(client, watcher);
}

async function subscribe(client: Client, { signal, onChange, onError }: ToolListWatcher): Promise<void> {
  try {
    while (!signal.aborted) {
      const subscription = await client.listen({ toolsListChanged: true }, { signal });
      // The server may have closed it on purpose; asking again would be asking too much.
      if ((await subscription.closed) !== 'remote' || client.transport === undefined) return;
      await wait(PAUSE_MS, undefined, { signal, ref: false });
      onChange();
    }
  } catch (error) {
    if (!signal.aborted) onError(error);
  }
}

/** Whether a tool may be taken. Fails closed: whoever cannot be asked has not said yes. */
async function isApproved(candidate: McpToolCandidate, options: McpToolsOptions): Promise<boolean> {
  if (options.approve === undefined) return true;
  try {
    return (await options.approve(candidate)) === true;
  } catch (error) {
    options.onError?.(error);
    return false;
  }
}

/** Throws the author's mistakes in what tools of a server are made of, all together. */
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
