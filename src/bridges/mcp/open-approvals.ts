import { isApproved } from './list-candidates.js';
import type { McpToolCandidate, McpToolsOptions } from './mcp-tools-options.js';

/** What is done when there is an answer. */
type Decide = (candidate: McpToolCandidate, isApproved: boolean) => void;

interface OpenApproval extends PromiseWithResolvers<void> {
  readonly fingerprint: string;
}

/**
 * Approvals that were asked for and are not answered yet: at most one for each name. Nobody has to wait for
 * an answer that may never come.
 */
export class OpenApprovals {
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
