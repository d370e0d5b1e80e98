import { withMethods } from '../kernel/options.js';

/** What an approval may cover: the rest of its run, its conversation, or all conversations of its owner. */
export type RememberScope = 'run' | 'conversation' | 'user';

/** The request to remember an approval for later calls. */
export interface Remember {
  readonly scope: RememberScope;
  /** Until when (ISO 8601); default: as long as the tool allows. */
  readonly expires?: string;
}

/** A remembered approval, with the calls that it covers, as the server determined them. */
export interface StandingApproval {
  /** A digest of all that a call must have in common with it: tool, definition, pattern, scope and owner. */
  readonly id: string;
  readonly tool: string;
  /** What of the arguments has to be the same. */
  readonly pattern: unknown;
  readonly scope: RememberScope;
  /** The run or the conversation that it is for. */
  readonly subject?: string;
  /** On whose behalf the calls are made. */
  readonly owner?: unknown;
  /** Who said it, where the resume said who. */
  readonly answeredBy?: unknown;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly expiresAt?: number;
}

/** Keeps standing approvals. Those that have expired are none. Methods may be synchronous. */
export interface ApprovalStore {
  /** Keeps one; of the same id, the last counts. */
  addApproval(approval: StandingApproval): void | Promise<void>;
  /** The first of these that stands. */
  findApproval(ids: readonly string[]): StandingApproval | undefined | Promise<StandingApproval | undefined>;
  /** The newest first, at most so many; default 100. */
  listApprovals(limit?: number): readonly StandingApproval[] | Promise<readonly StandingApproval[]>;
  /** Ends one; false where there is none. */
  revokeApproval(id: string): boolean | Promise<boolean>;
}

/** A store of runs that stores standing approvals, too. */
export interface StoreWithApprovals {
  readonly approvals: ApprovalStore;
}

const APPROVALS = withMethods(
  ['addApproval', 'findApproval', 'listApprovals', 'revokeApproval'],
  'an ApprovalStore',
);

/** Whether a store supports standing approvals. */
export function keepsApprovals(store: unknown): store is StoreWithApprovals {
  return (
    typeof store === 'object' && store !== null && 'approvals' in store && APPROVALS.accepts(store.approvals)
  );
}
