import type { Client } from '@modelcontextprotocol/client';
import type { ToolDefinition } from '../../contract/tool-definition.js';
import type { ToolRegistry } from '../../registry/tool-registry.js';
import { importTool } from './import-tool.js';
import { isApproved, listCandidates } from './list-candidates.js';
import { LiveClient } from './live-client.js';
import type {
  McpClientSource,
  McpFollowing,
  McpToolCandidate,
  McpToolChange,
  McpToolsOptions,
} from './mcp-tools-options.js';
import { watchToolList } from './watch-tool-list.js';

/** A tool of the server, and what became of it. */
interface FollowedTool {
  readonly candidate: McpToolCandidate;
  /** As it is registered; nothing for one that is withheld. */
  readonly tool: ToolDefinition | undefined;
  /** Its name may become free. */
  readonly isWaiting?: boolean;
}

/** Keeps what a server offers and what is registered of it in step, one reading after the other. */
export class McpFollower implements McpFollowing {
  readonly #registry: ToolRegistry;
  readonly #options: McpToolsOptions;
  readonly #client: LiveClient;
  #isOver = false;
  /** Ends the watching of the one connection there is. */
  #watching = new AbortController();
  readonly #followed = new Map<string, FollowedTool>();
  #reading: Promise<void> = Promise.resolve();
  #isKnown = false;

  constructor(registry: ToolRegistry, source: McpClientSource, options: McpToolsOptions) {
    this.#registry = registry;
    this.#options = options;
    this.#client = new LiveClient(source, (client) => this.#watch(client));
  }

  refresh(): Promise<void> {
    const reading = this.#reading.then(() => this.#read());
    this.#reading = reading.catch(() => {});
    return reading;
  }

  async close(): Promise<void> {
    this.#isOver = true;
    this.#watching.abort();
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

  async #read(): Promise<void> {
    if (this.#isOver) return;
    const candidates = await this.#client.use((client) => listCandidates(client, this.#options), true);
    const changes: McpToolChange[] = this.#removeAllBut(new Set(candidates.map(({ name }) => name)));
    for (const candidate of candidates) {
      const change = await this.#take(candidate);
      if (change !== undefined) changes.push(change);
    }
    this.#isKnown = true;
    for (const change of changes) this.#options.onChange?.(change);
  }

  async #take(found: McpToolCandidate): Promise<McpToolChange | undefined> {
    const { name, definition, fingerprint } = found;
    const before = this.#followed.get(name);
    const isWaiting = before?.isWaiting === true && this.#registry.offered(name) === undefined;
    if (before?.candidate.fingerprint === fingerprint && !isWaiting) return undefined;
    const previous = before && {
      definition: before.candidate.definition,
      fingerprint: before.candidate.fingerprint,
    };
    const candidate = previous ? { ...found, previous } : found;
    const reason = await this.#objectionTo(candidate, before?.tool);
    if (reason !== undefined) {
      this.#registry.unregister(...this.#ownNames([name]));
      this.#followed.set(name, { candidate, tool: undefined, isWaiting: reason === 'name taken' });
      return { kind: 'withheld', name, reason, candidate };
    }
    const tool = importTool(name, definition, { client: this.#client, timeoutMs: this.#options.timeoutMs });
    this.#registry.register(tool);
    this.#followed.set(name, { candidate, tool });
    return { kind: before?.tool === undefined ? 'added' : 'changed', name, candidate };
  }

  /** A server must not put its tool in the place of another one, which the model and its user trust. */
  async #objectionTo(
    candidate: McpToolCandidate,
    own: ToolDefinition | undefined,
  ): Promise<McpToolChange['reason']> {
    const isApprovedNow = await isApproved(candidate, this.#options);
    const registered = this.#registry.offered(candidate.name);
    if (registered !== undefined && registered !== own) return 'name taken';
    return isApprovedNow ? undefined : 'not approved';
  }

  #removeAllBut(names: ReadonlySet<string>): McpToolChange[] {
    const gone = [...this.#followed.keys()].filter((name) => !names.has(name));
    this.#registry.unregister(...this.#ownNames(gone));
    for (const name of gone) this.#followed.delete(name);
    return gone.map((name) => ({ kind: 'removed', name }));
  }

  /** The names under which the registry still has what was registered here. */
  #ownNames(names: readonly string[]): string[] {
    return names.filter((name) => {
      const tool = this.#followed.get(name)?.tool;
      return tool !== undefined && this.#registry.offered(name) === tool;
    });
  }
}
