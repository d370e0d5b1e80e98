import type { Spending } from '../../core/contract/budget.js';
import type { Answer } from '../../core/contract/call.js';
import type { JsonSchema } from '../../core/contract/json-schema.js';
import type { Message } from '../../core/contract/llm-provider.js';
import type { RunState } from '../../core/contract/run-state.js';
import type { BackgroundTask } from '../../core/contract/tool-context.js';
import { historyFaults } from '../loop/given-history.js';
import type { RunProgress } from '../loop/loop-run.js';
import {
  COUNT_SCHEMA,
  checkForm,
  invalidState,
  isSignedWith,
  list,
  MESSAGES,
  object,
  PROGRESS,
  TEXT_SCHEMA,
  validateState,
} from '../loop/suspend.js';
import type { TurnOrigin } from './events.js';

/** After the last message with all its answers; without `progress`, the model was not asked yet. */
interface RunningStatus {
  readonly status: 'running';
  readonly owner?: unknown;
  readonly progress?: Omit<RunProgress, 'messages'>;
}

/** At an open message with these answers: its calls have not all ended. `isKept`: the run is in the store. */
interface AnsweredStatus {
  readonly status: 'answered';
  readonly state: RunState;
  readonly answers: readonly Answer[];
  readonly answeredBy?: unknown;
  readonly isKept: boolean;
}

/** The turn waits for answers. `isKept`: the run is in the store. */
interface SuspendedStatus {
  readonly status: 'suspended';
  readonly state: RunState;
  readonly isKept: boolean;
}

/** The origin of a waiting turn, with its owner. */
type StoredOrigin = TurnOrigin & { readonly owner?: unknown };

/** A turn that has begun and is not over. */
interface StoredTurn {
  readonly number: number;
  readonly origin: TurnOrigin;
  /** It was aborted, and had not ended yet. */
  readonly isAborted: boolean;
  /** The state from which it continues. */
  readonly standing: RunningStatus | AnsweredStatus | SuspendedStatus;
}

/**
 * A conversation as plain JSON; `Conversation.restore` continues from it, in this process or another. It contains all
 * messages and arguments: protect it accordingly, and set a `stateSecret` if others could change it.
 */
export interface ConversationSnapshot {
  /** Version 1 has no provider items. */
  readonly version: 1 | 2;
  readonly id: string;
  /** A history in which every call has its answer; without the system prompt. */
  readonly messages: readonly Message[];
  /** The number of turns begun so far. */
  readonly turns: number;
  readonly turn?: StoredTurn;
  /** Waiting entries, in order of arrival. */
  readonly inbox: readonly StoredOrigin[];
  /** Work that was started and is not completed. */
  readonly tasks: readonly BackgroundTask[];
  /** The amounts spent by turns that have ended; only if they had a budget. */
  readonly spent?: Spending;
  /** As that of a {@link RunState}. */
  readonly signature?: string;
}

/**
 * Validates the snapshot of a conversation, which may come from outside, and returns a copy. `isCertain`: its owners
 * can be trusted, because it cannot have been changed elsewhere.
 *
 * @throws ToolwrightError `InvalidState` (515) if it is not a snapshot, or if it was changed: with a secret in any
 * part, without a secret as far as that can be detected.
 */
export function validateSnapshot(
  snapshot: unknown,
  secret: string | undefined,
): { readonly snapshot: ConversationSnapshot; readonly isCertain: boolean } {
  checkForm(snapshot, SNAPSHOT_SCHEMA, 'a snapshot of a conversation');
  const read = JSON.parse(JSON.stringify(snapshot)) as ConversationSnapshot;
  const [fault] = historyFaults(read.messages);
  if (fault !== undefined) throw invalidState(`The history of the snapshot is invalid: ${fault.problem}.`);
  const isCertain = isSignedWith(read, secret);
  if (secret !== undefined && !isCertain)
    throw invalidState('The snapshot of the conversation was changed, or signed with another secret.');
  const status = read.turn?.standing;
  if (status !== undefined && status.status !== 'running') {
    const { messages } = validateState(status.state, secret).state;
    if (messages.length < read.messages.length)
      throw invalidState(
        'The snapshot of the conversation was changed: its suspended run has another history.',
      );
  }
  return { snapshot: read, isCertain };
}

const ORIGIN: JsonSchema = {
  type: 'object',
  anyOf: [
    object({ kind: { const: 'prompt' }, content: { type: ['string', 'array'] } }),
    object({ kind: { const: 'completion' }, tool: TEXT_SCHEMA, callId: TEXT_SCHEMA, text: TEXT_SCHEMA }),
    object({ kind: { const: 'continue' } }),
  ],
};

const STATE: JsonSchema = { type: 'object' };
const FLAG: JsonSchema = { type: 'boolean' };

/** The states in it are checked like those of runs. */
const STATUS: JsonSchema = {
  type: 'object',
  anyOf: [
    {
      type: 'object',
      properties: { status: { const: 'running' }, progress: PROGRESS },
      required: ['status'],
    },
    object({ status: { const: 'answered' }, state: STATE, answers: list({ type: 'object' }), isKept: FLAG }),
    object({ status: { const: 'suspended' }, state: STATE, isKept: FLAG }),
  ],
};

const SNAPSHOT = object({
  version: { enum: [1, 2] },
  id: TEXT_SCHEMA,
  messages: MESSAGES,
  turns: COUNT_SCHEMA,
  inbox: list(ORIGIN),
  tasks: list(
    object({
      id: TEXT_SCHEMA,
      callId: TEXT_SCHEMA,
      tool: TEXT_SCHEMA,
      status: { enum: ['waiting', 'running'] },
    }),
  ),
});

/** The schema of a conversation's snapshot, which may come from outside. */
const SNAPSHOT_SCHEMA: JsonSchema = {
  ...SNAPSHOT,
  properties: {
    ...(SNAPSHOT.properties as object),
    turn: object({ number: COUNT_SCHEMA, origin: ORIGIN, isAborted: FLAG, standing: STATUS }),
  },
};
