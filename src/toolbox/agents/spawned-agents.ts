import { errorResult, ToolResult, toolResult } from '../../contract/tool-result.js';
import { onAbort } from '../../kernel/async.js';
import { visibleLine } from '../../kernel/visible-text.js';

/** An agent that is to go on behind the call that starts it. */
interface SpawnStart {
  /** Whose it is: that of other conversations can neither be seen nor ended. */
  readonly owner: string;
  readonly agent: string;
  readonly task: string;
  /** Ends it, also before it has begun. */
  readonly signal: AbortSignal;
}

/** How many that have ended are remembered, of all conversations. */
const MOST_ENDED = 200;
const MOST_SHOWN = 200;

/** An agent that was started and not waited for. */
class SpawnedAgent {
  readonly id: string;
  readonly owner: string;
  readonly #agent: string;
  readonly #task: string;
  readonly #stop = new AbortController();
  readonly #since = performance.now();
  #status: 'waits for its turn' | 'under way' | 'done' | 'failed' | 'ended early' = 'waits for its turn';
  #took = 0;
  #result: ToolResult | undefined;
  #unfollow: (() => void) | undefined;

  constructor(id: string, { owner, agent, task, signal }: SpawnStart) {
    this.id = id;
    this.owner = owner;
    this.#agent = agent;
    this.#task = task;
    this.#unfollow = onAbort(signal, () => this.#end('ended early'));
  }

  /** Aborted when it is to end. */
  get stopped(): AbortSignal {
    return this.#stop.signal;
  }

  get hasEnded(): boolean {
    return this.#took > 0;
  }

  async run(work: () => Promise<ToolResult>): Promise<ToolResult> {
    if (!this.hasEnded) this.#status = 'under way';
    try {
      this.#result = await work();
      this.#end(this.#result.isError ? 'failed' : 'done');
      return this.#result;
    } catch (error) {
      this.#end('failed');
      throw error;
    }
  }

  cancel(): void {
    this.#end('ended early');
    this.#stop.abort(new DOMException(`${this.id} was cancelled.`, 'AbortError'));
  }

  describe(): string {
    const task = visibleLine(this.#task);
    const shown = task.length > MOST_SHOWN ? `${task.slice(0, MOST_SHOWN)}…` : task;
    return `${this.id} (${this.#agent}): ${this.#standing()}: ${shown}`;
  }

  status(): ToolResult {
    const result = this.#result;
    const said = result === undefined ? '' : `\n${result.forLLM}`;
    return toolResult(`${this.describe()}${said}`);
  }

  #standing(): string {
    const ms = this.hasEnded ? this.#took : performance.now() - this.#since;
    return `${this.#status}, ${(ms / 1_000).toFixed(1)} s`;
  }

  /** Whichever end comes first. */
  #end(status: 'done' | 'failed' | 'ended early'): void {
    if (this.hasEnded) return;
    this.#status = status;
    this.#took = Math.max(performance.now() - this.#since, Number.EPSILON);
    this.#unfollow?.();
  }
}

/** Agents that were started and not waited for, by conversation. */
export class SpawnedAgents {
  readonly #agents = new Map<string, SpawnedAgent>();
  #count = 0;

  add(start: SpawnStart): SpawnedAgent {
    this.#count += 1;
    const agent = new SpawnedAgent(`agent_${this.#count}`, start);
    this.#agents.set(agent.id, agent);
    this.#forgetOld();
    return agent;
  }

  /** How many of a conversation have not ended. */
  underWay(owner: string): number {
    return this.#of(owner).filter(({ hasEnded }) => !hasEnded).length;
  }

  list(owner: string): string {
    const all = this.#of(owner);
    return all.length === 0 ? 'No agent was started.' : all.map((agent) => agent.describe()).join('\n');
  }

  status(owner: string, id: string): ToolResult {
    return this.#find(owner, id)?.status() ?? this.#unknown(owner, id);
  }

  cancel(owner: string, id: string): ToolResult {
    const found = this.#find(owner, id);
    if (found === undefined) return this.#unknown(owner, id);
    if (found.hasEnded) return toolResult(`It had ended already. ${found.describe()}`);
    found.cancel();
    return toolResult(`${id} is ended.`);
  }

  cancelAll(): void {
    for (const agent of this.#agents.values()) if (!agent.hasEnded) agent.cancel();
  }

  #of(owner: string): readonly SpawnedAgent[] {
    return [...this.#agents.values()].filter((agent) => agent.owner === owner);
  }

  #find(owner: string, id: string): SpawnedAgent | undefined {
    const found = this.#agents.get(id);
    return found?.owner === owner ? found : undefined;
  }

  #unknown(owner: string, id: string): ToolResult {
    return errorResult(`There is no '${id}'. ${this.list(owner)}`);
  }

  #forgetOld(): void {
    const ended = [...this.#agents.values()].filter(({ hasEnded }) => hasEnded);
    for (const { id } of ended.slice(0, Math.max(0, ended.length - MOST_ENDED))) this.#agents.delete(id);
  }
}
