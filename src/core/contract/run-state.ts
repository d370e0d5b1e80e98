import { FILLED_TEXT, type OptionRule, withMethods } from '../kernel/options.js';
import type { BudgetGrant, Spending } from './budget.js';
import type { BudgetPart } from './budget-ledger.js';
import type { CallJournal, CallRecord, PendingCall, Wait } from './call.js';
import type { JsonObject } from './json-schema.js';
import type { Message, ProviderItems, Usage } from './llm-provider.js';
import type { TracePlace } from './ports.js';
import type { Content } from './tool-result.js';

/** A result, as a state stores it: its JSON form without the error, which is for logs. */
export interface StoredResult {
  readonly forLLM: string;
  readonly forUser?: string;
  readonly silent: boolean;
  readonly isError: boolean;
  readonly async: boolean;
  readonly content?: Content;
  readonly details?: unknown;
}

/** The record of a call, as a state stores it. */
export interface StoredCallRecord extends Omit<CallRecord, 'result'> {
  readonly result: StoredResult;
}

/** A call as the model made it: the tool that it called, and the arguments as JSON. */
export interface WireCall {
  readonly name: string;
  readonly text: string;
}

/** What the provider keeps of a call, and how the model made it where it called its tool through another one. */
interface SentCall {
  readonly providerItems?: ProviderItems;
  readonly wire?: WireCall;
}

/** A call of the open assistant message that has its result; it is never made again. */
interface StoredSettledCall extends SentCall {
  readonly status: 'settled';
  readonly record: StoredCallRecord;
}

/** The outcome of a run, as a state stores it. */
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

/** A run that the tool of a call began: where it waits, or what came of it. Made again, the call goes on with it. */
export interface StoredInnerRun {
  /** Which of the runs of the call it is, from 0, in the order of their beginnings. */
  readonly run: number;
  readonly state?: RunState;
  readonly result?: StoredRunResult;
}

/** A call that waits for answers: those in `waits`, while those it has are in the journal. */
export interface StoredWaitingCall extends SentCall {
  readonly status: 'waiting';
  readonly id: string;
  readonly name: string;
  /** As the model sent them. */
  readonly arguments: JsonObject | string;
  readonly waits: readonly Wait[];
  readonly journal: CallJournal;
  readonly inner?: readonly StoredInnerRun[];
  /** No call of the model: the run itself asks for more of this part of an account. The last of its message. */
  readonly asks?: { readonly account: string; readonly part: BudgetPart };
}

/** A call that has not begun, because a sequential tool is among it and those that wait. */
interface StoredHeldCall extends SentCall {
  readonly status: 'held';
  readonly id: string;
  readonly name: string;
  readonly arguments: JsonObject | string;
}

/**
 * A call that had begun when this was written: what came of it is not known. Only runs under way have such calls
 * (`RunCheckpoint`).
 */
interface StoredBegunCall extends SentCall {
  readonly status: 'begun';
  readonly id: string;
  readonly name: string;
  readonly arguments: JsonObject | string;
  /** Of a call that is made again: what was known of it. */
  readonly journal?: CallJournal;
  readonly inner?: readonly StoredInnerRun[];
  /** Its tool was not to run in the call, but as a job under the key of the call. */
  readonly asJob?: true;
  /** Its tool only read: nothing was done, also where the tool is gone by now. */
  readonly readOnly?: true;
}

/** One call of the open assistant message. */
export type StoredCall = StoredSettledCall | StoredWaitingCall | StoredHeldCall | StoredBegunCall;

/** An assistant message whose calls are not all answered. */
interface OpenMessage {
  readonly content: string;
  readonly calls: readonly StoredCall[];
  readonly reasoning?: string;
  readonly providerItems?: ProviderItems;
}

/**
 * A suspended run as plain JSON: what `resumeToolLoop` goes on from, in this process or another. Tools and
 * classes are not in it; they are looked up again by name. It holds the conversation: keep it as safe as that,
 * and give a `stateSecret` where it passes through hands that must not change it.
 */
export interface RunState {
  /**
   * States of version 1 know neither owner, tools nor model, those of version 2 no provider items; those of version
   * 4 have runs inside calls, and those of version 5 may ask for more of a budget.
   */
  readonly version: 1 | 2 | 3 | 4 | 5;
  /** Id of the run, the same through all its suspensions. */
  readonly runId: string;
  /** How often the run has been suspended, counting this. */
  readonly revision: number;
  /** On whose behalf the run takes place: `scope.owner` of its beginning; absent where there was none. */
  readonly owner?: unknown;
  /** Id of the conversation whose turn the run is; only of `Conversations`. */
  readonly turnOf?: string;
  /** Names of the tools that the run was offered; no resume offers it more. */
  readonly tools?: readonly string[];
  /** The model that the run asks, also after a resume. */
  readonly model?: string;
  /** The history before the open assistant message. */
  readonly messages: readonly Message[];
  /** The assistant message whose calls are not all answered. */
  readonly open: OpenMessage;
  readonly pending: readonly PendingCall[];
  /** The calls of the messages before. */
  readonly toolCalls: readonly StoredCallRecord[];
  readonly iterations: number;
  readonly usage: Usage;
  /** What it has spent; only where it has a budget. */
  readonly spent?: Spending;
  /** What was granted to it beyond that. */
  readonly granted?: readonly BudgetGrant[];
  /** Rejections so far, by tool; under `unknown` those of names that no tool has. */
  readonly retries: {
    readonly byTool: readonly (readonly [string, number])[];
    readonly unknown: number;
    /** All of them, also those that a success has made good; absent in states of version 1. */
    readonly total?: number;
  };
  /** What the loop guard has seen; absent where it is switched off. */
  readonly guard?: {
    readonly seen: readonly string[];
    readonly counts: readonly (readonly [string, number])[];
  };
  /** Where the run stood in a trace, which the resumed run links to; absent without a tracer. */
  readonly trace?: TracePlace;
  /**
   * HMAC-SHA256 of all the rest, with the config's `stateSecret`; base64url. Without a secret, the state of a run
   * that has an owner is signed with a key that lives as long as the process.
   */
  readonly signature?: string;
}

/** Whose a run is for now. */
export interface RunClaim {
  readonly runId: string;
  /** A random id, chosen by the claimer. */
  readonly claim: string;
}

/** A claim, and for how long it holds unless it is renewed. */
export interface RunLease extends RunClaim {
  /** Milliseconds from now. */
  readonly leaseMs: number;
}

/**
 * What came of claiming a run; `taken`: somebody else has claimed it, and that claim still holds; `lost`: it is
 * not suspended, because its holder died while it was under way (`recoverRuns`).
 */
export type ClaimOutcome =
  | { readonly status: 'claimed'; readonly state: RunState }
  | { readonly status: 'taken' }
  | { readonly status: 'lost' }
  | { readonly status: 'missing' };

/**
 * Keeps suspended runs; one that keeps runs under way and over, too, is a `CheckpointStore`. Every method is atomic, also
 * between processes; methods may be synchronous. Ids have been checked before.
 *
 * A run in it is free, or claimed until the lease ends. A claim holds until its holder ends it or somebody
 * else takes the run after the lease has ended: whoever is late, but was not replaced, has lost nothing.
 */
export interface RunStore {
  /**
   * Keeps the state as a free, suspended run, in place of an older state of the same run.
   *
   * @throws ToolwrightError `RunClaimed` (517), and changes nothing, where that run is claimed, under way or over, or
   *   if the store has a state of a later revision.
   */
  save(state: RunState): void | Promise<void>;
  /** The state of a suspended run, claimed or free; `undefined` where there is none, or it is under way or over. */
  load(runId: string): RunState | undefined | Promise<RunState | undefined>;
  /**
   * Claims a suspended run that is free or whose lease has ended. One under way that nobody holds is `lost`, one that is
   * over is `missing`.
   */
  claim(lease: RunLease): ClaimOutcome | Promise<ClaimOutcome>;
  /** Lengthens any claim, also of a run under way; false where it no longer holds. */
  renew(lease: RunLease): boolean | Promise<boolean>;
  /**
   * Ends any claim. With a state, the run is suspended with that, in place of its state and entries; without one, it is
   * freed as it is. False where the claim no longer holds, and then nothing changes.
   */
  release(claim: RunClaim, state?: RunState): boolean | Promise<boolean>;
  /** Forgets a run, by any claim; false where that no longer holds, and then nothing changes. */
  remove(claim: RunClaim): boolean | Promise<boolean>;
}

/** What the option `store` may be. */
export const RUN_STORE = withMethods(
  ['save', 'load', 'claim', 'renew', 'release', 'remove'],
  "new SqliteRunStore({ path: 'runs.sqlite' })",
);

/** A text that names something in a store, two of which fit into one index of any database. */
export const STORED_ID: OptionRule = storedText(512);

/** The same of runs that are there: those of turns have the id of their conversation, a dot and a number. */
export const RUN_ID: OptionRule = storedText(528);

/** No store can store U+0000, and halves of characters would become the same. */
function storedText(mostBytes: number): OptionRule {
  const fix = `a text that is not empty, of at most ${mostBytes} bytes, without U+0000 and lone surrogates: 'order-7'`;
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
