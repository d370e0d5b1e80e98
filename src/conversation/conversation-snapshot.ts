import type { BackgroundTask } from '../contract/background-task.js';
import type { Message } from '../contract/message.js';
import type { RunState } from '../contract/run-state.js';
import type { Answer } from '../contract/suspension.js';
import type { RunProgress } from '../loop/loop-state.js';
import type { TurnOrigin } from './conversation-event.js';

/** After the last message that has all its answers; without `progress`, the model was not asked yet. */
export interface RunningStanding {
  readonly status: 'running';
  readonly owner?: unknown;
  readonly progress?: Omit<RunProgress, 'messages'>;
}

/** From an open message with these answers: its calls have not all ended. `isKept`: the run is in the store. */
export interface AnsweredStanding {
  readonly status: 'answered';
  readonly state: RunState;
  readonly answers: readonly Answer[];
  readonly answeredBy?: unknown;
  readonly isKept: boolean;
}

/** It waits for answers. `isKept`: the run is in the store. */
export interface SuspendedStanding {
  readonly status: 'suspended';
  readonly state: RunState;
  readonly isKept: boolean;
}

/** What waits for a turn, and on whose behalf it will be taken. */
export type StoredOrigin = TurnOrigin & { readonly owner?: unknown };

/** What a turn goes on from. */
export type StoredStanding = RunningStanding | AnsweredStanding | SuspendedStanding;

/** A turn that has begun and is not over. */
export interface StoredTurn {
  readonly number: number;
  readonly origin: TurnOrigin;
  /** It was aborted, and had not ended yet. */
  readonly isAborted: boolean;
  readonly standing: StoredStanding;
}

/**
 * A conversation as plain JSON: what `Conversation.restore` goes on from, in this process or another. It holds
 * what was said and what tools were told: keep it as safe as that, and give a `stateSecret` where it passes
 * through hands that must not change it.
 */
export interface ConversationSnapshot {
  readonly version: 1;
  readonly id: string;
  /** A history in which every call has its answer; without the system prompt. */
  readonly messages: readonly Message[];
  /** Turns begun so far. */
  readonly turns: number;
  readonly turn?: StoredTurn;
  /** What waits for a turn, in order of arrival. */
  readonly inbox: readonly StoredOrigin[];
  /** Work that was started and has not completed. */
  readonly tasks: readonly BackgroundTask[];
  /** As that of a {@link RunState}. */
  readonly signature?: string;
}
