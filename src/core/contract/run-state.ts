import { FILLED_TEXT, type OptionRule, withMethods } from '../kernel/options.js';
import type { BudgetGrant, Spending } from './budget.js';
import type { BudgetPart } from './budget-ledger.js';
import type { CallJournal, CallRecord, PendingCall, Wait } from './call.js';
import type { JobScope } from './job-engine.js';
import type { JsonObject } from './json-schema.js';
import type { Message, ProviderItems, Usage } from './llm-provider.js';
import type { TracePlace } from './ports.js';
import type { Content } from './tool-result.js';

/** A result in a stored state: its JSON form without the error, which is for logs. */
export interface StoredResult {
  readonly forLLM: string;
  readonly forUser?: string;
  readonly silent: boolean;
  readonly isError: boolean;
  readonly async: boolean;
  readonly content?: Content;
  readonly details?: unknown;
}

/** The record of a call in a stored state. */
export interface StoredCallRecord extends Omit<CallRecord, 'result'> {
  readonly result: StoredResult;
}

/** A call as the model made it: the tool that it called, and the arguments as JSON. */
export interface WireCall {
  readonly name: string;
  readonly text: string;
}

/** The provider's data of a call, and the original call if the model called the tool through another tool. */
interface SentCall {
  readonly providerItems?: ProviderItems;
  readonly wire?: WireCall;
}

/** A call of the open assistant message without a result. */
interface UnsettledCall extends SentCall {
  readonly id: string;
  readonly name: string;
  /** As the model sent them. */
  readonly arguments: JsonObject | string;
}

/** A call of the open assistant message that has its result; it is never executed again. */
interface StoredSettledCall extends SentCall {
  readonly status: 'settled';
  readonly record: StoredCallRecord;
}

/** The outcome of a run in a stored state. */
export interface StoredRunResult {
  readonly status: string;
  readonly content: string;
  readonly output?: unknown;
  readonly iterations: number;
  readonly usage: Usage;
  readonly messages: readonly Message[];
  readonly toolCalls: readonly StoredCallRecord[];
  readonly error?: { readonly name: string; readonly message: string };
}

/**
 * A run that the tool of a call started: its suspended state, or its result. If the call is executed again, it
 * resumes this run.
 */
export interface StoredInnerRun {
  /** The index of the run among the runs of the call, from 0, in the order of their starts. */
  readonly run: number;
  readonly state?: RunState;
  readonly result?: StoredRunResult;
}

/** A call that waits for answers: the missing answers are in `waits`, the received answers in the journal. */
export interface StoredWaitingCall extends UnsettledCall {
  readonly status: 'waiting';
  readonly waits: readonly Wait[];
  readonly journal: CallJournal;
  readonly inner?: readonly StoredInnerRun[];
  /** Not a call of the model: the run itself asks for more of this part of an account. The last call of its message. */
  readonly asks?: { readonly account: string; readonly part: BudgetPart };
}

/** A call that has not begun, because it or a waiting call belongs to a sequential tool. */
interface StoredHeldCall extends UnsettledCall {
  readonly status: 'held';
}

/**
 * A call that had begun when the state was written; its outcome is unknown. Only running runs have such calls
 * (`RunCheckpoint`).
 */
interface StoredBegunCall extends UnsettledCall {
  readonly status: 'begun';
  /** The journal of a call that is executed again. */
  readonly journal?: CallJournal;
  readonly inner?: readonly StoredInnerRun[];
  /** The tool was to run as a job under the key of the call, and not in the call itself. */
  readonly asJob?: true;
  /** The tool only reads: the call had no effect, even if the tool no longer exists. */
  readonly readOnly?: true;
}

/** A call of the open assistant message. */
export type StoredCall = StoredSettledCall | StoredWaitingCall | StoredHeldCall | StoredBegunCall;

/** An assistant message with unanswered calls. */
interface OpenMessage {
  readonly content: string;
  readonly calls: readonly StoredCall[];
  readonly reasoning?: string;
  readonly providerItems?: ProviderItems;
}

/** The newest format of {@link RunState}; newer ones belong to a newer package, and are left to it. */
export const NEWEST_STATE_VERSION = 7;

/**
 * A suspended run as plain JSON: `resumeToolLoop` continues from it, in this process or another. It does not contain
 * tools and classes; they are looked up by name. It contains the conversation: protect it accordingly, and set a
 * `stateSecret` if it passes through systems that must not change it.
 */
export interface RunState {
  /**
   * The format version. Version 1 has no owner, tools and model. Version 2 has no provider items. Version 4 added
   * runs inside calls. Version 5 added questions about budgets. Version 6 added refusals that a method handles.
   * Version 7 added runs of one call.
   */
  readonly version: 1 | 2 | 3 | 4 | 5 | 6 | 7;
  /** Id of the run; it does not change when the run is suspended and resumed. */
  readonly runId: string;
  /** How often the run has been suspended, including this time. */
  readonly revision: number;
  /** The owner: `scope.owner` at its start; absent if there was no owner. */
  readonly owner?: unknown;
  /** The part of its scope that is stored, for processes that continue or undo it; absent if it is empty. */
  readonly scope?: Omit<JobScope, 'owner'>;
  /** Id of the conversation if the run is a turn of `Conversations`. */
  readonly turnOf?: string;
  /** The run is one call without a model, as a task of MCP: it ends with the call. */
  readonly isOneCall?: true;
  /** Names of the tools that the run was offered; resuming never adds tools. */
  readonly tools?: readonly string[];
  /** The model of the run, also after a resume. */
  readonly model?: string;
  /** The history before the open assistant message. */
  readonly messages: readonly Message[];
  /** The assistant message with unanswered calls. */
  readonly open: OpenMessage;
  readonly pending: readonly PendingCall[];
  /** The calls of earlier messages. */
  readonly toolCalls: readonly StoredCallRecord[];
  readonly iterations: number;
  readonly usage: Usage;
  /** The amounts spent; only if the run has a budget. */
  readonly spent?: Spending;
  /** Amounts granted beyond the budget. */
  readonly granted?: readonly BudgetGrant[];
  /** Rejections so far, by tool; `unknown` counts names that no tool has. */
  readonly retries: {
    readonly byTool: readonly (readonly [string, number])[];
    readonly unknown: number;
    /** All rejections, including those before a success; absent in states of version 1. */
    readonly total?: number;
  };
  /** The data of the loop guard; absent if it is switched off. */
  readonly guard?: {
    readonly seen: readonly string[];
    readonly counts: readonly (readonly [string, number])[];
  };
  /** The run saves its steps, also after a resume. */
  readonly checkpoint?: 'step' | 'call';
  /** The position of the run in a trace, which the resumed run links to; absent without a tracer. */
  readonly trace?: TracePlace;
  /**
   * HMAC-SHA256 of all other fields with the config's `stateSecret`; base64url. Without a secret, the state of a run
   * with an owner is signed with a key that exists as long as the process.
   */
  readonly signature?: string;
}

/** The current claim of a run. */
export interface RunClaim {
  readonly runId: string;
  /** A random id, chosen by the claimer. */
  readonly claim: string;
}

/** A claim that expires after a time unless it is renewed. */
export interface RunLease extends RunClaim {
  /** Milliseconds from now. */
  readonly leaseMs: number;
}

/**
 * The outcome of claiming a suspended run; `taken`: another process has a valid claim; `lost`: the run is not
 * suspended, because its holder crashed while it was running (`recoverRuns`).
 */
export type ClaimOutcome =
  | { readonly status: 'claimed'; readonly state: RunState }
  | { readonly status: 'taken' }
  | { readonly status: 'lost' }
  | { readonly status: 'missing' };

/**
 * Stores suspended runs; a store that also stores running and ended runs is a `CheckpointStore`. Every method is
 * atomic, also between processes; methods may be synchronous. Callers have validated the ids.
 *
 * If a write throws, it is repeated with the same arguments until the lease ends, unless the error has
 * `retryable: false`. If the first attempt was written although it failed (its response was lost), the repeated one
 * must change nothing and succeed.
 *
 * A stored run is free, or claimed until the lease ends. A claim is valid until its holder ends it, or until another
 * process claims the run after the lease has expired. If no other process has claimed the run, an expired claim is
 * still valid.
 */
export interface RunStore {
  /**
   * Stores the state as a free, suspended run, replacing a state of an earlier revision. The same state may be stored
   * again.
   *
   * @throws ToolwrightError `RunClaimed` (517), without a change, if the run is claimed, running or ended, or if the
   * store has a state of a later revision, or another state of the same revision.
   */
  save(state: RunState): void | Promise<void>;
  /**
   * The state of a suspended run, claimed or free; `undefined` if there is no such run, or if it is running or has
   * ended.
   */
  load(runId: string): RunState | undefined | Promise<RunState | undefined>;
  /**
   * Claims a suspended run that is free or whose lease has expired. A running run without a holder is `lost`, an
   * ended run is `missing`.
   */
  claim(lease: RunLease): ClaimOutcome | Promise<ClaimOutcome>;
  /** Extends any claim, also of a running run; false if it is no longer valid. */
  renew(lease: RunLease): boolean | Promise<boolean>;
  /**
   * Ends any claim. With a state, the run is suspended with that state, which replaces the earlier state and entries.
   * Without a state, the run is freed unchanged. Returns false, without a change, if the claim is no longer valid.
   */
  release(claim: RunClaim, state?: RunState): boolean | Promise<boolean>;
  /** Deletes a run with any claim; false, without a change, if the claim is no longer valid. */
  remove(claim: RunClaim): boolean | Promise<boolean>;
}

/** The rule for the option `store`. */
export const RUN_STORE = withMethods(
  ['save', 'load', 'claim', 'renew', 'release', 'remove'],
  "new SqliteRunStore({ path: 'runs.sqlite' })",
);

/** A text that identifies a record in a store; two of them fit into one index of any database. */
export const STORED_ID: OptionRule = storedText(512);

/** The same for existing runs: the id of a turn is the id of its conversation, a dot and a number. */
export const RUN_ID: OptionRule = storedText(528);

/** Stores cannot save U+0000, and lone surrogates would become equal. */
function storedText(mostBytes: number): OptionRule {
  const fix = `a non-empty string of at most ${mostBytes} bytes, without U+0000 and lone surrogates: 'order-7'`;
  return {
    accepts: (value) =>
      FILLED_TEXT.accepts(value) &&
      !/[\0\p{Surrogate}]/u.test(String(value)) &&
      bytesOf(String(value)) <= mostBytes,
    fix,
    schema: { type: 'string', pattern: '^[^\\u0000]*[^\\u0000\\s][^\\u0000]*$', maxLength: mostBytes },
    explain: (value, option) => {
      if (typeof value !== 'string' || bytesOf(value) <= mostBytes) return [];
      return [
        { option, problem: `${option} has ${bytesOf(value)} bytes as UTF-8`, fix: `${option}: ${fix}` },
      ];
    },
  };
}

function bytesOf(text: string): number {
  return new TextEncoder().encode(text).length;
}
