import type { Client } from '@modelcontextprotocol/client';
import type { ToolDefinition } from '../../contract/tool-definition.js';
import type { ToolRegistry } from '../../registry/tool-registry.js';
import { importTool } from './import-tool.js';
import { listCandidates } from './list-candidates.js';
import { LiveClient } from './live-client.js';
import type {
  McpClientSource,
  McpFollowing,
  McpToolCandidate,
  McpToolChange,
  McpToolsOptions,
} from './mcp-tools-options.js';
import { OpenApprovals } from './open-approvals.js';
import { watchToolList } from './watch-tool-list.js';

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
export class McpFollower implements McpFollowing {
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
    this.#options = options;
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
