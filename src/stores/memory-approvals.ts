import type { ApprovalStore, StandingApproval } from '../contract/standing-approvals.js';
import { plainJson } from '../kernel/json.js';

const DEFAULT_LIMIT = 100;

/** The standing approvals of a process. */
export class MemoryApprovals implements ApprovalStore {
  readonly #now: () => number;
  readonly #kept = new Map<string, StandingApproval>();

  constructor(now: () => number) {
    this.#now = now;
  }

  addApproval(approval: StandingApproval): void {
    for (const { id } of [...this.#kept.values()]) this.#standing(id);
    this.#kept.delete(approval.id);
    this.#kept.set(approval.id, plainJson(approval) as StandingApproval);
  }

  findApproval(ids: readonly string[]): StandingApproval | undefined {
    for (const id of ids) {
      const found = this.#standing(id);
      if (found !== undefined) return plainJson(found) as StandingApproval;
    }
    return undefined;
  }

  listApprovals(limit = DEFAULT_LIMIT): readonly StandingApproval[] {
    const standing = [...this.#kept.values()].filter(({ id }) => this.#standing(id) !== undefined);
    return plainJson(standing.toReversed().slice(0, limit)) as readonly StandingApproval[];
  }

  revokeApproval(id: string): boolean {
    const stood = this.#standing(id) !== undefined;
    this.#kept.delete(id);
    return stood;
  }

  removeWhere(isMeant: (approval: StandingApproval) => boolean): void {
    for (const [id, approval] of this.#kept) if (isMeant(approval)) this.#kept.delete(id);
  }

  /** What has expired is forgotten on the way. */
  #standing(id: string): StandingApproval | undefined {
    const found = this.#kept.get(id);
    if (found?.expiresAt === undefined || found.expiresAt > this.#now()) return found;
    this.#kept.delete(id);
    return undefined;
  }
}
