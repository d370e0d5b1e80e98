import { storeWith } from '../kernel/options.js';

/** What an approval may cover: the rest of its run, its conversation, or all conversations of its owner. */
export type RememberScope = 'run' | 'conversation' | 'user';

/** The request to remember an approval for later calls. */
export interface Remember {
  readonly scope: RememberScope;
  /** Expiry time (ISO 8601); default: as long as the tool allows. */
  readonly expires?: string;
}

/** A remembered approval, with the calls that it covers, as the server determined them. */
export interface StandingApproval {
  /** A digest of everything that a call must have in common with it: tool, definition, pattern, scope and owner. */
  readonly id: string;
  readonly tool: string;
  /** The part of the arguments that must be equal. */
  readonly pattern: unknown;
  readonly scope: RememberScope;
  /** Id of the run or the conversation. */
  readonly subject?: string;
  /** The owner of the calls. */
  readonly owner?: unknown;
  /** Who approved, if the resume named them. */
  readonly answeredBy?: unknown;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly expiresAt?: number;
}

/** Stores standing approvals and ignores expired ones. Methods may be synchronous. */
export interface ApprovalStore {
  /** Stores an approval; it replaces an older one with the same id. */
  addApproval(approval: StandingApproval): void | Promise<void>;
  /** The first valid approval with one of these ids. */
  findApproval(ids: readonly string[]): StandingApproval | undefined | Promise<StandingApproval | undefined>;
  /** Newest first, at most `limit`; default: 100. */
  listApprovals(limit?: number): readonly StandingApproval[] | Promise<readonly StandingApproval[]>;
  /** Revokes an approval; false if it does not exist. */
  revokeApproval(id: string): boolean | Promise<boolean>;
}

/** A run store that also stores standing approvals. */
export interface StoreWithApprovals {
  readonly approvals: ApprovalStore;
}

/** Whether a store supports standing approvals. */
export const keepsApprovals = storeWith<StoreWithApprovals>('approvals', [
  ...['addApproval', 'findApproval', 'listApprovals', 'revokeApproval'],
]);
